//! Answers about the request itself, for tests.

use std::collections::BTreeMap;

use axum::{
    Json, Router,
    extract::{Query, State},
    http::HeaderMap,
    routing::get,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::stop::Stop;

pub(crate) fn routes() -> Router<Stop> {
    Router::new()
        .route("/healthz", get(async || Json(json!({ "status": "ok" }))))
        .route("/echo/headers", get(headers))
        .route("/echo/delay", get(delay))
}

/// Repeated headers are joined by a comma, as HTTP allows.
async fn headers(headers: HeaderMap) -> Json<BTreeMap<String, String>> {
    let mut told = BTreeMap::<String, String>::new();
    for (name, value) in &headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        told.entry(name.to_string())
            .and_modify(|all| {
                all.push_str(", ");
                all.push_str(&value);
            })
            .or_insert_with(|| value.clone().into_owned());
    }
    Json(told)
}

#[derive(Deserialize)]
struct Delay {
    #[serde(default)]
    ms: u64,
}

async fn delay(State(stop): State<Stop>, Query(Delay { ms }): Query<Delay>) -> Json<Value> {
    stop.pause(ms).await;
    Json(json!({ "ms": ms }))
}
