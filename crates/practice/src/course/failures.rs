//! Obstacles: pages that fail, load slowly, redirect or never load.

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Query, State},
    http::{HeaderMap, StatusCode, header},
    response::{Html, IntoResponse, Redirect, Response},
    routing::get,
};
use futures_util::{StreamExt, stream};
use serde::Deserialize;

use super::{Obstacle, ObstacleResponse, course_page, page};
use crate::{connection::AbortConnection, html::with_content_type, shutdown::Shutdown};

pub(super) const OBSTACLES: &[Obstacle] = &[
    Obstacle::special(
        "/course/blank",
        "Blank page",
        "A page that is white from edge to edge.",
        ObstacleResponse::Page,
    ),
    Obstacle::special(
        "/course/missing",
        "Not found",
        "A 404 is a page like any other.",
        ObstacleResponse::Status(404),
    ),
    Obstacle::special(
        "/course/error",
        "Server error",
        "A 500 is a page like any other.",
        ObstacleResponse::Status(500),
    ),
    Obstacle::special(
        "/course/slow?ms=500",
        "Slow page",
        "The server takes its time to answer.",
        ObstacleResponse::Page,
    ),
    page!(
        "slow-resources",
        "Slow resources",
        "The page is there at once; its picture, style and script come late."
    ),
    page!(
        "never-image",
        "Picture that never comes",
        "The load event never fires; the page is usable all the same."
    ),
    Obstacle::special(
        "/course/never",
        "Never answers",
        "The server accepts and then stays silent.",
        ObstacleResponse::Never,
    ),
    Obstacle::special(
        "/course/never-body",
        "Never ends",
        "The page starts and its end never comes.",
        ObstacleResponse::Never,
    ),
    Obstacle::special(
        "/course/hang-up",
        "Hangs up",
        "The server closes without an answer.",
        ObstacleResponse::Abort,
    ),
    Obstacle::special(
        "/course/reset",
        "Connection reset",
        "The server resets the connection.",
        ObstacleResponse::Abort,
    ),
    Obstacle::special(
        "/course/redirect?n=1",
        "Redirect",
        "One redirect on the way.",
        ObstacleResponse::Redirect,
    ),
    Obstacle::special(
        "/course/redirect?n=2",
        "Two redirects",
        "Two redirects on the way.",
        ObstacleResponse::Redirect,
    ),
    Obstacle::special(
        "/course/redirect-loop",
        "Redirect loop",
        "Redirects to itself for ever.",
        ObstacleResponse::Redirect,
    ),
    page!("meta-refresh", "Meta refresh", "The page moves on by itself after a second."),
    page!("js-redirect", "Script redirect", "A script moves on while the page loads."),
    page!("document-write", "document.write", "A click replaces the whole document."),
    page!(
        "push-state",
        "History API",
        "The address changes without a navigation; back goes through the same states."
    ),
    page!("hash", "Anchors", "Navigation within the page."),
    page!("no-content", "No content", "A link answered by 204 leaves the page as it is."),
    Obstacle::special(
        "/course/basic-auth",
        "Asks for a password",
        "A 401 with a challenge does not open a prompt that blocks.",
        ObstacleResponse::Status(401),
    ),
];

/// The `Authorization` header for `visitor:practice`.
const CREDENTIALS: &str = "Basic dmlzaXRvcjpwcmFjdGljZQ==";

pub(super) fn routes() -> Router<Shutdown> {
    Router::new()
        .route("/course/blank", get(async || Html("<!doctype html><title></title>")))
        .route("/course/missing", get(missing))
        .route("/course/error", get(error))
        .route("/course/slow", get(slow))
        .route("/course/slow/{file}", get(slow_file))
        .route("/course/never", get(never))
        .route("/course/never-body", get(never_body))
        .route("/course/hang-up", get(async || AbortConnection::Close))
        .route("/course/reset", get(async || AbortConnection::Reset))
        .route("/course/redirect", get(redirect))
        .route("/course/redirect-loop", get(async || found("/course/redirect-loop")))
        .route("/course/arrived", get(arrived))
        .route("/course/no-content/answer", get(async || StatusCode::NO_CONTENT))
        .route("/course/basic-auth", get(basic_auth))
}

#[derive(Deserialize)]
struct Params {
    #[serde(default)]
    ms: u64,
    #[serde(default)]
    n: u32,
}

async fn missing() -> Response {
    let page = course_page("Not found", "There is no such page here, and this one says so with a 404.", "");
    (StatusCode::NOT_FOUND, Html(page)).into_response()
}

async fn error() -> Response {
    let page = course_page("Something went wrong", "The server says 500 and means it.", "");
    (StatusCode::INTERNAL_SERVER_ERROR, Html(page)).into_response()
}

async fn slow(State(shutdown): State<Shutdown>, Query(params): Query<Params>) -> Html<String> {
    shutdown.sleep(params.ms).await;
    let fragment =
        "<p id=\"result\">done</p><p><a id=\"again\" href=\"/course/slow?ms=500\">Once more</a></p>";
    Html(course_page("Slow page", "The server took its time.", fragment))
}

/// Serves an image, a style sheet or a script after a delay.
async fn slow_file(
    State(shutdown): State<Shutdown>,
    axum::extract::Path(file): axum::extract::Path<String>,
    Query(params): Query<Params>,
) -> Response {
    const IMAGE: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"160\" height=\"90\">\
        <rect width=\"160\" height=\"90\" fill=\"#2f6f5e\"/><circle cx=\"80\" cy=\"45\" r=\"28\" fill=\"#f4c95d\"/></svg>";
    shutdown.sleep(params.ms).await;
    match file.as_str() {
        "picture.svg" => with_content_type("image/svg+xml", IMAGE),
        "style.css" => with_content_type("text/css", "#styled { background: #f4c95d; }"),
        "script.js" => {
            with_content_type("text/javascript", "document.getElementById('result').textContent = 'done';")
        }
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn never(State(shutdown): State<Shutdown>) -> AbortConnection {
    shutdown.triggered().await;
    AbortConnection::Close
}

async fn never_body(State(shutdown): State<Shutdown>) -> Response {
    let page =
        course_page("Never ends", "What you read is all that will ever come.", "<p id=\"result\">begun</p>");
    let first_part = page.split("</main>").next().unwrap_or_default().to_owned();
    let start = stream::iter([Ok::<_, std::io::Error>(Bytes::from(first_part))]);
    let end = stream::once(async move {
        shutdown.triggered().await;
        Ok(Bytes::new())
    });
    with_content_type("text/html; charset=utf-8", Body::from_stream(start.chain(end)))
}

async fn redirect(State(shutdown): State<Shutdown>, Query(params): Query<Params>) -> Response {
    shutdown.sleep(params.ms).await;
    match params.n {
        0 | 1 => found("/course/arrived?by=redirect"),
        // Browsers give up after 20 redirects, so there is no use in more than 50.
        n => found(&format!("/course/redirect?n={}&ms={}", n.min(50) - 1, params.ms)),
    }
}

/// Redirects with status 302, which axum has no constructor for.
fn found(to: &str) -> Response {
    let mut response = Redirect::to(to).into_response();
    *response.status_mut() = StatusCode::FOUND;
    response
}

async fn arrived(Query(pairs): Query<Vec<(String, String)>>) -> Html<String> {
    let fragment = maud::html! {
        p id="result" { "done" }
        dl id="fields" {
            @for (name, value) in &pairs { dt { (name) } dd id={ "field-" (name) } { (value) } }
        }
        p { a href="/course/" { "All obstacles" } }
    };
    Html(course_page("Arrived", "The page that detours lead to.", &fragment.into_string()))
}

async fn basic_auth(headers: HeaderMap) -> Response {
    let authorization = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    if authorization == Some(CREDENTIALS) {
        let page = course_page("Welcome, visitor", "The password was right.", "<p id=\"result\">done</p>");
        return Html(page).into_response();
    }
    let page = course_page("Password needed", "The name is visitor, the password practice.", "");
    let challenge = [(header::WWW_AUTHENTICATE, "Basic realm=\"practice\"")];
    (StatusCode::UNAUTHORIZED, challenge, Html(page)).into_response()
}
