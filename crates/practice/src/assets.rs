//! Serves the style sheets, scripts and the icon that the pages share. The files are embedded in the binary.

use axum::{
    Router,
    extract::Path,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};

use crate::html::with_content_type;

const CSS: &str = "text/css; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";
const ICON: &str = include_str!("../assets/favicon.svg");

/// Name, content type and content.
const FILES: &[(&str, &str, &str)] = &[
    ("base.css", CSS, include_str!("../assets/base.css")),
    ("course.css", CSS, include_str!("../assets/course.css")),
    ("vault.css", CSS, include_str!("../assets/vault.css")),
    ("course.js", JAVASCRIPT, include_str!("../assets/course.js")),
    ("shop.css", CSS, include_str!("../assets/shop.css")),
    ("wiki.css", CSS, include_str!("../assets/wiki.css")),
    ("wiki.js", JAVASCRIPT, include_str!("../assets/wiki.js")),
    ("jobs.css", CSS, include_str!("../assets/jobs.css")),
    ("permissions.js", JAVASCRIPT, include_str!("../assets/permissions.js")),
    ("storage.js", JAVASCRIPT, include_str!("../assets/storage.js")),
];

pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route("/static/{name}", get(file))
        .route("/favicon.svg", get(async || with_content_type(SVG, ICON)))
        .route("/favicon.ico", get(async || with_content_type(SVG, ICON)))
}

async fn file(Path(name): Path<String>) -> Response {
    match FILES.iter().find(|(file, _, _)| *file == name) {
        Some((_, content_type, body)) => {
            ([(header::CACHE_CONTROL, "max-age=300")], with_content_type(content_type, *body)).into_response()
        }
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
