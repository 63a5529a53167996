//! The HTTP server of the practice sites: accepts connections and routes each request to its site.
//! Owns the listener and the connections; stores nothing about visitors.

use std::{
    convert::Infallible,
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{Router, body::Body, response::Response};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    runtime::Handle,
};
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use crate::{
    connection::{AbortConnection, Aborted, Connection},
    home, hosts,
    shutdown::Shutdown,
};

/// How long a connection may take to finish its response after the server was stopped.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// The running practice websites. They stop when this is dropped; [`Sites::stop`] also waits until all connections are closed.
#[must_use = "the sites stop when this is dropped"]
pub struct Sites {
    addr: SocketAddr,
    shutdown: Shutdown,
    connections: TaskTracker,
}

impl Sites {
    /// Serves on `addr`, on a free port if its port is 0. Must be called inside a tokio runtime.
    pub fn start(addr: SocketAddr) -> io::Result<Self> {
        let runtime = Handle::try_current().map_err(io::Error::other)?;
        let listener = std::net::TcpListener::bind(addr)?;
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let addr = listener.local_addr()?;
        let (shutdown, connections) = (Shutdown::default(), TaskTracker::new());
        let accepting =
            accept(listener, home::routes(shutdown.clone()), shutdown.clone(), connections.clone());
        connections.spawn_on(accepting, &runtime);
        Ok(Self { addr, shutdown, connections })
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns the URL of a path, e.g. `url("/course/buttons")`.
    pub fn url(&self, path: &str) -> String {
        let mut addr = self.addr;
        if addr.ip().is_unspecified() {
            addr.set_ip(Ipv4Addr::LOCALHOST.into());
        }
        format!("http://{addr}{path}")
    }

    /// Returns a URL with the site's own host name: `host_url("shop", "/")` is `http://shop.localhost:PORT/`.
    pub fn host_url(&self, site: &str, path: &str) -> String {
        format!("http://{site}.localhost:{}{path}", self.addr.port())
    }

    /// Stops the server and waits until every connection is closed.
    pub async fn stop(self) {
        self.shutdown.trigger();
        self.connections.close();
        self.connections.wait().await;
    }
}

impl Drop for Sites {
    fn drop(&mut self) {
        self.shutdown.trigger();
    }
}

async fn accept(listener: TcpListener, app: Router, shutdown: Shutdown, connections: TaskTracker) {
    loop {
        let accepted = tokio::select! {
            () = shutdown.triggered() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                connections.spawn(serve(stream, app.clone(), shutdown.clone()));
            }
            Err(error) => {
                // Most likely out of file descriptors: wait until other connections are closed.
                tracing::warn!(%error, "practice sites cannot accept a connection");
                shutdown.sleep(50).await;
            }
        }
    }
}

async fn serve(stream: TcpStream, app: Router, shutdown: Shutdown) {
    let reset = Arc::new(AtomicBool::new(false));
    let connection = Connection::new(stream, reset.clone());
    let service = service_fn(move |request| respond(app.clone(), request, reset.clone()));
    let connection = http1::Builder::new().serve_connection(TokioIo::new(connection), service);
    let mut connection = std::pin::pin!(connection.with_upgrades());
    let finished = tokio::select! {
        finished = connection.as_mut() => finished,
        () = shutdown.triggered() => {
            connection.as_mut().graceful_shutdown();
            tokio::time::timeout(SHUTDOWN_TIMEOUT, connection).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = finished {
        tracing::debug!(%error, "connection to the practice sites failed");
    }
}

async fn respond(
    app: Router,
    request: hyper::Request<Incoming>,
    reset: Arc<AtomicBool>,
) -> Result<Response, Aborted> {
    let response = match hosts::resolve(request.map(Body::new)) {
        Ok(request) => infallible(app.oneshot(request).await),
        Err(redirect) => *redirect,
    };
    match response.extensions().get::<AbortConnection>() {
        None => Ok(response),
        Some(abort) => {
            reset.store(*abort == AbortConnection::Reset, Ordering::Relaxed);
            Err(Aborted)
        }
    }
}

fn infallible(result: Result<Response, Infallible>) -> Response {
    match result {
        Ok(response) => response,
        Err(never) => match never {},
    }
}
