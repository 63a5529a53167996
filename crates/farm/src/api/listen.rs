//! Serves the routes of one tier with what surrounds them: JSON errors for unknown paths, a body limit, no panic that
//! ends a connection, and a shutdown that lets running requests finish.

use std::{
    io,
    net::SocketAddr,
    sync::atomic::{AtomicUsize, Ordering},
};

use axum::{
    Router,
    extract::{DefaultBodyLimit, Request},
    response::{IntoResponse, Response},
};
use net::listener::{BoundedListener, ConnectionLimits};
use tokio_util::sync::CancellationToken;
use tower_http::catch_panic::CatchPanicLayer;

use super::reply::Failed;
use crate::{error::FarmError, options::Limits};

/// For the sentence about a body that is too large.
pub(crate) static BODY_LIMIT: AtomicUsize = AtomicUsize::new(0);

pub(crate) fn bind(address: SocketAddr, limits: &Limits) -> io::Result<BoundedListener> {
    let connections =
        ConnectionLimits { max_connections: limits.connections, idle_timeout: limits.idle_timeout };
    BoundedListener::bind(address, connections)
}

/// The routes with what surrounds them: JSON for what is not there, body limit, no panic gets out.
fn dress(routes: Router, limits: &Limits) -> Router {
    BODY_LIMIT.store(limits.body_bytes, Ordering::Relaxed);
    routes
        .fallback(async |request: Request| Failed::from(FarmError::NotFound(request.uri().path().to_owned())))
        .method_not_allowed_fallback(async |request: Request| {
            Failed::from(FarmError::WrongMethod {
                method: request.method().to_string(),
                path: request.uri().path().to_owned(),
            })
        })
        .layer(DefaultBodyLimit::max(limits.body_bytes))
        .layer(CatchPanicLayer::custom(|_: Box<dyn std::any::Any + Send>| -> Response {
            Failed::from(FarmError::Internal("a bug in webgym ended this request".into())).into_response()
        }))
}

/// Serves until `stop`, then lets running requests finish for at most the shutdown limit.
pub(crate) async fn serve(
    listener: BoundedListener,
    routes: Router,
    limits: Limits,
    stop: CancellationToken,
) {
    if !listener.serve_until(dress(routes, &limits), stop, limits.shutdown).await {
        tracing::warn!("some requests did not finish before the shutdown limit and were cut off");
    }
}
