//! A node's endpoints: the master's without `node`. A lone instance has the same, with ids that name no slot.

use axum::{
    Json, Router,
    extract::State,
    http::HeaderMap,
    middleware,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use proto::{InstanceId, LeaseId};
use serde_json::json;

use super::{
    auth::{self, Key},
    docs,
    input::{Body, Query},
    master::accept,
    openapi::Tier,
    reply::{Answer, drained, success},
};
use crate::{
    error::FarmError,
    metrics,
    node::{Call, LocalNode, Node},
};

/// The pool as it is asked over HTTP.
#[derive(Clone)]
pub(crate) struct Face {
    pub(crate) node: LocalNode,
    /// The only slot there is, when clients leave it out of their ids.
    pub(crate) lone: Option<u16>,
}

impl Face {
    fn id(&self, text: &str) -> Result<InstanceId, FarmError> {
        match (self.lone, text.parse::<LeaseId>()) {
            (Some(slot), Ok(lease)) => Ok(InstanceId { lease, slot }),
            _ => Ok(text.parse()?),
        }
    }

    pub(crate) fn named(&self, query: &Query) -> Result<InstanceId, FarmError> {
        self.id(query.need("instance_id")?)
    }

    /// The instance from the query, or from the body.
    fn named_in(&self, query: &Query, body: &Body) -> Result<InstanceId, FarmError> {
        if query.has("instance_id") { self.named(query) } else { self.id(body.text("instance_id")?) }
    }
}

pub(crate) fn node_routes(node: LocalNode, key: Key) -> Router {
    let guarded = Router::new()
        .route("/get", post(get_instance))
        .route("/info", get(info))
        .route("/drain", post(drain))
        .route("/undrain", post(undrain))
        .merge(instance_calls())
        .route_layer(middleware::from_fn_with_state(key, auth::require));
    let face = Face { node, lone: None };
    guarded.route("/readyz", get(ready)).with_state(face).merge(docs::routes(Tier::Node))
}

/// What is asked of a leased instance: the same on a node and on a lone instance.
pub(crate) fn instance_calls() -> Router<Face> {
    Router::new()
        .route("/reset", post(reset))
        .route("/screenshot", get(screenshot))
        .route("/execute", post(execute))
        .route("/observe", post(observe))
        .route("/step", post(step))
        .route("/metadata", get(metadata))
        .route("/probe", get(probe))
        .route("/metrics", get(figures))
}

async fn get_instance(State(face): State<Face>, query: Query) -> Answer {
    let granted = face.node.get(&query.get_request()?).await?;
    let answer = Json(json!({"instance_id": granted.id()})).into_response();
    granted.keep();
    Ok(answer)
}

async fn reset(State(face): State<Face>, query: Query) -> Answer {
    face.node.reset(&face.named(&query)?).await?;
    Ok(success())
}

async fn info(State(face): State<Face>) -> Answer {
    Ok(Json(face.node.info().await?).into_response())
}

async fn drain(State(face): State<Face>) -> Answer {
    Ok(drained(face.node.drain(true).await?))
}

async fn undrain(State(face): State<Face>) -> Answer {
    Ok(drained(face.node.drain(false).await?))
}

async fn screenshot(State(face): State<Face>, query: Query) -> Answer {
    Ok(face.node.call(&face.named(&query)?, query.screenshot()?).await?)
}

async fn execute(State(face): State<Face>, query: Query, body: Body) -> Answer {
    Ok(face.node.call(&face.named_in(&query, &body)?, body.command()?).await?)
}

async fn observe(State(face): State<Face>, query: Query, headers: HeaderMap, body: Body) -> Answer {
    Ok(face.node.call(&face.named_in(&query, &body)?, body.observe(false, accept(&headers))?).await?)
}

async fn step(State(face): State<Face>, query: Query, headers: HeaderMap, body: Body) -> Answer {
    Ok(face.node.call(&face.named_in(&query, &body)?, body.observe(true, accept(&headers))?).await?)
}

async fn metadata(State(face): State<Face>, query: Query) -> Answer {
    Ok(face.node.call(&face.named(&query)?, Call::Metadata).await?)
}

async fn probe(State(face): State<Face>, query: Query) -> Answer {
    Ok(face.node.call(&face.named(&query)?, Call::Probe).await?)
}

async fn figures(State(face): State<Face>) -> Response {
    docs::metrics(&metrics::render_pool(&face.node.0))
}

pub(crate) async fn ready(State(face): State<Face>) -> Response {
    docs::readiness(face.node.0.is_open(), "no instance is up, or the node is being drained or stopped")
}
