//! Nodes without browsers: real HTTP servers with a pool of slot numbers that respond at once.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard},
};

use axum::{
    Json, Router,
    extract::{Query, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde_json::json;
use tokio::{net::TcpListener, task::AbortHandle};

struct Pool {
    free: Vec<u16>,
    in_use: HashSet<String>,
    keys: HashMap<String, String>,
    capacity: usize,
    incarnation: String,
}

type SharedPool = Arc<Mutex<Pool>>;

pub(crate) struct Node {
    pub url: String,
    pool: SharedPool,
    serving: AbortHandle,
}

impl Node {
    pub(crate) async fn start(capacity: u16) -> Self {
        let pool = Pool {
            free: (9000..9000 + capacity).rev().collect(),
            in_use: HashSet::new(),
            keys: HashMap::new(),
            capacity: capacity.into(),
            incarnation: uuid::Uuid::new_v4().simple().to_string(),
        };
        let pool: SharedPool = Arc::new(Mutex::new(pool));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let routes = Router::new()
            .route("/get", post(lease))
            .route("/reset", post(reset))
            .route("/info", get(info))
            .with_state(Arc::clone(&pool));
        let serving = tokio::spawn(async move {
            axum::serve(listener, routes).await.expect("the server runs");
        });
        Self { url, pool, serving: serving.abort_handle() }
    }

    pub(crate) fn load(&self) -> usize {
        lock(&self.pool).in_use.len()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn lock(pool: &SharedPool) -> MutexGuard<'_, Pool> {
    pool.lock().expect("no handler panics")
}

async fn lease(State(pool): State<SharedPool>, Query(query): Query<HashMap<String, String>>) -> Response {
    let mut pool = lock(&pool);
    let key = query.get("idempotency_key").cloned().unwrap_or_default();
    if let Some(id) = pool.keys.get(&key).filter(|id| pool.in_use.contains(*id)) {
        return Json(json!({ "instance_id": id })).into_response();
    }
    let Some(port) = pool.free.pop() else {
        let body = json!({"detail": "No available nodes with capacity to create new instance", "code": "no_capacity"});
        return (StatusCode::SERVICE_UNAVAILABLE, Json(body)).into_response();
    };
    let id = format!("{}:{port}", uuid::Uuid::new_v4());
    pool.in_use.insert(id.clone());
    pool.keys.insert(key, id.clone());
    Json(json!({ "instance_id": id })).into_response()
}

async fn reset(State(pool): State<SharedPool>, Query(query): Query<HashMap<String, String>>) -> Response {
    let id = query.get("instance_id").cloned().unwrap_or_default();
    let mut pool = lock(&pool);
    if !pool.in_use.remove(&id) {
        let body = json!({"detail": "Instance not in use or already released", "code": "not_in_use"});
        return (StatusCode::BAD_REQUEST, Json(body)).into_response();
    }
    let port = id.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).expect("an id of this node");
    pool.free.push(port);
    pool.keys.retain(|_, held| *held != id);
    Json(json!({"status": "success"})).into_response()
}

async fn info(State(pool): State<SharedPool>) -> Response {
    let pool = lock(&pool);
    let (available, capacity) = (pool.free.len(), pool.capacity);
    Json(json!({
        "available": available, "capacity": capacity, "in_use": pool.in_use, "id": pool.incarnation,
        "incarnation": pool.incarnation,
    }))
    .into_response()
}
