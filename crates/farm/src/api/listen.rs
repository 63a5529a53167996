//! Serves the routes of one tier: adds JSON errors for unknown paths, a body limit and panic handling, and lets running
//! requests finish at shutdown.

use std::{io, net::SocketAddr};

use axum::{
    Extension, Router,
    extract::{DefaultBodyLimit, Request},
    response::{IntoResponse, Response},
};
use net::listener::{BoundedListener, ConnectionLimits};
use tokio_util::sync::CancellationToken;
use tower_http::catch_panic::CatchPanicLayer;

use super::{request::BodyLimit, response::ErrorResponse};
use crate::{error::ApiError, options::ServerLimits};

pub(crate) fn bind(address: SocketAddr, limits: &ServerLimits) -> io::Result<BoundedListener> {
    let connections =
        ConnectionLimits { max_connections: limits.connections, idle_timeout: limits.idle_timeout };
    BoundedListener::bind(address, connections)
}

/// Adds what all tiers have in common: JSON errors, the body limit, and a response instead of a panic.
fn add_common_layers(routes: Router, limits: &ServerLimits) -> Router {
    routes
        .fallback(async |request: Request| {
            ErrorResponse::from(ApiError::NotFound(request.uri().path().to_owned()))
        })
        .method_not_allowed_fallback(async |request: Request| {
            ErrorResponse::from(ApiError::WrongMethod {
                method: request.method().to_string(),
                path: request.uri().path().to_owned(),
            })
        })
        .layer(DefaultBodyLimit::max(limits.body_bytes))
        .layer(Extension(BodyLimit(limits.body_bytes)))
        .layer(CatchPanicLayer::custom(|_: Box<dyn std::any::Any + Send>| -> Response {
            let error = ApiError::Internal("this request was aborted by a bug in webgym".into());
            ErrorResponse::from(error).into_response()
        }))
}

/// Serves until `stop`, then lets running requests finish for at most the shutdown limit.
pub(crate) async fn serve(
    listener: BoundedListener,
    routes: Router,
    limits: ServerLimits,
    stop: CancellationToken,
) {
    let routes = add_common_layers(routes, &limits);
    if !listener.serve_until(routes, stop, limits.shutdown).await {
        tracing::warn!("some requests did not finish before the shutdown limit and were aborted");
    }
}
