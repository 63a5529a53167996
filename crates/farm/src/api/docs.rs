//! The routes that need no key: health, the OpenAPI document and a page that shows it. Also the readiness and metrics
//! responses.

use axum::{
    Json, Router,
    http::{StatusCode, header},
    response::{Html, IntoResponse, Response},
    routing::get,
};
use serde_json::json;

use super::openapi::{Tier, document};

const PAGE: &str = include_str!("docs.html");

pub(crate) fn routes(tier: Tier) -> Router {
    Router::new()
        .route("/healthz", get(async || Json(json!({"status": "ok"}))))
        .route("/openapi.json", get(async move || Json(document(tier))))
        .route("/docs", get(page))
}

async fn page() -> Response {
    let policy =
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'";
    ([(header::CONTENT_SECURITY_POLICY, policy)], Html(PAGE)).into_response()
}

pub(crate) fn readiness(ready: bool, reason: &str) -> Response {
    if ready {
        return Json(json!({"status": "ready"})).into_response();
    }
    (StatusCode::SERVICE_UNAVAILABLE, Json(json!({"status": "not ready", "detail": reason}))).into_response()
}

pub(crate) fn metrics(text: &str) -> Response {
    let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, content_type)], text.to_owned()).into_response()
}
