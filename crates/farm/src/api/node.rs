//! A node's endpoints: the master's without `node`.

use axum::{
    Json, Router,
    extract::State,
    http::HeaderMap,
    middleware,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde_json::json;

use super::{
    auth::{self, Key},
    docs,
    input::{Body, Query},
    master::accept,
    openapi::Tier,
    reply::{Answer, success},
};
use crate::{
    metrics,
    node::{Call, LocalNode, Node},
};

pub(crate) fn node_routes(node: LocalNode, key: Key) -> Router {
    let guarded = Router::new()
        .route("/get", post(get_instance))
        .route("/reset", post(reset))
        .route("/info", get(info))
        .merge(instance_calls())
        .route_layer(middleware::from_fn_with_state(key, auth::require));
    guarded.route("/readyz", get(ready)).with_state(node).merge(docs::routes(Tier::Node))
}

/// What is asked of a leased instance: the same on a node and on a lone instance.
pub(crate) fn instance_calls() -> Router<LocalNode> {
    Router::new()
        .route("/screenshot", get(screenshot))
        .route("/execute", post(execute))
        .route("/observe", post(observe))
        .route("/step", post(step))
        .route("/metadata", get(metadata))
        .route("/probe", get(probe))
        .route("/metrics", get(figures))
}

async fn get_instance(State(node): State<LocalNode>, query: Query) -> Answer {
    let granted = node.get(&query.get_request()?).await?;
    let answer = Json(json!({"instance_id": granted.id()})).into_response();
    granted.keep();
    Ok(answer)
}

async fn reset(State(node): State<LocalNode>, query: Query) -> Answer {
    node.reset(&query.instance()?).await?;
    Ok(success())
}

async fn info(State(node): State<LocalNode>) -> Answer {
    Ok(Json(node.info().await?).into_response())
}

async fn screenshot(State(node): State<LocalNode>, query: Query) -> Answer {
    Ok(node.call(&query.instance()?, query.screenshot()?).await?)
}

async fn execute(State(node): State<LocalNode>, query: Query, body: Body) -> Answer {
    Ok(node.call(&body.instance_or(&query)?, body.command()?).await?)
}

async fn observe(State(node): State<LocalNode>, query: Query, headers: HeaderMap, body: Body) -> Answer {
    Ok(node.call(&body.instance_or(&query)?, body.observe(false, accept(&headers))?).await?)
}

async fn step(State(node): State<LocalNode>, query: Query, headers: HeaderMap, body: Body) -> Answer {
    Ok(node.call(&body.instance_or(&query)?, body.observe(true, accept(&headers))?).await?)
}

async fn metadata(State(node): State<LocalNode>, query: Query) -> Answer {
    Ok(node.call(&query.instance()?, Call::Metadata).await?)
}

async fn probe(State(node): State<LocalNode>, query: Query) -> Answer {
    Ok(node.call(&query.instance()?, Call::Probe).await?)
}

async fn figures(State(node): State<LocalNode>) -> Response {
    docs::metrics(&metrics::render_pool(&node.0))
}

pub(crate) async fn ready(State(node): State<LocalNode>) -> Response {
    let counts = node.0.counts();
    docs::readiness(
        counts.available + counts.in_use > 0 && !node.0.is_closing(),
        "no instance is up, or the node is stopping",
    )
}
