//! The master's status page: its nodes and their slots. The page reads `/info` with the farm's API key. Requests for `/`
//! that do not accept HTML get the usual 404.

use axum::{
    Router,
    extract::Request,
    http::{HeaderMap, header},
    response::{Html, IntoResponse, Response},
    routing::get,
};

use super::response::ErrorResponse;
use crate::error::ApiError;

/// Allows only our own files, and nothing inline.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; \
     frame-ancestors 'none'; form-action 'none'";

pub(crate) fn routes() -> Router {
    let file = |content_type: &'static str, text: &'static str| {
        get(async move || ([(header::CONTENT_TYPE, content_type), (header::CACHE_CONTROL, "no-cache")], text))
    };
    Router::new()
        .route("/", get(page))
        .route("/home.js", file("text/javascript; charset=utf-8", include_str!("home/home.js")))
        .route("/home.css", file("text/css; charset=utf-8", include_str!("home/home.css")))
}

async fn page(headers: HeaderMap, request: Request) -> Response {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    if !accept.is_some_and(|accept| accept.contains("text/html")) {
        return ErrorResponse::from(ApiError::NotFound(request.uri().path().to_owned())).into_response();
    }
    let headers = [
        (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, Html(include_str!("home/page.html"))).into_response()
}
