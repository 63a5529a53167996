//! A node without browsers, as quick as a node can be: what a master costs shows against it.

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

/// As large as a fast PNG of the shop page.
const PICTURE: usize = 400 << 10;

struct Slots {
    free: Vec<u16>,
    picture: Bytes,
}

type Shared = Arc<Mutex<Slots>>;

/// Runs until dropped.
pub(crate) struct SimNode {
    pub(crate) url: String,
    serving: AbortHandle,
}

impl SimNode {
    pub(crate) async fn start(capacity: u16) -> std::io::Result<Self> {
        let mut picture = vec![7; PICTURE];
        picture[..8].copy_from_slice(&[137, 80, 78, 71, 13, 10, 26, 10]);
        let slots = Slots { free: (9000..9000 + capacity).collect(), picture: picture.into() };
        let routes = Router::new()
            .route("/get", post(lease))
            .route("/reset", post(give_back))
            .route("/metadata", get(async || Json(json!({"width": 1280, "height": 768}))))
            .route("/screenshot", get(screenshot))
            .route("/info", get(async move |State(slots): State<Shared>| info(&slots, capacity)))
            .with_state(Arc::new(Mutex::new(slots)));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let serving = tokio::spawn(async move { axum::serve(listener, routes).await.map_or((), drop) });
        Ok(Self { url, serving: serving.abort_handle() })
    }
}

impl Drop for SimNode {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn lease(State(slots): State<Shared>) -> Response {
    let port = slots.lock().unwrap_or_else(PoisonError::into_inner).free.pop();
    match port {
        Some(port) => {
            Json(json!({"instance_id": format!("{}:{port}", uuid::Uuid::new_v4())})).into_response()
        }
        None => (StatusCode::SERVICE_UNAVAILABLE, Json(json!({"detail": "No available instances"})))
            .into_response(),
    }
}

async fn give_back(State(slots): State<Shared>, Query(query): Query<HashMap<String, String>>) -> Json<Value> {
    let port: Option<u16> = query.get("instance_id").and_then(|id| id.rsplit(':').next()?.parse().ok());
    slots.lock().unwrap_or_else(PoisonError::into_inner).free.extend(port);
    Json(json!({"status": "success"}))
}

async fn screenshot(State(slots): State<Shared>) -> Response {
    let picture = slots.lock().unwrap_or_else(PoisonError::into_inner).picture.clone();
    ([(header::CONTENT_TYPE, "image/png")], picture).into_response()
}

fn info(slots: &Shared, capacity: u16) -> Json<Value> {
    let free = slots.lock().unwrap_or_else(PoisonError::into_inner).free.len();
    Json(json!({"capacity": capacity, "available": free, "instances": []}))
}
