//! The routes of the CDP endpoint, on every tier. The secret in the path is the key, so they need no other.

use axum::{
    Router,
    extract::{Path, Request, State},
    response::Response,
    routing::{MethodRouter, get},
};

use super::{node::NodeApi, response::ApiResult};
use crate::{
    access::{AccessSegment, Endpoint},
    cdp,
    error::ApiError,
    master::Master,
};

fn routes<S: Clone + Send + Sync + 'static>(root: MethodRouter<S>, below: MethodRouter<S>) -> Router<S> {
    Router::new()
        .route("/cdp/{segment}", root.clone())
        .route("/cdp/{segment}/", root)
        .route("/cdp/{segment}/{*path}", below)
}

pub(crate) fn master_routes() -> Router<Master> {
    let root = get(async |State(master): State<Master>, Path(segment): Path<String>, request: Request| {
        result(master.serve_endpoint(Endpoint::Cdp, &segment, "", request).await)
    });
    let below = get(
        async |State(master): State<Master>,
               Path((segment, path)): Path<(String, String)>,
               request: Request| {
            result(master.serve_endpoint(Endpoint::Cdp, &segment, &path, request).await)
        },
    );
    routes(root, below)
}

pub(crate) fn node_routes() -> Router<NodeApi> {
    let root = get(async |State(api): State<NodeApi>, Path(segment): Path<String>, request: Request| {
        result(serve(&api, &segment, "", request).await)
    });
    let below = get(
        async |State(api): State<NodeApi>,
               Path((segment, path)): Path<(String, String)>,
               request: Request| { result(serve(&api, &segment, &path, request).await) },
    );
    routes(root, below)
}

async fn serve(api: &NodeApi, segment: &str, path: &str, request: Request) -> Result<Response, ApiError> {
    let access = AccessSegment::parse(segment).ok_or(ApiError::UnknownSecret)?;
    cdp::serve(&api.node.0, &access, segment, path, request).await
}

fn result(result: Result<Response, ApiError>) -> ApiResult {
    Ok(result?)
}
