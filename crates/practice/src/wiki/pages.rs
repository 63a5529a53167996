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

fn page(title: &str, query: &str, body: &Markup) -> Response {
    let body = html! {
        header.bar {
            a.brand href="/wiki/" { (NAME) }
            (html::search_form("/wiki/search", query, "Search the encyclopedia"))
            a href="/wiki/all" { "All articles" }
        }
        main { (body) }
        footer {
            p.small { "The country described here does not exist. Its facts agree with each other all the same." }
        }
        script src="/static/wiki.js" {}
    };
    html::page(&format!("{title} · {NAME}"), "wiki", &body)
}

pub(super) async fn front() -> Response {
    let featured = ["arnholm", "ines-morrow", "tide-clock"].into_iter().filter_map(articles::find);
    let body = html! {
        h1 { "Welcome to the " (NAME) }
        p.lead {
            (articles::all().len()) " articles on the places, people and inventions of "
            (linked("[[Aldermark]]")) "."
        }
        div.columns {
            section.card {
                h2 { "Featured" }
                @for article in featured {
                    h3 { (article_link(article)) }
                    p { (plain(&article.summary)) }
                }
            }
            section.card {
                h2 { "Categories" }
                ul { @for kind in Kind::ALL { li { (category_link(kind)) " (" (articles_of(kind).count()) ")" } } }
                h2 { "Lists" }
                ul {
                    @for subject in ["cities", "rivers", "mountains", "people", "inventions"] {
                        li { (linked(&format!("[[List of {subject}]]"))) }
                    }
                }
            }
        }
    };
    page("Welcome", "", &body)
}

fn article_link(article: &Article) -> Markup {
    html! { a href={ "/wiki/a/" (article.slug()) } { (article.title) } }
}

fn category_link(kind: Kind) -> Markup {
    html! { a href={ "/wiki/category/" (kind.slug()) } { (kind.name()) } }
}

fn articles_of(kind: Kind) -> impl Iterator<Item = &'static Article> {
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
    html! { ul.titles { @for article in articles { li { (article_link(article)) } } } }
}

pub(super) async fn category(Path(name): Path<String>) -> Response {
    let Some(kind) = Kind::ALL.into_iter().find(|kind| kind.slug() == name) else {
        return not_found("category");
    };
    let body = html! {
        h1 { "Category: " (kind.name()) }
        p.lead { (articles_of(kind).count()) " articles in this category." }
        (titles(articles_of(kind)))
    };
    page(&format!("Category: {}", kind.name()), "", &body)
}

pub(super) async fn results(Query(pairs): Query<Vec<(String, String)>>) -> Response {
    let fields = Fields(pairs);
    let query = fields.get("q");
    let hits = search(query);
    let body = html! {
        h1 { "Search results" }
        p id="result-count" { (html::count(hits.len(), "result")) " for “" (query) "”" }
        ol.results {
            @for hit in hits.iter().take(20) {
                li {
                    (article_link(hit.article)) " " span.small { (hit.article.kind.name()) }
                    p { (hit.snippet) }
                }
            }
        }
    };
    page("Search results", query, &body)
}

fn not_found(what: &str) -> Response {
    let body = html! {
        h1 { "No such " (what) }
        p { "Perhaps " a href="/wiki/all" { "the list of all articles" } " helps." }
    };
    (StatusCode::NOT_FOUND, page("Not found", "", &body)).into_response()
}

pub(super) async fn article(Path(name): Path<String>) -> Response {
    let Some(article) = articles::find(&name) else { return not_found("article") };
    let body = html! {
        article.entry {
            h1 { (article.title) }
            (infobox(article))
            p.summary { (linked(&article.summary)) }
            nav.contents aria-label="Contents" {
                strong { "Contents" }
                ol {
                    @for section in &article.sections {
                        li { a href={ "#" (slug(section.title)) } { (section.title) } }
                    }
                }
            }
            @for section in &article.sections {
                section id=(slug(section.title)) {
                    h2 { (section.title) }
                    @for block in &section.blocks { (block_markup(block)) }
                }
            }
            p.small { "Category: " (category_link(article.kind)) }
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

fn block_markup(block: &Block) -> Markup {
    html! {
        @match block {
            Block::Text(text) => p { (linked(text)) },
            Block::Table { head, rows } => table.data.sortable {
                thead {
                    tr {
                        @for name in head {
                            th { button type="button" { (name) " " span aria-hidden="true" { "⇅" } } }
                        }
                    }
                }
                tbody { @for row in rows { tr { @for cell in row { td { (linked(cell)) } } } } }
            },
        }
    }
}

/// Draws the emblem of the article's kind; the colours depend on the title.
fn emblem(article: &Article) -> Markup {
    let hue = article.title.bytes().fold(7_u32, |sum, byte| (sum * 33 + u32::from(byte)) % 360);
    let shape = match article.kind {
        Kind::City | Kind::Region => include_str!("../../assets/wiki/city.svg"),
        Kind::River | Kind::Lake => include_str!("../../assets/wiki/water.svg"),
        Kind::Mountain => include_str!("../../assets/wiki/mountain.svg"),
        Kind::Person => include_str!("../../assets/wiki/person.svg"),
        Kind::Invention => include_str!("../../assets/wiki/invention.svg"),
        Kind::Overview => include_str!("../../assets/wiki/overview.svg"),
    };
    let shape = shape.replace("DARK", &format!("hsl({} 38% 38%)", (hue + 30) % 360));
    html! {
        svg viewBox="0 0 200 100" role="img" aria-label={ "Emblem of " (article.title) } {
            rect width="200" height="100" fill={ "hsl(" (hue) " 45% 88%)" } {}
            (PreEscaped(shape))
        }
    }
}
