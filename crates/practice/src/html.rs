//! Building blocks of responses: the page frame, shared fragments, typed bodies and cookies.

use axum::{
    http::{HeaderMap, header},
    response::{Html, IntoResponse, Response},
};
use maud::{DOCTYPE, Markup, html};

/// Renders the HTML document that all pages share, with the base style sheet and the site's own.
pub(crate) fn document(title: &str, site: &str, body: &Markup) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                link rel="icon" href="/favicon.svg";
                link rel="stylesheet" href="/static/base.css";
                link rel="stylesheet" href={ "/static/" (site) ".css" };
            }
            body class=(site) { (body) }
        }
    }
    .into_string()
}

pub(crate) fn page(title: &str, site: &str, body: &Markup) -> Response {
    Html(document(title, site, body)).into_response()
}

/// Renders links to the pages of a list that has several; `url` returns the URL of a page.
pub(crate) fn pagination(current: usize, pages: usize, url: impl Fn(usize) -> String) -> Markup {
    html! {
        @if pages > 1 {
            nav.pages aria-label="Pages" {
                @if current > 1 { a rel="prev" href=(url(current - 1)) { "Previous" } }
                @for number in 1..=pages {
                    @if number == current { strong aria-current="page" { (number) } }
                    @else { a href=(url(number)) { (number) } }
                }
                @if current < pages { a rel="next" href=(url(current + 1)) { "Next" } }
            }
        }
    }
}

/// Renders the search form in the header of a site.
pub(crate) fn search_form(action: &str, query: &str, placeholder: &str) -> Markup {
    html! {
        form.find action=(action) role="search" {
            input type="search" name="q" id="search" value=(query)
                placeholder=(placeholder) aria-label=(placeholder);
            button type="submit" id="search-button" { "Search" }
        }
    }
}

/// Formats a number with its noun: `1 field`, `2 fields`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Returns a response with the given content type.
pub(crate) fn with_content_type(content_type: &'static str, body: impl IntoResponse) -> Response {
    ([(header::CONTENT_TYPE, content_type)], body).into_response()
}

/// Returns the value of a cookie of the request.
pub(crate) fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let all = headers.get(header::COOKIE)?.to_str().ok()?;
    all.split("; ").find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}
