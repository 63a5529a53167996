//! The master's own page: its nodes and their slots, for people. Programs that ask for `/` are told that nothing is there,
//! as ever; what the page shows comes from `/info`, with the farm's key.

use axum::{
    Router,
    extract::Request,
    http::{HeaderMap, header},
    response::{Html, IntoResponse, Response},
    routing::get,
};

use super::reply::Failed;
use crate::error::FarmError;

/// Nothing from elsewhere, nothing inline.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; \
     frame-ancestors 'none'; form-action 'none'";

pub(crate) fn routes() -> Router {
    let file = |kind: &'static str, text: &'static str| {
        get(async move || ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "no-cache")], text))
    };
    Router::new()
        .route("/", get(page))
        .route("/home.js", file("text/javascript; charset=utf-8", include_str!("home/home.js")))
        .route("/home.css", file("text/css; charset=utf-8", include_str!("home/home.css")))
}

async fn page(headers: HeaderMap, request: Request) -> Response {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    if !accept.is_some_and(|accept| accept.contains("text/html")) {
        return Failed::from(FarmError::NotFound(request.uri().path().to_owned())).into_response();
    }
    let headers = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, Html(include_str!("home/page.html"))).into_response()
}
