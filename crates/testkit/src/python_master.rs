//! A master that behaves like the Python system's: it finds nodes only through database 1 of Redis, calls `/info` of
//! each node on every request, sends `/get` to the node with the most `available`, and reads only the fields of the
//! contract. Tests use it to check that our nodes work with such masters.

use std::{collections::HashMap, sync::Arc};

use axum::{
    Json, Router,
    body::Bytes,
    extract::{Query, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde_json::{Map, Value, json};
use tokio::{net::TcpListener, task::AbortHandle};

use crate::{
    http::{Http, Reply},
    redis::Redis,
};

/// Runs until dropped.
pub struct PythonMaster {
    pub url: String,
    serving: AbortHandle,
}

struct MasterState {
    redis: Arc<Redis>,
    key: String,
}

type SharedState = State<Arc<MasterState>>;
type Pairs = Query<HashMap<String, String>>;

impl PythonMaster {
    pub async fn start(redis: Arc<Redis>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let state = Arc::new(MasterState { redis, key: "default_key".into() });
        let routes = Router::new()
            .route("/get", post(get_instance))
            .route(
                "/reset",
                post(async |state: SharedState, query: Pairs| forward(state, query, "/reset", true).await),
            )
            .route(
                "/screenshot",
                get(async |state: SharedState, query: Pairs| {
                    forward(state, query, "/screenshot", false).await
                }),
            )
            .route(
                "/metadata",
                get(async |state: SharedState, query: Pairs| forward(state, query, "/metadata", false).await),
            )
            .route(
                "/probe",
                get(async |state: SharedState, query: Pairs| forward(state, query, "/probe", false).await),
            )
            .route("/execute", post(execute))
            .route("/info", get(info))
            .with_state(state);
        let serving = tokio::spawn(async move {
            axum::serve(listener, routes).await.expect("the server runs");
        });
        Self { url, serving: serving.abort_handle() }
    }
}

impl Drop for PythonMaster {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl MasterState {
    fn http(&self, url: &str) -> Http {
        Http::new(url, Some(&self.key))
    }

    /// Returns the registered nodes that respond, with the required fields: url, available, capacity, leases.
    async fn nodes(&self) -> Vec<(String, u64, u64, Vec<String>)> {
        let mut nodes = Vec::new();
        for (_, url) in self.redis.registered_nodes().await {
            let Ok(reply) = self.http(&url).try_send(hyper::Method::GET, "/info", &[], "", &[]).await else {
                continue;
            };
            let info = reply.ok();
            let count = |name: &str| info[name].as_u64().unwrap_or_else(|| panic!("no {name} in {info}"));
            let ids = info["in_use"].as_array().unwrap_or_else(|| panic!("no in_use in {info}"));
            let ids = ids.iter().map(|id| id.as_str().expect("an id").to_owned()).collect();
            nodes.push((url.clone(), count("available"), count("capacity"), ids));
        }
        nodes
    }
}

fn error(status: u16, detail: &str) -> Response {
    (StatusCode::from_u16(status).expect("a status"), Json(json!({ "detail": detail }))).into_response()
}

fn forward_reply(reply: Reply) -> Response {
    let content_type = reply.content_type().to_owned();
    let status = StatusCode::from_u16(reply.status).expect("a status");
    (status, [("content-type", content_type)], reply.body).into_response()
}

async fn get_instance(State(state): SharedState, Query(query): Pairs) -> Response {
    let nodes = state.nodes().await;
    let freest = nodes.iter().filter(|(_, available, ..)| *available > 0).max_by_key(|(_, free, ..)| *free);
    let Some((node, ..)) = freest else {
        return error(503, "No available nodes with capacity to create new instance");
    };
    let lifetime = query.get("lifetime_mins").map_or("60", String::as_str);
    let reply = state.http(node).post("/get", &[("lifetime_mins", lifetime)]).await;
    if reply.status != 200 {
        return error(503, "No available nodes with capacity to create new instance");
    }
    Json(json!({"instance_id": reply.json()["instance_id"], "node": node})).into_response()
}

async fn forward(State(state): SharedState, Query(query): Pairs, path: &'static str, post: bool) -> Response {
    let Some(node) = query.get("node") else { return error(422, "node is missing") };
    let rest: Vec<(&str, &str)> = query
        .iter()
        .filter(|(name, _)| *name != "node")
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let http = state.http(node);
    forward_reply(if post { http.post(path, &rest).await } else { http.get(path, &rest).await })
}

async fn execute(State(state): SharedState, body: Bytes) -> Response {
    let mut body: Map<String, Value> = serde_json::from_slice(&body).expect("a JSON object");
    let mut take = |name: &str| body.remove(name).and_then(|value| Some(value.as_str()?.to_owned()));
    let (Some(node), Some(id)) = (take("node"), take("instance_id")) else {
        return error(422, "node and instance_id are required");
    };
    forward_reply(state.http(&node).post_json("/execute", &[("instance_id", &id)], &body.into()).await)
}

async fn info(State(state): SharedState) -> Response {
    let nodes: Vec<Value> = state
        .nodes()
        .await
        .into_iter()
        .map(|(url, available, capacity, ids)| {
            json!({"url": url, "hash": url, "healthy": true, "capacity": capacity, "available": available, "instances": ids})
        })
        .collect();
    Json(json!({ "nodes": nodes })).into_response()
}
