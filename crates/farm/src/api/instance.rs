//! The endpoints of a lone instance: a server around a single browser. Its ids are bare uuids.

use axum::{
    Json, Router,
    extract::State,
    middleware,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde_json::json;

use super::{
    auth::{self, Key},
    docs,
    input::Query,
    node::{Face, instance_calls, ready},
    openapi::Tier,
    reply::Answer,
};
use crate::{
    error::FarmError,
    node::{LocalNode, Node},
    pool::PoolCounts,
};

pub(crate) fn instance_routes(node: LocalNode, slot: u16, key: Key) -> Router {
    let guarded = Router::new()
        .route("/get", post(get_instance))
        .route("/info", get(info))
        .merge(instance_calls())
        .route_layer(middleware::from_fn_with_state(key, auth::require));
    let face = Face { node, lone: Some(slot) };
    guarded.route("/readyz", get(ready)).with_state(face).merge(docs::routes(Tier::Instance))
}

async fn get_instance(State(face): State<Face>, query: Query) -> Answer {
    let wish = query.get_request()?;
    let granted = match face.node.get(&wish).await {
        Err(FarmError::NoCapacity(why)) => return Err(not_now(&face.node.0.counts(), why).into()),
        other => other?,
    };
    let answer = Json(json!({"instance_id": granted.id().lease})).into_response();
    granted.keep();
    Ok(answer)
}

/// Full means something else where there is only one.
fn not_now(counts: &PoolCounts, why: Option<String>) -> FarmError {
    if counts.in_use > 0 {
        return FarmError::AlreadyLeased;
    }
    FarmError::NoCapacity(why.or_else(|| Some("the instance is not ready".into())))
}

async fn info(State(face): State<Face>) -> Response {
    let counts = face.node.0.counts();
    let ready = counts.available + counts.in_use > 0;
    Json(json!({"in_lease": counts.in_use > 0, "ready": ready})).into_response()
}
