//! A node without a browser that answers like the Python system's: the same paths and shapes, errors without a code,
//! lists in `detail` for bad queries, and 200 with "Internal Server Error" for a screenshot when its browser is dead.
//! Tests use it to check that our master works with such nodes.

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

/// A PNG file of one black pixel.
const PIXEL: &[u8] = &[
    137, 80, 78, 71, 13, 10, 26, 10, 0, 0, 0, 13, 73, 72, 68, 82, 0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0, 58,
    126, 155, 85, 0, 0, 0, 10, 73, 68, 65, 84, 8, 215, 99, 96, 0, 0, 0, 2, 0, 1, 226, 33, 188, 51, 0, 0, 0,
    0, 73, 69, 78, 68, 174, 66, 96, 130,
];

/// The fault that the node simulates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NodeFault {
    #[default]
    None,
    /// Its browsers are dead and the node has not noticed.
    DeadBrowsers,
}

#[derive(Default)]
struct NodeState {
    free: BTreeSet<u16>,
    in_use: BTreeSet<String>,
    fault: NodeFault,
    /// The bodies of all `/execute` requests.
    executed: Vec<Value>,
    get_queries: Vec<HashMap<String, String>>,
}

type SharedState = Arc<Mutex<NodeState>>;
type Pairs = Query<HashMap<String, String>>;

/// Runs until dropped.
pub struct PythonNode {
    pub url: String,
    capacity: usize,
    state: SharedState,
    serving: AbortHandle,
}

impl PythonNode {
    pub async fn start(capacity: u16) -> Self {
        let state: SharedState = Arc::default();
        state.lock().unwrap().free = (9000..9000 + capacity).collect();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let routes = routes(Arc::clone(&state), usize::from(capacity));
        let serving = tokio::spawn(async move {
            axum::serve(listener, routes).await.expect("the server runs");
        });
        Self { url, capacity: capacity.into(), state, serving: serving.abort_handle() }
    }

    fn state(&self) -> MutexGuard<'_, NodeState> {
        self.state.lock().unwrap()
    }

    pub fn set_fault(&self, fault: NodeFault) {
        self.state().fault = fault;
    }

    pub fn in_use(&self) -> usize {
        self.state().in_use.len()
    }

    pub fn free(&self) -> usize {
        self.capacity - self.in_use()
    }

    pub fn executed(&self) -> Vec<Value> {
        self.state().executed.clone()
    }

    pub fn get_queries(&self) -> Vec<HashMap<String, String>> {
        self.state().get_queries.clone()
    }
}

impl Drop for PythonNode {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn routes(state: SharedState, capacity: usize) -> Router {
    Router::new()
        .route("/get", post(get_instance))
        .route("/reset", post(reset))
        .route("/screenshot", get(screenshot))
        .route("/execute", post(execute))
        .route("/metadata", get(metadata))
        .route("/probe", get(probe))
        .route("/info", get(async move |State(state): State<SharedState>| info(&state, capacity)))
        .layer(middleware::from_fn(check_key))
        .with_state(state)
}

fn detail(status: u16, detail: impl Into<Value>) -> Response {
    let detail = detail.into();
    (StatusCode::from_u16(status).expect("a status"), Json(json!({ "detail": detail }))).into_response()
}

fn internal_error() -> Response {
    (StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error").into_response()
}

async fn check_key(headers: HeaderMap, request: Request, next: Next) -> Response {
    match headers.get("x-api-key").map(hyper::http::HeaderValue::as_bytes) {
        None => detail(401, "API Key is missing"),
        Some(b"default_key") => next.run(request).await,
        Some(_) => detail(401, "Invalid API Key."),
    }
}

/// Returns the lease named by a query, or the error response.
fn find_lease(state: &SharedState, query: &HashMap<String, String>) -> Result<String, Box<Response>> {
    let Some(id) = query.get("instance_id") else {
        let missing = json!([{"loc": ["query", "instance_id"], "msg": "field required", "type": "value_error.missing"}]);
        return Err(Box::new(detail(422, missing)));
    };
    if state.lock().unwrap().in_use.contains(id) {
        Ok(id.clone())
    } else {
        Err(Box::new(detail(400, "Invalid instance UUID")))
    }
}

async fn get_instance(State(state): State<SharedState>, Query(query): Pairs) -> Response {
    let mut state = state.lock().unwrap();
    state.get_queries.push(query);
    let Some(port) = state.free.pop_first() else { return detail(503, "No available instances") };
    let id = format!("{}:{port}", uuid::Uuid::new_v4());
    state.in_use.insert(id.clone());
    Json(json!({ "instance_id": id })).into_response()
}

async fn reset(State(state): State<SharedState>, Query(query): Pairs) -> Response {
    let id = query.get("instance_id").cloned().unwrap_or_default();
    let mut state = state.lock().unwrap();
    if !state.in_use.remove(&id) {
        return detail(400, "Instance not in use or already released");
    }
    let port = id.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).expect("an id of this node");
    state.free.insert(port);
    Json(json!({"status": "success"})).into_response()
}

async fn screenshot(State(state): State<SharedState>, Query(query): Pairs) -> Response {
    if let Err(answer) = find_lease(&state, &query) {
        return *answer;
    }
    let content_type = [("content-type", "image/png")];
    match state.lock().unwrap().fault {
        NodeFault::None => (content_type, PIXEL).into_response(),
        NodeFault::DeadBrowsers => (content_type, "Internal Server Error").into_response(),
    }
}

async fn execute(State(state): State<SharedState>, Query(query): Pairs, Json(body): Json<Value>) -> Response {
    if let Err(answer) = find_lease(&state, &query) {
        return *answer;
    }
    let mut state = state.lock().unwrap();
    state.executed.push(body);
    if state.fault == NodeFault::DeadBrowsers {
        return internal_error();
    }
    let command = state.executed.last().and_then(Value::as_object).and_then(|body| body.keys().next());
    Json(match command.map(String::as_str) {
        Some("get_page_metadata") => json!({"title": "A page", "url": "http://site.test/"}),
        _ => json!({"status": "success"}),
    })
    .into_response()
}

async fn metadata(State(state): State<SharedState>, Query(query): Pairs) -> Response {
    match find_lease(&state, &query) {
        Ok(_) => Json(json!({"width": 1280, "height": 768})).into_response(),
        Err(answer) => *answer,
    }
}

async fn probe(State(state): State<SharedState>, Query(query): Pairs) -> Response {
    match (find_lease(&state, &query), state.lock().unwrap().fault) {
        (Err(answer), _) => *answer,
        (Ok(_), NodeFault::None) => {
            Json(json!({"status": "success", "message": "Probe successful"})).into_response()
        }
        (Ok(_), NodeFault::DeadBrowsers) => detail(500, "Probe failed"),
    }
}

fn info(state: &SharedState, capacity: usize) -> Response {
    let state = state.lock().unwrap();
    Json(json!({"available": state.free.len(), "capacity": capacity, "in_use": state.in_use})).into_response()
}
