//! Resources that obstacles load: pages inside frames, list items, downloads, the service worker.

use axum::{
    Json, Router,
    extract::Query,
    http::{HeaderMap, header},
    response::{Html, IntoResponse, Response},
    routing::get,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{html::with_content_type, shutdown::Shutdown};

const INNER_FRAME: &str = include_str!("../../assets/course/frames/inner.html");
const MIDDLE_FRAME: &str = include_str!("../../assets/course/frames/middle.html");
const WORKER: &str = include_str!("../../assets/course/service-worker.js");

pub(super) fn routes() -> Router<Shutdown> {
    Router::new()
        .route("/course/frames/inner", get(async || Html(INNER_FRAME)))
        .route("/course/frames/middle", get(async || Html(MIDDLE_FRAME)))
        .route("/course/api/items", get(items))
        .route("/course/api/cached", get(cached))
        .route("/course/download/report.csv", get(attachment))
        .route(
            "/course/download/plain.csv",
            get(async || with_content_type("text/csv; charset=utf-8", csv_report())),
        )
        .route("/course/download/data.bin", get(binary))
        .route("/course/service-worker/worker.js", get(async || with_content_type("text/javascript", WORKER)))
        .route("/course/service-worker/greeting", get(async || "hello from the server"))
}

#[derive(Deserialize)]
struct ItemsQuery {
    #[serde(default)]
    from: usize,
}

const ITEM_COUNT: usize = 500;
const BATCH_SIZE: usize = 20;

/// Returns the next batch of the long list.
async fn items(Query(ItemsQuery { from }): Query<ItemsQuery>) -> Json<Value> {
    let from = from.min(ITEM_COUNT);
    let end = (from + BATCH_SIZE).min(ITEM_COUNT);
    let items: Vec<String> = (from + 1..=end).map(|number| format!("Item {number}")).collect();
    Json(json!({ "items": items, "more": end < ITEM_COUNT }))
}

/// Returns a value from the request in a cacheable response. A visitor who gets another's value shares its cache.
async fn cached(headers: HeaderMap) -> Response {
    let value = headers.get("x-value").and_then(|value| value.to_str().ok()).unwrap_or("none").to_owned();
    ([(header::CACHE_CONTROL, "max-age=86400")], with_content_type("text/plain; charset=utf-8", value))
        .into_response()
}

fn csv_report() -> String {
    let mut rows = vec!["day,visitors".to_owned()];
    rows.extend((1..=50).map(|day| format!("{day},{}", day * 37 % 101)));
    rows.join("\n")
}

async fn attachment() -> Response {
    let disposition = [(header::CONTENT_DISPOSITION, "attachment; filename=\"report.csv\"")];
    (disposition, with_content_type("text/csv; charset=utf-8", csv_report())).into_response()
}

async fn binary() -> Response {
    let bytes: Vec<u8> = (0..65_536_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    with_content_type("application/octet-stream", bytes)
}
