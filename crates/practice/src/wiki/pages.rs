//! The pages of the encyclopedia.

use axum::{
    extract::{Path, Query},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use maud::{Markup, PreEscaped, html};

use super::{
    article::{Article, Block, Kind, linked, plain, slug},
    articles,
    search::search,
};
use crate::{forms::Fields, html};

const NAME: &str = "Aldermark Encyclopedia";

fn page(title: &str, words: &str, body: &Markup) -> Response {
    let body = html! {
        header.bar {
            a.brand href="/wiki/" { (NAME) }
            form.find action="/wiki/search" role="search" {
                input type="search" name="q" id="search" value=(words) placeholder="Search the encyclopedia" aria-label="Search the encyclopedia";
                button type="submit" id="search-button" { "Search" }
            }
            a href="/wiki/all" { "All articles" }
        }
        main { (body) }
        footer { p.small { "The country described here does not exist. Its facts agree with each other all the same." } }
        script src="/static/wiki.js" {}
    };
    html::page(&format!("{title} · {NAME}"), "wiki", &body)
}

pub(super) async fn front() -> Response {
    let featured = ["arnholm", "ines-morrow", "tide-clock"].into_iter().filter_map(articles::find);
    let body = html! {
        h1 { "Welcome to the " (NAME) }
        p.lead { (articles::all().len()) " articles on the places, people and inventions of " (linked("[[Aldermark]]")) "." }
        div.columns {
            section.card {
                h2 { "Featured" }
                @for article in featured { h3 { a href={ "/wiki/a/" (article.slug()) } { (article.title) } } p { (plain(&article.summary)) } }
            }
            section.card {
                h2 { "Categories" }
                ul { @for kind in Kind::ALL { li { a href={ "/wiki/category/" (kind.slug()) } { (kind.name()) } " (" (of_kind(kind).count()) ")" } } }
                h2 { "Lists" }
                ul { @for title in ["List of cities", "List of rivers", "List of mountains", "List of people", "List of inventions"] { li { (linked(&format!("[[{title}]]"))) } } }
            }
        }
    };
    page("Welcome", "", &body)
}

fn of_kind(kind: Kind) -> impl Iterator<Item = &'static Article> {
    articles::all().iter().filter(move |article| article.kind == kind)
}

pub(super) async fn all() -> Response {
    let body = html! {
        h1 { "All articles" }
        p.lead { (articles::all().len()) " articles, by title." }
        (titles(articles::all().iter()))
    };
    page("All articles", "", &body)
}

fn titles(articles: impl Iterator<Item = &'static Article>) -> Markup {
    html! { ul.titles { @for article in articles { li { a href={ "/wiki/a/" (article.slug()) } { (article.title) } } } } }
}

pub(super) async fn category(Path(name): Path<String>) -> Response {
    let Some(kind) = Kind::ALL.into_iter().find(|kind| kind.slug() == name) else {
        return missing("category");
    };
    let body = html! {
        h1 { "Category: " (kind.name()) }
        p.lead { (of_kind(kind).count()) " articles in this category." }
        (titles(of_kind(kind)))
    };
    page(&format!("Category: {}", kind.name()), "", &body)
}

pub(super) async fn results(Query(pairs): Query<Vec<(String, String)>>) -> Response {
    let fields = Fields(pairs);
    let words = fields.get("q");
    let hits = search(words);
    let body = html! {
        h1 { "Search results" }
        p id="result-count" { (hits.len()) (if hits.len() == 1 { " result" } else { " results" }) " for “" (words) "”" }
        ol.results {
            @for hit in hits.iter().take(20) {
                li { a href={ "/wiki/a/" (hit.article.slug()) } { (hit.article.title) } " " span.small { (hit.article.kind.name()) } p { (hit.snippet) } }
            }
        }
    };
    page("Search results", words, &body)
}

fn missing(what: &str) -> Response {
    let body = html! { h1 { "No such " (what) } p { "Perhaps " a href="/wiki/all" { "the list of all articles" } " helps." } };
    (StatusCode::NOT_FOUND, page("Not found", "", &body)).into_response()
}

pub(super) async fn article(Path(name): Path<String>) -> Response {
    let Some(article) = articles::find(&name) else { return missing("article") };
    let body = html! {
        article.entry {
            h1 { (article.title) }
            (infobox(article))
            p.summary { (linked(&article.summary)) }
            nav.contents aria-label="Contents" {
                strong { "Contents" }
                ol { @for section in &article.sections { li { a href={ "#" (slug(section.title)) } { (section.title) } } } }
            }
            @for section in &article.sections {
                section id=(slug(section.title)) {
                    h2 { (section.title) }
                    @for block in &section.blocks { (shown(block)) }
                }
            }
            p.small { "Category: " a href={ "/wiki/category/" (article.kind.slug()) } { (article.kind.name()) } }
        }
    };
    page(&article.title, "", &body)
}

fn infobox(article: &Article) -> Markup {
    html! {
        aside.infobox {
            table {
                caption { (article.title) }
                tr { td.emblem colspan="2" { (emblem(article)) } }
                @for (name, value) in &article.facts { tr { th { (name) } td { (linked(value)) } } }
            }
        }
    }
}

fn shown(block: &Block) -> Markup {
    html! {
        @match block {
            Block::Text(text) => p { (linked(text)) },
            Block::Table { head, rows } => table.data.sortable {
                thead { tr { @for name in head { th { button type="button" { (name) " " span aria-hidden="true" { "⇅" } } } } } }
                tbody { @for row in rows { tr { @for cell in row { td { (linked(cell)) } } } } }
            },
        }
    }
}

/// A small landscape or figure in colours of the article's own.
fn emblem(article: &Article) -> Markup {
    let hue = article.title.bytes().fold(7_u32, |sum, byte| (sum * 33 + u32::from(byte)) % 360);
    let shape = match article.kind {
        Kind::City | Kind::Region => {
            "<path d='M20 84 V52 H44 V66 H60 V34 L76 22 L92 34 V66 H108 V46 H136 V66 H150 V58 H180 V84 Z' fill='DARK'/>"
        }
        Kind::River | Kind::Lake => {
            "<path d='M0 62 Q50 40 100 62 T200 62 V100 H0 Z' fill='DARK'/><path d='M0 74 Q50 56 100 74 T200 74' stroke='#fff' stroke-width='3' fill='none' opacity='.7'/>"
        }
        Kind::Mountain => {
            "<path d='M10 88 L76 20 L112 60 L136 38 L190 88 Z' fill='DARK'/><path d='M76 20 L92 38 L78 44 L62 36 Z' fill='#fff'/>"
        }
        Kind::Person => {
            "<circle cx='100' cy='42' r='19' fill='DARK'/><path d='M62 92 Q66 64 100 64 T138 92 Z' fill='DARK'/>"
        }
        Kind::Invention => {
            "<circle cx='100' cy='52' r='24' fill='none' stroke='DARK' stroke-width='13' stroke-dasharray='11 8'/><circle cx='100' cy='52' r='16' fill='DARK'/>"
        }
        Kind::Overview => {
            "<rect x='58' y='22' width='84' height='60' rx='5' fill='DARK'/><path d='M100 22 V82 M70 38 H92 M70 50 H92 M108 38 H130 M108 50 H130' stroke='#fff' stroke-width='4'/>"
        }
    };
    let shape = shape.replace("DARK", &format!("hsl({} 38% 38%)", (hue + 30) % 360));
    html! {
        svg viewBox="0 0 200 100" role="img" aria-label={ "Emblem of " (article.title) } {
            rect width="200" height="100" fill={ "hsl(" (hue) " 45% 88%)" } {}
            (PreEscaped(shape))
        }
    }
}
