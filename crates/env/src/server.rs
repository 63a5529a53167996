//! The server: binds the address, serves the routes, and drains and stops.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Json, Router,
    extract::{DefaultBodyLimit, State},
    http::{StatusCode, header::CONTENT_TYPE},
    middleware,
    response::IntoResponse,
    routing::get,
};
use net::listener::{BoundedListener, ConnectionLimits};
use serde_json::json;
use store::IterationId;
use tokio::{sync::Semaphore, task::JoinHandle};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    access::{self, Access},
    environment::Environment,
    mcp::{self, McpSessions},
    openenv,
    recorder::RecordError,
};

/// Connections that are accepted beyond `max_connections`: for health checks, and to refuse further clients with an error.
const OTHER_CONNECTIONS: usize = 64;
/// How long the farm has to answer a readiness check.
const READY_TIMEOUT: Duration = Duration::from_secs(5);
/// How long requests and goodbyes may take after the stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// How long releasing the last leases may take.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(20);
/// Longest time to send a request head, and to accept bytes of a response.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(100);

/// The settings of a server.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    pub address: SocketAddr,
    pub api_key: Option<String>,
    /// Origins of web pages that may use the server.
    pub origins: Vec<String>,
    /// Connections at the same time. An idle one costs a few KiB and no browser.
    pub max_connections: usize,
    pub max_message_bytes: usize,
}

/// What the routes share.
pub(crate) struct Shared {
    pub(crate) environment: Environment,
    pub(crate) access: Access,
    pub(crate) sockets: Semaphore,
    pub(crate) max_connections: usize,
    pub(crate) max_message_bytes: usize,
    /// The sessions of open sockets.
    pub(crate) sessions: TaskTracker,
    pub(crate) stop: CancellationToken,
    pub(crate) mcp: McpSessions,
}

/// A running server.
pub struct EnvServer {
    shared: Arc<Shared>,
    address: SocketAddr,
    serving: JoinHandle<bool>,
}

impl EnvServer {
    /// Binds the address and serves. An address that other machines can reach requires a key.
    pub fn start(environment: Environment, options: ServerOptions) -> io::Result<Self> {
        if options.api_key.is_none() && !options.address.ip().is_loopback() {
            let reason =
                format!("{} is reachable from other machines, so an API key is required", options.address);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        }
        let limits = ConnectionLimits {
            max_connections: options.max_connections.saturating_add(OTHER_CONNECTIONS),
            idle_timeout: REQUEST_TIMEOUT,
        };
        let listener = BoundedListener::bind(options.address, limits)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            environment,
            access: Access::new(options.api_key, options.origins),
            sockets: Semaphore::new(options.max_connections),
            max_connections: options.max_connections,
            max_message_bytes: options.max_message_bytes,
            sessions: TaskTracker::new(),
            stop: CancellationToken::new(),
            mcp: McpSessions::new(options.max_connections),
        });
        let (stop, ending) = (shared.stop.clone(), Arc::clone(&shared));
        tokio::spawn(async move {
            let idle = ending.environment.idle_timeout();
            tokio::select! {
                () = ending.mcp.end_idle(idle) => {}
                () = ending.stop.cancelled() => ending.mcp.clear(),
            }
        });
        let serving = tokio::spawn(listener.serve_until(routes(&shared), stop, STOP_TIMEOUT));
        Ok(Self { shared, address, serving })
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Starts no more episodes and waits for running ones, up to a limit. Returns whether all ended.
    pub async fn drain(&self, limit: Duration) -> bool {
        self.shared.environment.set_draining();
        tokio::time::timeout(limit, self.shared.environment.wait_until_idle()).await.is_ok()
    }

    /// Ends all sessions, releases their leases and writes the files of saved episodes. Returns their iterations.
    pub async fn stop(self) -> Result<Vec<IterationId>, RecordError> {
        self.shared.environment.set_draining();
        self.shared.stop.cancel();
        self.shared.mcp.clear();
        self.shared.sessions.close();
        let _ = tokio::time::timeout(STOP_TIMEOUT, self.shared.sessions.wait()).await;
        let _ = self.serving.await;
        let released =
            tokio::time::timeout(RELEASE_TIMEOUT, self.shared.environment.wait_for_releases()).await;
        if released.is_err() {
            tracing::warn!("some leases could not be released; they expire on the farm");
        }
        self.shared.environment.finish_recording().await
    }
}

fn routes(shared: &Arc<Shared>) -> Router {
    let protected = openenv::routes().route("/metrics", get(metrics));
    let protected =
        protected.route_layer(middleware::from_fn_with_state(Arc::clone(shared), access::require));
    openenv::public_routes()
        .route("/readyz", get(ready))
        .merge(protected)
        .merge(mcp::routes())
        .fallback(async || (StatusCode::NOT_FOUND, Json(json!({"detail": "no such path"}))))
        .layer(DefaultBodyLimit::max(shared.max_message_bytes))
        .with_state(Arc::clone(shared))
}

async fn metrics(State(shared): State<Arc<Shared>>) -> impl IntoResponse {
    let text = shared.environment.metrics.to_text(shared.environment.active_sessions());
    ([(CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text)
}

async fn ready(State(shared): State<Arc<Shared>>) -> impl IntoResponse {
    let environment = &shared.environment;
    let reason = if environment.is_draining() {
        Some("draining")
    } else if environment.is_farm_reachable(READY_TIMEOUT).await {
        None
    } else {
        Some("the farm cannot be reached")
    };
    match reason {
        None => (StatusCode::OK, Json(json!({"status": "ready"}))),
        Some(reason) => {
            (StatusCode::SERVICE_UNAVAILABLE, Json(json!({"status": "not ready", "reason": reason})))
        }
    }
}
