//! Endpoints for tests: health, the request's own headers, and a delayed response.

use std::collections::BTreeMap;

use axum::{
    Json, Router,
    extract::{Query, State},
    http::HeaderMap,
    routing::get,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::shutdown::Shutdown;

pub(crate) fn routes() -> Router<Shutdown> {
    Router::new()
        .route("/healthz", get(async || Json(json!({ "status": "ok" }))))
        .route("/echo/headers", get(headers))
        .route("/echo/delay", get(delay))
}

/// Returns the request headers. Repeated headers are joined with commas, as HTTP allows.
async fn headers(headers: HeaderMap) -> Json<BTreeMap<String, String>> {
    let mut echoed = BTreeMap::<String, String>::new();
    for (name, value) in &headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        echoed
            .entry(name.to_string())
            .and_modify(|all| {
                all.push_str(", ");
                all.push_str(&value);
            })
            .or_insert_with(|| value.clone().into_owned());
    }
    Json(echoed)
}

#[derive(Deserialize)]
struct Delay {
    #[serde(default)]
    ms: u64,
}

async fn delay(State(shutdown): State<Shutdown>, Query(Delay { ms }): Query<Delay>) -> Json<Value> {
    shutdown.sleep(ms).await;
    Json(json!({ "ms": ms }))
}
