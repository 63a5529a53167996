//! A simulated node without browsers that answers immediately, for measuring the cost of a master.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use axum::{
    Json, Router,
    extract::{Query, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::AbortHandle};

/// About the size of a PNG of the shop page.
const SCREENSHOT_BYTES: usize = 400 << 10;

struct Slots {
    free: Vec<u16>,
    screenshot: Bytes,
}

type SharedSlots = Arc<Mutex<Slots>>;

/// Serves until it is dropped.
pub(crate) struct SimNode {
    pub(crate) url: String,
    server: AbortHandle,
}

impl SimNode {
    pub(crate) async fn start(capacity: u16) -> std::io::Result<Self> {
        let mut screenshot = vec![7; SCREENSHOT_BYTES];
        screenshot[..8].copy_from_slice(&[137, 80, 78, 71, 13, 10, 26, 10]);
        let slots = Slots { free: (9000..9000 + capacity).collect(), screenshot: screenshot.into() };
        let routes = Router::new()
            .route("/get", post(acquire))
            .route("/reset", post(release))
            .route("/metadata", get(async || Json(json!({"width": 1280, "height": 768}))))
            .route("/screenshot", get(get_screenshot))
            .route("/info", get(async move |State(slots): State<SharedSlots>| info(&slots, capacity)))
            .with_state(Arc::new(Mutex::new(slots)));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let server = tokio::spawn(async move { axum::serve(listener, routes).await.map_or((), drop) });
        Ok(Self { url, server: server.abort_handle() })
    }
}

impl Drop for SimNode {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn acquire(State(slots): State<SharedSlots>) -> Response {
    let port = slots.lock().unwrap_or_else(PoisonError::into_inner).free.pop();
    match port {
        Some(port) => {
            Json(json!({"instance_id": format!("{}:{port}", uuid::Uuid::new_v4())})).into_response()
        }
        None => (StatusCode::SERVICE_UNAVAILABLE, Json(json!({"detail": "No available instances"})))
            .into_response(),
    }
}

async fn release(
    State(slots): State<SharedSlots>,
    Query(query): Query<HashMap<String, String>>,
) -> Json<Value> {
    let port: Option<u16> = query.get("instance_id").and_then(|id| id.rsplit(':').next()?.parse().ok());
    slots.lock().unwrap_or_else(PoisonError::into_inner).free.extend(port);
    Json(json!({"status": "success"}))
}

async fn get_screenshot(State(slots): State<SharedSlots>) -> Response {
    let screenshot = slots.lock().unwrap_or_else(PoisonError::into_inner).screenshot.clone();
    ([(header::CONTENT_TYPE, "image/png")], screenshot).into_response()
}

fn info(slots: &SharedSlots, capacity: u16) -> Json<Value> {
    let free = slots.lock().unwrap_or_else(PoisonError::into_inner).free.len();
    Json(json!({"capacity": capacity, "available": free, "instances": []}))
}
