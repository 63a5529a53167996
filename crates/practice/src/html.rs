//! Ways to answer: whole pages, plain pieces, and the two ways of not answering at all.

use axum::{
    http::{HeaderMap, StatusCode, header},
    response::{Html, IntoResponse, Response},
};
use maud::{DOCTYPE, Markup, html};

/// Marks an answer that is to be none: the connection closes, politely or with a TCP reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HangUp {
    Close,
    Reset,
}

impl IntoResponse for HangUp {
    fn into_response(self) -> Response {
        let mut response = StatusCode::INTERNAL_SERVER_ERROR.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// The frame that all pages share: encoding, title, the base style and the site's own.
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

/// Links to the pages of a list that has more than one; `address` gives the address of a page.
pub(crate) fn pagination(current: usize, pages: usize, address: impl Fn(usize) -> String) -> Markup {
    html! {
        @if pages > 1 {
            nav.pages aria-label="Pages" {
                @if current > 1 { a rel="prev" href=(address(current - 1)) { "Previous" } }
                @for number in 1..=pages {
                    @if number == current { strong aria-current="page" { (number) } }
                    @else { a href=(address(number)) { (number) } }
                }
                @if current < pages { a rel="next" href=(address(current + 1)) { "Next" } }
            }
        }
    }
}

/// The search form in the header of a site.
pub(crate) fn search_form(action: &str, words: &str, invitation: &str) -> Markup {
    html! {
        form.find action=(action) role="search" {
            input type="search" name="q" id="search" value=(words)
                placeholder=(invitation) aria-label=(invitation);
            button type="submit" id="search-button" { "Search" }
        }
    }
}

/// `1 field`, `2 fields`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// A body with its content type, for everything that is not a page.
pub(crate) fn typed(content_type: &'static str, body: impl IntoResponse) -> Response {
    ([(header::CONTENT_TYPE, content_type)], body).into_response()
}

/// The value of one cookie of a request.
pub(crate) fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let all = headers.get(header::COOKIE)?.to_str().ok()?;
    all.split("; ").find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}
