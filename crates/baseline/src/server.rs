//! The policy behind the chat API that vLLM speaks: completions, the list of models, a sign of life. Owns the listener;
//! holds no state between requests.

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

/// Five pictures inside a request are well below this.
const LARGEST_BODY: usize = 64 << 20;

/// The running server. It stops when this is dropped; [`Server::stop`] also waits for the end.
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

    /// The address to give as `vllm_server_url`.
    pub fn url(&self) -> String {
        let mut addr = self.addr;
        if addr.ip().is_unspecified() {
            addr.set_ip(Ipv4Addr::LOCALHOST.into());
        }
        format!("http://{addr}")
    }

    /// Serves until it is told to stop from elsewhere or fails.
    pub async fn wait(&mut self) -> io::Result<()> {
        (&mut self.serving).await.map_err(io::Error::other)?
    }

    /// Stops and waits until the last answer is given.
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
        .fallback(async || {
            problem(StatusCode::NOT_FOUND, "there is no such path; try /v1/chat/completions", None)
        })
        .method_not_allowed_fallback(async || {
            problem(StatusCode::METHOD_NOT_ALLOWED, "this path does not take that method", None)
        })
        .layer(DefaultBodyLimit::max(LARGEST_BODY))
}

async fn complete(body: Result<Bytes, BytesRejection>) -> Response {
    let body = match body {
        Ok(body) => body,
        Err(rejection) => return problem(rejection.status(), &rejection.body_text(), None),
    };
    let request: Value = match serde_json::from_slice(&body) {
        Ok(request) => request,
        Err(error) => {
            return problem(StatusCode::BAD_REQUEST, &format!("the body is not JSON: {error}"), None);
        }
    };
    if let Some(other) = wire::other_model(&request) {
        let words = format!("the model {other:?} does not exist; this server has only {:?}", wire::MODEL);
        return problem(StatusCode::NOT_FOUND, &words, Some("model"));
    }
    // Deciding is quick but not nothing; it should not hold up other connections.
    let decided =
        tokio::task::spawn_blocking(move || decide(&request).map(|reply| wire::completion(&request, &reply)));
    match decided.await {
        Ok(Ok(completion)) => Json(completion).into_response(),
        Ok(Err(bad)) => problem(StatusCode::BAD_REQUEST, &bad.to_string(), bad.parameter()),
        Err(error) => problem(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string(), None),
    }
}

fn problem(status: StatusCode, words: &str, parameter: Option<&str>) -> Response {
    (status, Json(wire::error(status.as_u16(), words, parameter))).into_response()
}
