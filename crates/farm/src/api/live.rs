//! The routes of the live view, on every tier. The secret in the path is the key, so they need no other.

use axum::{
    Router,
    extract::{Path, Request, State},
    response::Response,
    routing::{MethodRouter, get},
};

use super::{node::NodeApi, response::ApiResult};
use crate::{
    access::{AccessSegment, Endpoint},
    error::ApiError,
    live,
    master::Master,
};

fn routes<S: Clone + Send + Sync + 'static>(page: MethodRouter<S>, socket: MethodRouter<S>) -> Router<S> {
    let asset = get(async |Path(name): Path<String>| result(live::asset(&name)));
    Router::new()
        .route("/live/assets/{name}", asset)
        .route("/live/{segment}", page)
        .route("/live/{segment}/socket", socket)
}

pub(crate) fn master_routes() -> Router<Master> {
    let serve = async |master: Master, segment: String, path: &str, request: Request| {
        result(master.serve_endpoint(Endpoint::Live, &segment, path, request).await)
    };
    let page =
        get(async move |State(master): State<Master>, Path(segment): Path<String>, request: Request| {
            serve(master, segment, "", request).await
        });
    let socket =
        get(async move |State(master): State<Master>, Path(segment): Path<String>, request: Request| {
            serve(master, segment, "socket", request).await
        });
    routes(page, socket)
}

pub(crate) fn node_routes() -> Router<NodeApi> {
    let page = get(async |State(api): State<NodeApi>, Path(segment): Path<String>, request: Request| {
        result(serve(&api, &segment, "", request).await)
    });
    let socket = get(async |State(api): State<NodeApi>, Path(segment): Path<String>, request: Request| {
        result(serve(&api, &segment, "socket", request).await)
    });
    routes(page, socket)
}

async fn serve(api: &NodeApi, segment: &str, path: &str, request: Request) -> Result<Response, ApiError> {
    let access = AccessSegment::parse(segment).ok_or(ApiError::UnknownSecret)?;
    live::serve(&api.node.0, &access, path, request).await
}

fn result(result: Result<Response, ApiError>) -> ApiResult {
    Ok(result?)
}
