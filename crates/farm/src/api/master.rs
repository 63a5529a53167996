//! The endpoints of the master.

use axum::{
    Json, Router,
    extract::{Path, State},
    http::{HeaderMap, header::ACCEPT},
    middleware,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde_json::json;

use super::{
    auth::{self, Key},
    cdp, docs, home, live,
    openapi::Tier,
    request::{
        Body, FileBody, FileName, OptionalBody, Query, accept_file, accept_storage_state, recording_call,
    },
    response::{ApiResult, ErrorResponse, drain_status, success, with_addresses},
};
use crate::{
    audit,
    master::{LeaseOffer, Master},
    metrics::{self, MasterMetrics},
    node::{Call, GetRequest},
};

pub(crate) fn master_routes(master: Master, key: Key) -> Router {
    let authenticated = Router::new()
        .route("/get", accept_storage_state(post(get_instance)))
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
        .route("/fork", post(fork))
        .route("/info", get(info))
        .route("/drain", post(drain))
        .route("/undrain", post(undrain))
        .route("/metrics", get(master_metrics))
        .route_layer(middleware::from_fn_with_state(key, auth::require));
    authenticated
        .route("/readyz", get(ready))
        .merge(cdp::master_routes())
        .merge(live::master_routes())
        .with_state(master)
        .merge(docs::routes(Tier::Master))
        .merge(home::routes())
}

async fn get_instance(
    State(master): State<Master>,
    headers: HeaderMap,
    query: Query,
    body: OptionalBody,
) -> ApiResult {
    let request = query.get_request(&body)?;
    let offer = master.get(&request).await?;
    Ok(deliver(&master, offer, &request, &headers).await)
}

/// Starts a lease in the state of another, on the same node.
async fn fork(State(master): State<Master>, headers: HeaderMap, query: Query) -> ApiResult {
    let request = query.fork_request(query.instance()?)?;
    let offer = master.fork(query.required("node")?, &request).await?;
    Ok(deliver(&master, offer, &request, &headers).await)
}

async fn deliver(master: &Master, offer: LeaseOffer, request: &GetRequest, headers: &HeaderMap) -> Response {
    let access = match offer.access() {
        Some(access) => Some(access.clone()),
        None => master.access(&offer.lease.node, &offer.lease.id).await.unwrap_or_default(),
    };
    let answer = json!({"instance_id": offer.lease.id, "node": offer.lease.node});
    let response = with_addresses(answer, access.as_ref(), headers);
    audit::given(&offer.lease.id, &offer.lease.node, request.key.as_deref());
    offer.deliver();
    response
}

async fn session(State(master): State<Master>, headers: HeaderMap, query: Query) -> ApiResult {
    let (node, id) = (query.required("node")?, query.instance()?);
    let access = master.access(node, &id).await?;
    Ok(with_addresses(json!({"instance_id": id, "node": node}), access.as_ref(), &headers))
}

async fn reset(State(master): State<Master>, query: Query) -> ApiResult {
    master.reset(query.required("node")?, &query.instance()?).await?;
    Ok(success())
}

async fn screenshot(State(master): State<Master>, query: Query) -> ApiResult {
    let outcome =
        async { master.call(query.required("node")?, &query.instance()?, query.screenshot()?).await };
    outcome.await.map_err(ErrorResponse::with_status)
}

async fn execute(State(master): State<Master>, body: Body) -> ApiResult {
    let outcome = async { master.call(body.node()?, &body.instance()?, body.command()?).await };
    outcome.await.map_err(ErrorResponse::with_status)
}

async fn observe(State(master): State<Master>, headers: HeaderMap, body: Body) -> ApiResult {
    Ok(master.call(body.node()?, &body.instance()?, body.observe(false, accept(&headers))?).await?)
}

async fn step(State(master): State<Master>, headers: HeaderMap, body: Body) -> ApiResult {
    Ok(master.call(body.node()?, &body.instance()?, body.observe(true, accept(&headers))?).await?)
}

async fn computer(State(master): State<Master>, body: Body) -> ApiResult {
    Ok(master.call(body.node()?, &body.instance()?, body.computer()?).await?)
}

async fn metadata(State(master): State<Master>, query: Query) -> ApiResult {
    Ok(master.call(query.required("node")?, &query.instance()?, Call::Metadata).await?)
}

async fn probe(State(master): State<Master>, query: Query) -> ApiResult {
    Ok(master.call(query.required("node")?, &query.instance()?, Call::Probe).await?)
}

async fn list_files(State(master): State<Master>, query: Query) -> ApiResult {
    Ok(master.call(query.required("node")?, &query.instance()?, Call::ListFiles).await?)
}

async fn read_file(State(master): State<Master>, FileName(name): FileName, query: Query) -> ApiResult {
    Ok(master.call(query.required("node")?, &query.instance()?, Call::ReadFile(name)).await?)
}

async fn write_file(
    State(master): State<Master>,
    FileName(name): FileName,
    query: Query,
    FileBody(content): FileBody,
) -> ApiResult {
    let call = Call::WriteFile { name, content };
    Ok(master.call(query.required("node")?, &query.instance()?, call).await?)
}

async fn delete_file(State(master): State<Master>, FileName(name): FileName, query: Query) -> ApiResult {
    Ok(master.call(query.required("node")?, &query.instance()?, Call::DeleteFile(name)).await?)
}

async fn network(State(master): State<Master>, query: Query) -> ApiResult {
    Ok(master.call(query.required("node")?, &query.instance()?, Call::Network).await?)
}

async fn recording(State(master): State<Master>, Path(name): Path<String>, query: Query) -> ApiResult {
    Ok(master.call(query.required("node")?, &query.instance()?, recording_call(&name)?).await?)
}

async fn storage_state(State(master): State<Master>, query: Query) -> ApiResult {
    Ok(master.call(query.required("node")?, &query.instance()?, Call::StorageState).await?)
}

async fn set_storage_state(State(master): State<Master>, query: Query, body: Body) -> ApiResult {
    Ok(master.call(query.required("node")?, &query.instance()?, body.storage_state()?).await?)
}

async fn drain(State(master): State<Master>, query: Query) -> ApiResult {
    Ok(drain_status(master.set_draining(query.required("node")?, true).await?))
}

async fn undrain(State(master): State<Master>, query: Query) -> ApiResult {
    Ok(drain_status(master.set_draining(query.required("node")?, false).await?))
}

async fn info(State(master): State<Master>) -> Response {
    Json(master.info().await).into_response()
}

async fn master_metrics(State(master): State<Master>) -> Response {
    let entries = master.table().distinct();
    let healthy: Vec<_> =
        entries.iter().filter(|entry| entry.is_healthy()).map(|entry| entry.info()).collect();
    let metrics = MasterMetrics {
        nodes: entries.len(),
        healthy_nodes: healthy.len(),
        queue_length: master.waiting(),
        capacity: healthy.iter().map(|info| info.capacity).sum(),
        available: healthy.iter().map(|info| info.available).sum(),
    };
    docs::metrics(&metrics::render_master(&metrics, master.local_pool().as_ref()))
}

async fn ready(State(master): State<Master>) -> Response {
    let has_healthy_node = master.table().entries().iter().any(|entry| entry.is_healthy());
    docs::readiness(has_healthy_node && !master.is_stopping(), "no healthy node, or the farm is stopping")
}

pub(crate) fn accept(headers: &HeaderMap) -> Option<&str> {
    headers.get(ACCEPT).and_then(|value| value.to_str().ok())
}
