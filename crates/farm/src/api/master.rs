//! The master's endpoints.

use axum::{
    Json, Router,
    extract::State,
    http::{HeaderMap, header::ACCEPT},
    middleware,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde_json::json;

use super::{
    auth::{self, Key},
    docs, home,
    input::{Body, Query},
    openapi::Tier,
    reply::{Answer, Failed, drained, success},
};
use crate::{ledger, master::Master, metrics};

pub(crate) fn master_routes(master: Master, key: Key) -> Router {
    let guarded = Router::new()
        .route("/get", post(get_instance))
        .route("/reset", post(reset))
        .route("/screenshot", get(screenshot))
        .route("/execute", post(execute))
        .route("/observe", post(observe))
        .route("/step", post(step))
        .route("/metadata", get(metadata))
        .route("/probe", get(probe))
        .route("/info", get(info))
        .route("/drain", post(drain))
        .route("/undrain", post(undrain))
        .route("/metrics", get(figures))
        .route_layer(middleware::from_fn_with_state(key, auth::require));
    guarded
        .route("/readyz", get(ready))
        .with_state(master)
        .merge(docs::routes(Tier::Master))
        .merge(home::routes())
}

async fn get_instance(State(master): State<Master>, query: Query) -> Answer {
    let wish = query.get_request()?;
    let placed = master.get(&wish).await?;
    let answer = Json(json!({"instance_id": placed.granted.id(), "node": placed.node})).into_response();
    ledger::given(placed.granted.id(), &placed.node, wish.key.as_deref());
    placed.granted.keep();
    Ok(answer)
}

async fn reset(State(master): State<Master>, query: Query) -> Answer {
    master.reset(query.need("node")?, &query.instance()?).await?;
    Ok(success())
}

async fn screenshot(State(master): State<Master>, query: Query) -> Answer {
    let outcome = async { master.call(query.need("node")?, &query.instance()?, query.screenshot()?).await };
    outcome.await.map_err(Failed::as_master)
}

async fn execute(State(master): State<Master>, body: Body) -> Answer {
    let outcome = async { master.call(body.node()?, &body.instance()?, body.command()?).await };
    outcome.await.map_err(Failed::as_master)
}

async fn observe(State(master): State<Master>, headers: HeaderMap, body: Body) -> Answer {
    Ok(master.call(body.node()?, &body.instance()?, body.observe(false, accept(&headers))?).await?)
}

async fn step(State(master): State<Master>, headers: HeaderMap, body: Body) -> Answer {
    Ok(master.call(body.node()?, &body.instance()?, body.observe(true, accept(&headers))?).await?)
}

async fn metadata(State(master): State<Master>, query: Query) -> Answer {
    Ok(master.call(query.need("node")?, &query.instance()?, crate::node::Call::Metadata).await?)
}

async fn probe(State(master): State<Master>, query: Query) -> Answer {
    Ok(master.call(query.need("node")?, &query.instance()?, crate::node::Call::Probe).await?)
}

async fn drain(State(master): State<Master>, query: Query) -> Answer {
    Ok(drained(master.drain(query.need("node")?, true).await?))
}

async fn undrain(State(master): State<Master>, query: Query) -> Answer {
    Ok(drained(master.drain(query.need("node")?, false).await?))
}

async fn info(State(master): State<Master>) -> Response {
    Json(master.info().await).into_response()
}

async fn figures(State(master): State<Master>) -> Response {
    let entries = master.table().distinct();
    let healthy: Vec<_> = entries.iter().filter(|entry| entry.healthy()).collect();
    let (capacity, available) = healthy
        .iter()
        .map(|entry| entry.info())
        .fold((0, 0), |(capacity, free), info| (capacity + info.capacity, free + info.available));
    let own = metrics::render_master(entries.len(), healthy.len(), master.waiting(), capacity, available);
    docs::metrics(&match master.local_pool() {
        Some(pool) => own.replace("# EOF\n", "") + &metrics::render_pool(&pool),
        None => own,
    })
}

async fn ready(State(master): State<Master>) -> Response {
    let able = master.table().entries().iter().any(|entry| entry.healthy());
    docs::readiness(able && !master.is_stopping(), "no healthy node, or the farm is stopping")
}

pub(crate) fn accept(headers: &HeaderMap) -> Option<&str> {
    headers.get(ACCEPT).and_then(|value| value.to_str().ok())
}
