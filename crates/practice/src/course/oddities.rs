//! Obstacles: unusual content, heavy pages, permissions, storage and downloads.

use std::fmt::Write;

use axum::{
    Router,
    extract::Query,
    http::{HeaderMap, header},
    response::{AppendHeaders, Html, IntoResponse, Response},
    routing::get,
};
use maud::html;
use serde::Deserialize;

use super::{Obstacle, ObstacleResponse, course_page, page};
use crate::{html::cookie, shutdown::Shutdown, vault};

pub(super) const OBSTACLES: &[Obstacle] = &[
    Obstacle::special(
        "/course/captcha",
        "Are you human?",
        "A page that blocks visitors until they prove themselves looks blocked.",
        ObstacleResponse::Page,
    ),
    page!(
        "permissions",
        "Permissions",
        "Requests for notifications, place and camera are denied without a prompt; the clipboard needs a click."
    ),
    page!(
        "permissions-onload",
        "Permissions on load",
        "The same requests made by the page itself while it loads."
    ),
    page!(
        "downloads",
        "Downloads",
        "Attachments, download links and script downloads neither block nor leave files."
    ),
    Obstacle::special(
        "/course/download-onload",
        "Download on load",
        "A page that starts a download by itself.",
        ObstacleResponse::Page,
    ),
    Obstacle::special(
        "/course/links",
        "Ten thousand links",
        "A huge page stays workable.",
        ObstacleResponse::Page,
    ),
    page!(
        "surrogate",
        "Lone surrogates",
        "Text, title and attributes with half a character in them do no harm."
    ),
    page!(
        "languages",
        "Scripts of the world",
        "Emoji, right-to-left and CJK text is read, typed and clicked."
    ),
    page!("crash", "Crash", "A renderer that dies gives an error at once, never a hang."),
    page!("storm", "DOM storm", "Five thousand changes a second do not keep anything from working."),
    page!("spin", "Busy processor", "A script that blocks its page for a while delays, and no more."),
    Obstacle {
        path: "/course/service-worker/",
        title: "Service worker",
        requirement: "A worker that answers instead of the server stays with its visitor.",
        response: ObstacleResponse::Page,
        fragment: Some(include_str!("../../assets/course/service-worker.html")),
    },
    Obstacle::special(
        "/course/storage",
        "Storage",
        "Cookies, local and session storage, IndexedDB, caches: what one visitor keeps, no other sees.",
        ObstacleResponse::Page,
    ),
    Obstacle::special(
        "/course/metadata",
        "Metadata",
        "Meta tags, JSON-LD and microdata are read.",
        ObstacleResponse::Page,
    ),
    Obstacle::special(
        "/course/big-title",
        "A title of one megabyte",
        "Sizes are bounded.",
        ObstacleResponse::Page,
    ),
    Obstacle::special(
        "/course/text",
        "Three hundred lines",
        "Text is cut at the right line.",
        ObstacleResponse::Page,
    ),
    page!("schemes", "Other schemes", "mailto:, tel:, javascript: and file: links lead nowhere bad."),
];

pub(super) fn routes() -> Router<Shutdown> {
    Router::new()
        .route("/course/captcha", get(async || Html(vault::block_page("course"))))
        .route("/course/download-onload", get(download_onload))
        .route("/course/links", get(links))
        .route("/course/storage", get(storage))
        .route("/course/metadata", get(async || Html(include_str!("../../assets/course/metadata.html"))))
        .route("/course/big-title", get(big_title))
        .route("/course/text", get(text))
}

async fn download_onload() -> Html<String> {
    let fragment = "<p>The download starts by itself.</p><p><button id=\"here\">A button</button></p>\
        <iframe id=\"downloader\" title=\"download\" src=\"/course/download/report.csv\"></iframe>";
    Html(course_page("Download on load", "A frame of this page loads an attachment.", fragment))
}

async fn links() -> Html<String> {
    let mut fragment = String::from("<p id=\"top\">Each leads to its own number.</p><p class=\"links\">");
    for number in 1..=10_000 {
        // Writing into a String cannot fail.
        let _ = write!(
            fragment,
            "<a id=\"link-{number}\" href=\"/course/arrived?link={number}\">Link {number}</a> "
        );
    }
    fragment.push_str("</p>");
    Html(course_page("Ten thousand links", "Count them if you like.", &fragment))
}

#[derive(Deserialize)]
struct StorageQuery {
    set: Option<String>,
}

/// Shows the HTTP-only cookie that the server received, and sets it if asked to.
async fn storage(Query(query): Query<StorageQuery>, headers: HeaderMap) -> Response {
    let received = cookie(&headers, "course_http").unwrap_or("none");
    let fragment = html! {
        p { "The server was sent the cookie: " strong id="seen-http" { (received) } }
        (maud::PreEscaped(include_str!("../../assets/course/storage.html")))
    };
    let page = Html(course_page("Storage", "What this visitor left here earlier.", &fragment.into_string()));
    let sanitize =
        |value: &str| value.chars().filter(char::is_ascii_alphanumeric).take(64).collect::<String>();
    match query.set.as_deref().map(sanitize).filter(|value| !value.is_empty()) {
        None => page.into_response(),
        Some(value) => {
            let cookie = format!("course_http={value}; Path=/course; HttpOnly; Max-Age=86400");
            (AppendHeaders([(header::SET_COOKIE, cookie)]), page).into_response()
        }
    }
}

async fn big_title() -> Html<String> {
    let title = "A very long title. ".repeat((1 << 20) / 19 + 1);
    let body = "<h1>A title of one megabyte</h1><p id=\"result\">done</p>";
    Html(format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title><body>{body}"
    ))
}

/// A page of 300 lines, of which every fifth is empty.
async fn text() -> Html<String> {
    let line = |number: u32| {
        if number.is_multiple_of(5) {
            String::from("\n")
        } else {
            format!("Line {number} of three hundred.\n")
        }
    };
    let lines: String = (1..=300).map(line).collect();
    Html(format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Three hundred lines</title>\
         <link rel=\"stylesheet\" href=\"/static/base.css\"><pre id=\"text\">\n{lines}</pre>"
    ))
}
