//! The endpoints of a single instance: a server with one slot, whose instance ids are plain UUIDs.

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
    cdp, docs, live,
    node::{NodeApi, instance_calls, ready},
    openapi::Tier,
    request::{OptionalBody, Query, accept_storage_state},
    response::{ApiResult, with_addresses},
};
use crate::{
    access::LeaseAccess,
    error::ApiError,
    node::{LocalNode, Node},
    pool::PoolCounts,
};

pub(crate) fn instance_routes(node: LocalNode, slot: u16, key: Key) -> Router {
    let authenticated = Router::new()
        .route("/get", accept_storage_state(post(get_instance)))
        .route("/info", get(info))
        .merge(instance_calls())
        .route_layer(middleware::from_fn_with_state(key, auth::require));
    let api = NodeApi { node, single_slot: Some(slot) };
    authenticated
        .route("/readyz", get(ready))
        .merge(cdp::node_routes())
        .merge(live::node_routes())
        .with_state(api)
        .merge(docs::routes(Tier::Instance))
}

async fn get_instance(
    State(api): State<NodeApi>,
    headers: HeaderMap,
    query: Query,
    body: OptionalBody,
) -> ApiResult {
    let request = query.get_request(&body)?;
    let lease = match api.node.get(&request).await {
        Err(ApiError::NoCapacity(reason)) => {
            return Err(unavailable(&api.node.0.counts(), reason).into());
        }
        other => other?,
    };
    let id = lease.id().lease;
    let access = LeaseAccess::new(&id, &api.node.0.secrets(lease.id())?);
    let response = with_addresses(json!({"instance_id": id}), Some(&access), &headers);
    lease.deliver();
    Ok(response)
}

/// With a single slot, "no capacity" means that it is leased or not ready.
fn unavailable(counts: &PoolCounts, reason: Option<String>) -> ApiError {
    if counts.in_use > 0 {
        return ApiError::AlreadyLeased;
    }
    ApiError::NoCapacity(reason.or_else(|| Some("the instance is not ready".into())))
}

async fn info(State(api): State<NodeApi>) -> Response {
    let counts = api.node.0.counts();
    let ready = counts.available + counts.in_use > 0;
    Json(json!({"in_lease": counts.in_use > 0, "ready": ready})).into_response()
}
