//! A node that answers as one of the Python system does: the same paths and shapes, errors without a code, lists in
//! `detail` for bad queries, and 200 with "Internal Server Error" for a picture when its browser is dead. It has no
//! browser; it holds our master to the contract with such nodes.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard},
};

use axum::{
    Json, Router,
    extract::{Query, Request, State},
    http::{HeaderMap, StatusCode},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::AbortHandle};

/// The smallest thing that is a PNG file: one black pixel.
const PIXEL: &[u8] = &[
    137, 80, 78, 71, 13, 10, 26, 10, 0, 0, 0, 13, 73, 72, 68, 82, 0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0, 58,
    126, 155, 85, 0, 0, 0, 10, 73, 68, 65, 84, 8, 215, 99, 96, 0, 0, 0, 2, 0, 1, 226, 33, 188, 51, 0, 0, 0,
    0, 73, 69, 78, 68, 174, 66, 96, 130,
];

/// What is wrong with it at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trouble {
    #[default]
    None,
    /// Its browsers are dead, which it does not notice.
    DeadBrowsers,
}

#[derive(Default)]
struct Held {
    free: BTreeSet<u16>,
    in_use: BTreeSet<String>,
    trouble: Trouble,
    /// The bodies of `/execute`, as they came.
    executed: Vec<Value>,
    /// The queries of `/get`.
    asked: Vec<HashMap<String, String>>,
}

type Shared = Arc<Mutex<Held>>;
type Pairs = Query<HashMap<String, String>>;

/// Runs until dropped.
pub struct PythonNode {
    pub url: String,
    capacity: usize,
    held: Shared,
    serving: AbortHandle,
}

impl PythonNode {
    pub async fn start(capacity: u16) -> Self {
        let held: Shared = Arc::default();
        held.lock().unwrap().free = (9000..9000 + capacity).collect();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let routes = routes(Arc::clone(&held), usize::from(capacity));
        let serving = tokio::spawn(async move {
            axum::serve(listener, routes).await.expect("it serves");
        });
        Self { url, capacity: capacity.into(), held, serving: serving.abort_handle() }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap()
    }

    pub fn set(&self, trouble: Trouble) {
        self.held().trouble = trouble;
    }

    pub fn in_use(&self) -> usize {
        self.held().in_use.len()
    }

    pub fn free(&self) -> usize {
        self.capacity - self.in_use()
    }

    pub fn executed(&self) -> Vec<Value> {
        self.held().executed.clone()
    }

    pub fn asked(&self) -> Vec<HashMap<String, String>> {
        self.held().asked.clone()
    }
}

impl Drop for PythonNode {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn routes(held: Shared, capacity: usize) -> Router {
    Router::new()
        .route("/get", post(get_instance))
        .route("/reset", post(reset))
        .route("/screenshot", get(screenshot))
        .route("/execute", post(execute))
        .route("/metadata", get(metadata))
        .route("/probe", get(probe))
        .route("/info", get(async move |State(held): State<Shared>| info(&held, capacity)))
        .layer(middleware::from_fn(key))
        .with_state(held)
}

fn detail(status: u16, detail: Value) -> Response {
    (StatusCode::from_u16(status).expect("a status"), Json(json!({ "detail": detail }))).into_response()
}

fn broken() -> Response {
    (StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error").into_response()
}

async fn key(headers: HeaderMap, request: Request, next: Next) -> Response {
    match headers.get("x-api-key").map(|key| key.as_bytes()) {
        None => detail(401, "API Key is missing".into()),
        Some(b"default_key") => next.run(request).await,
        Some(_) => detail(401, "Invalid API Key.".into()),
    }
}

/// The lease a query names, or the answer that it names none.
fn named(held: &Shared, query: &HashMap<String, String>) -> Result<String, Response> {
    let Some(id) = query.get("instance_id") else {
        let missing = json!([{"loc": ["query", "instance_id"], "msg": "field required", "type": "value_error.missing"}]);
        return Err(detail(422, missing));
    };
    if held.lock().unwrap().in_use.contains(id) {
        Ok(id.clone())
    } else {
        Err(detail(400, "Invalid instance UUID".into()))
    }
}

async fn get_instance(State(held): State<Shared>, Query(query): Pairs) -> Response {
    let mut held = held.lock().unwrap();
    held.asked.push(query);
    let Some(port) = held.free.pop_first() else { return detail(503, "No available instances".into()) };
    let id = format!("{}:{port}", uuid::Uuid::new_v4());
    held.in_use.insert(id.clone());
    Json(json!({ "instance_id": id })).into_response()
}

async fn reset(State(held): State<Shared>, Query(query): Pairs) -> Response {
    let id = query.get("instance_id").cloned().unwrap_or_default();
    let mut held = held.lock().unwrap();
    if !held.in_use.remove(&id) {
        return detail(400, "Instance not in use or already released".into());
    }
    let port = id.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).expect("our own id");
    held.free.insert(port);
    Json(json!({"status": "success"})).into_response()
}

async fn screenshot(State(held): State<Shared>, Query(query): Pairs) -> Response {
    if let Err(answer) = named(&held, &query) {
        return answer;
    }
    let picture = [("content-type", "image/png")];
    match held.lock().unwrap().trouble {
        Trouble::None => (picture, PIXEL).into_response(),
        Trouble::DeadBrowsers => (picture, "Internal Server Error").into_response(),
    }
}

async fn execute(State(held): State<Shared>, Query(query): Pairs, Json(body): Json<Value>) -> Response {
    if let Err(answer) = named(&held, &query) {
        return answer;
    }
    let mut held = held.lock().unwrap();
    held.executed.push(body);
    if held.trouble == Trouble::DeadBrowsers {
        return broken();
    }
    Json(json!({"status": "success"})).into_response()
}

async fn metadata(State(held): State<Shared>, Query(query): Pairs) -> Response {
    match named(&held, &query) {
        Ok(_) => Json(json!({"width": 1280, "height": 768})).into_response(),
        Err(answer) => answer,
    }
}

async fn probe(State(held): State<Shared>, Query(query): Pairs) -> Response {
    match (named(&held, &query), held.lock().unwrap().trouble) {
        (Err(answer), _) => answer,
        (Ok(_), Trouble::None) => {
            Json(json!({"status": "success", "message": "Probe successful"})).into_response()
        }
        (Ok(_), Trouble::DeadBrowsers) => detail(500, "Probe failed".into()),
    }
}

fn info(held: &Shared, capacity: usize) -> Response {
    let held = held.lock().unwrap();
    Json(json!({"available": held.free.len(), "capacity": capacity, "in_use": held.in_use})).into_response()
}
