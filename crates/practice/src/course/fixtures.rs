//! What the obstacles are made of: the pages inside frames, list items, attachments, the service worker.

use axum::{
    Json, Router,
    extract::Query,
    http::{HeaderMap, header},
    response::{Html, IntoResponse, Response},
    routing::get,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{html::typed, stop::Stop};

const FRAME: &str = include_str!("../../assets/course/frames/inner.html");
const MIDDLE: &str = include_str!("../../assets/course/frames/middle.html");
const WORKER: &str = include_str!("../../assets/course/service-worker.js");

pub(super) fn routes() -> Router<Stop> {
    Router::new()
        .route("/course/frames/inner", get(async || Html(FRAME)))
        .route("/course/frames/middle", get(async || Html(MIDDLE)))
        .route("/course/api/items", get(items))
        .route("/course/api/cached", get(cached))
        .route("/course/download/report.csv", get(attachment))
        .route("/course/download/plain.csv", get(async || typed("text/csv; charset=utf-8", report())))
        .route("/course/download/data.bin", get(binary))
        .route("/course/service-worker/worker.js", get(async || typed("text/javascript", WORKER)))
        .route("/course/service-worker/greeting", get(async || "hello from the server"))
}

#[derive(Deserialize)]
struct From {
    #[serde(default)]
    from: usize,
}

const LAST_ITEM: usize = 500;
const BATCH: usize = 20;

/// The next batch of the endless list (which ends after all, at 500).
async fn items(Query(From { from }): Query<From>) -> Json<Value> {
    let from = from.min(LAST_ITEM);
    let until = (from + BATCH).min(LAST_ITEM);
    let items: Vec<String> = (from + 1..=until).map(|number| format!("Item {number}")).collect();
    Json(json!({ "items": items, "more": until < LAST_ITEM }))
}

/// Answers with what the request brought, and may be cached: whoever gets another's value shares a cache with them.
async fn cached(headers: HeaderMap) -> Response {
    let value = headers.get("x-value").and_then(|value| value.to_str().ok()).unwrap_or("none").to_owned();
    ([(header::CACHE_CONTROL, "max-age=86400")], typed("text/plain; charset=utf-8", value)).into_response()
}

fn report() -> String {
    let mut rows = vec!["day,visitors".to_owned()];
    rows.extend((1..=50).map(|day| format!("{day},{}", day * 37 % 101)));
    rows.join("\n")
}

async fn attachment() -> Response {
    let disposition = [(header::CONTENT_DISPOSITION, "attachment; filename=\"report.csv\"")];
    (disposition, typed("text/csv; charset=utf-8", report())).into_response()
}

async fn binary() -> Response {
    let bytes: Vec<u8> = (0..65_536_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    typed("application/octet-stream", bytes)
}
