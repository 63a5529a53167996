//! The endpoints of a node: those of the master without `node`. A single instance has the same ones, with ids that do not
//! contain a slot.

use axum::{
    Json, Router,
    extract::{Path, State},
    http::HeaderMap,
    middleware,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use proto::{InstanceId, LeaseId};
use serde_json::json;

use super::{
    auth::{self, Key},
    cdp, docs, live,
    master::accept,
    openapi::Tier,
    request::{
        Body, FileBody, FileName, OptionalBody, Query, accept_file, accept_storage_state, recording_call,
    },
    response::{ApiResult, drain_status, success, with_addresses},
};
use crate::{
    access::LeaseAccess,
    error::ApiError,
    metrics,
    node::{Call, LocalNode, Node},
};

/// The state of the handlers.
#[derive(Clone)]
pub(crate) struct NodeApi {
    pub(crate) node: LocalNode,
    /// The only slot of a single instance, whose clients omit it from their ids.
    pub(crate) single_slot: Option<u16>,
}

impl NodeApi {
    fn parse_id(&self, text: &str) -> Result<InstanceId, ApiError> {
        match (self.single_slot, text.parse::<LeaseId>()) {
            (Some(slot), Ok(lease)) => Ok(InstanceId { lease, slot }),
            _ => Ok(text.parse()?),
        }
    }

    fn id(&self, query: &Query) -> Result<InstanceId, ApiError> {
        self.parse_id(query.required("instance_id")?)
    }

    /// Returns the instance id from the query or, if it has none, from the body.
    fn id_or_body(&self, query: &Query, body: &Body) -> Result<InstanceId, ApiError> {
        if query.has("instance_id") { self.id(query) } else { self.parse_id(body.text("instance_id")?) }
    }
}

pub(crate) fn node_routes(node: LocalNode, key: Key) -> Router {
    let authenticated = Router::new()
        .route("/get", accept_storage_state(post(get_instance)))
        .route("/fork", post(fork))
        .route("/info", get(info))
        .route("/drain", post(drain))
        .route("/undrain", post(undrain))
        .merge(instance_calls())
        .route_layer(middleware::from_fn_with_state(key, auth::require));
    let api = NodeApi { node, single_slot: None };
    authenticated
        .route("/readyz", get(ready))
        .merge(cdp::node_routes())
        .merge(live::node_routes())
        .with_state(api)
        .merge(docs::routes(Tier::Node))
}

/// The calls to a leased instance: the same on a node and on a single instance.
pub(crate) fn instance_calls() -> Router<NodeApi> {
    Router::new()
        .route("/session", get(session))
        .route("/reset", post(reset))
        .route("/screenshot", get(screenshot))
        .route("/execute", post(execute))
        .route("/observe", post(observe))
        .route("/step", post(step))
        .route("/computer", post(computer))
        .route("/metadata", get(metadata))
        .route("/probe", get(probe))
        .route("/files", get(list_files))
        .route("/files/{name}", accept_file(get(read_file).put(write_file).delete(delete_file)))
        .route("/storage_state", accept_storage_state(get(storage_state).put(set_storage_state)))
        .route("/recording/{name}", get(recording))
        .route("/network", get(network))
        .route("/metrics", get(pool_metrics))
}

async fn get_instance(
    State(api): State<NodeApi>,
    headers: HeaderMap,
    query: Query,
    body: OptionalBody,
) -> ApiResult {
    let lease = api.node.get(&query.get_request(&body)?).await?;
    let response = with_addresses(json!({"instance_id": lease.id()}), lease.access(), &headers);
    lease.deliver();
    Ok(response)
}

async fn fork(State(api): State<NodeApi>, headers: HeaderMap, query: Query) -> ApiResult {
    let lease = api.node.get(&query.fork_request(api.id(&query)?)?).await?;
    let response = with_addresses(json!({"instance_id": lease.id()}), lease.access(), &headers);
    lease.deliver();
    Ok(response)
}

async fn session(State(api): State<NodeApi>, headers: HeaderMap, query: Query) -> ApiResult {
    let id = api.id(&query)?;
    let secrets = api.node.0.secrets(&id)?;
    let (id, access) = if api.single_slot.is_some() {
        (json!(id.lease), LeaseAccess::new(&id.lease, &secrets))
    } else {
        (json!(id), LeaseAccess::new(&id, &secrets))
    };
    Ok(with_addresses(json!({"instance_id": id}), Some(&access), &headers))
}

async fn reset(State(api): State<NodeApi>, query: Query) -> ApiResult {
    api.node.reset(&api.id(&query)?).await?;
    Ok(success())
}

async fn info(State(api): State<NodeApi>) -> ApiResult {
    Ok(Json(api.node.info().await?).into_response())
}

async fn drain(State(api): State<NodeApi>) -> ApiResult {
    Ok(drain_status(api.node.set_draining(true).await?))
}

async fn undrain(State(api): State<NodeApi>) -> ApiResult {
    Ok(drain_status(api.node.set_draining(false).await?))
}

async fn screenshot(State(api): State<NodeApi>, query: Query) -> ApiResult {
    Ok(api.node.call(&api.id(&query)?, query.screenshot()?).await?)
}

async fn execute(State(api): State<NodeApi>, query: Query, body: Body) -> ApiResult {
    Ok(api.node.call(&api.id_or_body(&query, &body)?, body.command()?).await?)
}

async fn observe(State(api): State<NodeApi>, query: Query, headers: HeaderMap, body: Body) -> ApiResult {
    Ok(api.node.call(&api.id_or_body(&query, &body)?, body.observe(false, accept(&headers))?).await?)
}

async fn step(State(api): State<NodeApi>, query: Query, headers: HeaderMap, body: Body) -> ApiResult {
    Ok(api.node.call(&api.id_or_body(&query, &body)?, body.observe(true, accept(&headers))?).await?)
}

async fn computer(State(api): State<NodeApi>, query: Query, body: Body) -> ApiResult {
    Ok(api.node.call(&api.id_or_body(&query, &body)?, body.computer()?).await?)
}

async fn metadata(State(api): State<NodeApi>, query: Query) -> ApiResult {
    Ok(api.node.call(&api.id(&query)?, Call::Metadata).await?)
}

async fn probe(State(api): State<NodeApi>, query: Query) -> ApiResult {
    Ok(api.node.call(&api.id(&query)?, Call::Probe).await?)
}

async fn list_files(State(api): State<NodeApi>, query: Query) -> ApiResult {
    Ok(api.node.call(&api.id(&query)?, Call::ListFiles).await?)
}

async fn read_file(State(api): State<NodeApi>, FileName(name): FileName, query: Query) -> ApiResult {
    Ok(api.node.call(&api.id(&query)?, Call::ReadFile(name)).await?)
}

async fn write_file(
    State(api): State<NodeApi>,
    FileName(name): FileName,
    query: Query,
    FileBody(content): FileBody,
) -> ApiResult {
    Ok(api.node.call(&api.id(&query)?, Call::WriteFile { name, content }).await?)
}

async fn delete_file(State(api): State<NodeApi>, FileName(name): FileName, query: Query) -> ApiResult {
    Ok(api.node.call(&api.id(&query)?, Call::DeleteFile(name)).await?)
}

async fn recording(State(api): State<NodeApi>, Path(name): Path<String>, query: Query) -> ApiResult {
    Ok(api.node.call(&api.id(&query)?, recording_call(&name)?).await?)
}

async fn network(State(api): State<NodeApi>, query: Query) -> ApiResult {
    Ok(api.node.call(&api.id(&query)?, Call::Network).await?)
}

async fn storage_state(State(api): State<NodeApi>, query: Query) -> ApiResult {
    Ok(api.node.call(&api.id(&query)?, Call::StorageState).await?)
}

async fn set_storage_state(State(api): State<NodeApi>, query: Query, body: Body) -> ApiResult {
    Ok(api.node.call(&api.id(&query)?, body.storage_state()?).await?)
}

async fn pool_metrics(State(api): State<NodeApi>) -> Response {
    docs::metrics(&metrics::render_pool(&api.node.0))
}

pub(crate) async fn ready(State(api): State<NodeApi>) -> Response {
    docs::readiness(api.node.0.is_ready(), "no instance is ready, or the node is being drained or stopped")
}
