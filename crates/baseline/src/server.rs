//! The HTTP server of the policy, with the chat API of vLLM: completions, list of models, health. Owns the listener;
//! keeps no state between requests.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
};

use axum::{
    Json, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, rejection::BytesRejection},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde_json::Value;
use tokio::{net::TcpListener, runtime::Handle, task::JoinHandle};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{decide, wire};

/// Leaves ample space for the screenshots of several steps.
const MAX_BODY_BYTES: usize = 64 << 20;

/// The running server. It stops when this is dropped; [`Server::stop`] also waits for running requests.
#[must_use = "the server stops when this is dropped"]
pub struct Server {
    addr: SocketAddr,
    stop: DropGuard,
    serving: JoinHandle<io::Result<()>>,
}

impl Server {
    /// Serves on `addr`, on a free port if its port is 0. Must be called inside a tokio runtime.
    pub fn start(addr: SocketAddr) -> io::Result<Self> {
        let runtime = Handle::try_current().map_err(io::Error::other)?;
        let listener = std::net::TcpListener::bind(addr)?;
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let addr = listener.local_addr()?;
        let stop = CancellationToken::new();
        let stopped = stop.clone().cancelled_owned();
        let serving = runtime
            .spawn(async move { axum::serve(listener, routes()).with_graceful_shutdown(stopped).await });
        Ok(Self { addr, stop: stop.drop_guard(), serving })
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns the URL to use as `vllm_server_url`.
    pub fn url(&self) -> String {
        let mut addr = self.addr;
        if addr.ip().is_unspecified() {
            addr.set_ip(Ipv4Addr::LOCALHOST.into());
        }
        format!("http://{addr}")
    }

    /// Waits until the server stops or fails.
    pub async fn wait(&mut self) -> io::Result<()> {
        (&mut self.serving).await.map_err(io::Error::other)?
    }

    /// Stops the server and waits until the running requests are answered.
    pub async fn stop(mut self) -> io::Result<()> {
        drop(self.stop);
        (&mut self.serving).await.map_err(io::Error::other)?
    }
}

fn routes() -> Router {
    Router::new()
        .route("/v1/chat/completions", post(complete))
        .route("/v1/models", get(async || Json(wire::models())))
        .route("/health", get(async || StatusCode::OK))
        .fallback(async || error(StatusCode::NOT_FOUND, "unknown path; use /v1/chat/completions", None))
        .method_not_allowed_fallback(async || {
            error(StatusCode::METHOD_NOT_ALLOWED, "method not allowed on this path", None)
        })
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
}

async fn complete(body: Result<Bytes, BytesRejection>) -> Response {
    let body = match body {
        Ok(body) => body,
        Err(rejection) => return error(rejection.status(), &rejection.body_text(), None),
    };
    let request: Value = match serde_json::from_slice(&body) {
        Ok(request) => request,
        Err(invalid) => {
            return error(StatusCode::BAD_REQUEST, &format!("the body is not JSON: {invalid}"), None);
        }
    };
    if let Some(other) = wire::other_model(&request) {
        let message =
            format!("the model {other:?} does not exist; this server serves only {:?}", wire::MODEL);
        return error(StatusCode::NOT_FOUND, &message, Some("model"));
    }
    // Deciding takes CPU time and must not block other connections.
    let decision =
        tokio::task::spawn_blocking(move || decide(&request).map(|reply| wire::completion(&request, &reply)));
    match decision.await {
        Ok(Ok(completion)) => Json(completion).into_response(),
        Ok(Err(bad)) => error(StatusCode::BAD_REQUEST, &bad.to_string(), bad.parameter()),
        Err(panic) => error(StatusCode::INTERNAL_SERVER_ERROR, &panic.to_string(), None),
    }
}

fn error(status: StatusCode, message: &str, parameter: Option<&str>) -> Response {
    (status, Json(wire::error(status.as_u16(), message, parameter))).into_response()
}
