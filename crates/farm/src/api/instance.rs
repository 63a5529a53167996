//! The endpoints of a lone instance: a server around a single browser. Its ids are bare uuids.

use axum::{
    Json, Router,
    extract::{Request, State},
    http::Uri,
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use proto::LeaseId;
use serde_json::json;

use super::{
    auth::{self, Key},
    docs,
    input::Query,
    node::{instance_calls, ready},
    openapi::Tier,
    reply::{Answer, success},
};
use crate::{
    error::FarmError,
    node::{LocalNode, Node},
    pool::PoolCounts,
};

pub(crate) fn instance_routes(node: LocalNode, slot: u16, key: Key) -> Router {
    let guarded = Router::new()
        .route("/get", post(get_instance))
        .route("/reset", post(reset))
        .route("/info", get(info))
        .merge(instance_calls())
        .route_layer(middleware::from_fn_with_state(key, auth::require));
    let routes = guarded.route("/readyz", get(ready)).with_state(node).merge(docs::routes(Tier::Instance));
    // Inside, every id names its slot; a client of a lone instance does not.
    let named = middleware::from_fn(move |request: Request, next: Next| async move {
        next.run(name_slot(request, slot)).await
    });
    Router::new().fallback_service(tower::ServiceBuilder::new().layer(named).service(routes))
}

fn name_slot(mut request: Request, slot: u16) -> Request {
    let query = request.uri().query().unwrap_or_default();
    let pairs = url::form_urlencoded::parse(query.as_bytes()).map(|(name, value)| {
        let bare = name == "instance_id" && value.parse::<LeaseId>().is_ok();
        let value = if bare { format!("{value}:{slot}") } else { value.into_owned() };
        (name.into_owned(), value)
    });
    let query = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
    if let Ok(uri) = format!("{}?{query}", request.uri().path()).parse::<Uri>() {
        *request.uri_mut() = uri;
    }
    request
}

async fn get_instance(State(node): State<LocalNode>, query: Query) -> Answer {
    let wish = query.get_request()?;
    if wish.wait.is_zero() && wish.key.is_none() {
        let counts = node.0.counts();
        if counts.in_use > 0 {
            return Err(FarmError::AlreadyLeased.into());
        }
        if !is_ready(&counts) {
            return Err(FarmError::NoCapacity(Some("the instance is not ready yet".into())).into());
        }
    }
    let granted = node.get(&wish).await?;
    let answer = Json(json!({"instance_id": granted.id().lease})).into_response();
    granted.keep();
    Ok(answer)
}

fn is_ready(counts: &PoolCounts) -> bool {
    counts.available + counts.in_use > 0
}

async fn reset(State(node): State<LocalNode>, query: Query) -> Answer {
    node.reset(&query.instance()?).await?;
    Ok(success())
}

async fn info(State(node): State<LocalNode>) -> Response {
    let counts = node.0.counts();
    Json(json!({"in_lease": counts.in_use > 0, "ready": is_ready(&counts)})).into_response()
}
