//! A master that behaves as the Python system's does: finds nodes in database 1 of Redis and by nothing else, asks each
//! for `/info` at every turn, sends `/get` to the one with the most `available`, and reads only the fields of the
//! contract. It holds our nodes to it.

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

struct Inside {
    redis: Arc<Redis>,
    key: String,
}

type Shared = State<Arc<Inside>>;
type Pairs = Query<HashMap<String, String>>;

impl PythonMaster {
    pub async fn start(redis: Arc<Redis>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let inside = Arc::new(Inside { redis, key: "default_key".into() });
        let routes = Router::new()
            .route("/get", post(get_instance))
            .route(
                "/reset",
                post(async |state: Shared, query: Pairs| pass(state, query, "/reset", true).await),
            )
            .route(
                "/screenshot",
                get(async |state: Shared, query: Pairs| pass(state, query, "/screenshot", false).await),
            )
            .route(
                "/metadata",
                get(async |state: Shared, query: Pairs| pass(state, query, "/metadata", false).await),
            )
            .route(
                "/probe",
                get(async |state: Shared, query: Pairs| pass(state, query, "/probe", false).await),
            )
            .route("/execute", post(execute))
            .route("/info", get(info))
            .with_state(inside);
        let serving = tokio::spawn(async move {
            axum::serve(listener, routes).await.expect("it serves");
        });
        Self { url, serving: serving.abort_handle() }
    }
}

impl Drop for PythonMaster {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Inside {
    fn http(&self, url: &str) -> Http {
        Http::new(url, Some(&self.key))
    }

    /// The nodes that are registered and answer, with the fields such a master reads, all of which must be there.
    async fn nodes(&self) -> Vec<(String, u64, u64, Vec<String>)> {
        let mut nodes = Vec::new();
        for (_, url) in self.redis.registered().await {
            let Ok(reply) = self.http(&url).try_send(hyper::Method::GET, "/info", &[], "", &[]).await else {
                continue;
            };
            let told = reply.ok();
            let count = |name: &str| told[name].as_u64().unwrap_or_else(|| panic!("{name} in {told}"));
            let ids = told["in_use"].as_array().unwrap_or_else(|| panic!("in_use in {told}"));
            let ids = ids.iter().map(|id| id.as_str().expect("an id").to_owned()).collect();
            nodes.push((url.clone(), count("available"), count("capacity"), ids));
        }
        nodes
    }
}

fn detail(status: u16, words: &str) -> Response {
    (StatusCode::from_u16(status).expect("a status"), Json(json!({ "detail": words }))).into_response()
}

fn passed(reply: Reply) -> Response {
    let kind = reply.kind().to_owned();
    let status = StatusCode::from_u16(reply.status).expect("a status");
    (status, [("content-type", kind)], reply.body).into_response()
}

async fn get_instance(State(inside): Shared, Query(query): Pairs) -> Response {
    let nodes = inside.nodes().await;
    let freest = nodes.iter().filter(|(_, available, ..)| *available > 0).max_by_key(|(_, free, ..)| *free);
    let Some((node, ..)) = freest else {
        return detail(503, "No available nodes with capacity to create new instance");
    };
    let lifetime = query.get("lifetime_mins").map_or("60", String::as_str);
    let reply = inside.http(node).post("/get", &[("lifetime_mins", lifetime)]).await;
    if reply.status != 200 {
        return detail(503, "No available nodes with capacity to create new instance");
    }
    Json(json!({"instance_id": reply.json()["instance_id"], "node": node})).into_response()
}

async fn pass(State(inside): Shared, Query(query): Pairs, path: &'static str, post: bool) -> Response {
    let Some(node) = query.get("node") else { return detail(422, "node is missing") };
    let rest: Vec<(&str, &str)> = query
        .iter()
        .filter(|(name, _)| *name != "node")
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let http = inside.http(node);
    passed(if post { http.post(path, &rest).await } else { http.get(path, &rest).await })
}

async fn execute(State(inside): Shared, body: Bytes) -> Response {
    let mut body: Map<String, Value> = serde_json::from_slice(&body).expect("a JSON object");
    let mut take = |name: &str| body.remove(name).and_then(|value| Some(value.as_str()?.to_owned()));
    let (Some(node), Some(id)) = (take("node"), take("instance_id")) else {
        return detail(422, "node and instance_id are needed");
    };
    passed(inside.http(&node).post_json("/execute", &[("instance_id", &id)], &body.into()).await)
}

async fn info(State(inside): Shared) -> Response {
    let nodes: Vec<Value> = inside
        .nodes()
        .await
        .into_iter()
        .map(|(url, available, capacity, ids)| {
            json!({"url": url, "hash": url, "healthy": true, "capacity": capacity, "available": available, "instances": ids})
        })
        .collect();
    Json(json!({ "nodes": nodes })).into_response()
}
