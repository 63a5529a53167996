//! The web server around the practice sites: accepts, hands each request to the site it is for, stops on request.
//! Owns the listener and every connection; holds no state of any visitor.

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
    home, hosts,
    html::HangUp,
    stop::Stop,
    wire::{Connection, HungUp},
};

/// How long a connection may still take to finish its answer once the server stops.
const GRACE: Duration = Duration::from_secs(1);

/// The running practice websites. They stop when this is dropped; [`Sites::stop`] also waits for the end.
#[must_use = "the sites stop when this is dropped"]
pub struct Sites {
    addr: SocketAddr,
    stop: Stop,
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
        let (stop, connections) = (Stop::default(), TaskTracker::new());
        let accepting = accept(listener, home::routes(stop.clone()), stop.clone(), connections.clone());
        connections.spawn_on(accepting, &runtime);
        Ok(Self { addr, stop, connections })
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The address of a path, e.g. `url("/course/buttons")`.
    pub fn url(&self, path: &str) -> String {
        let mut addr = self.addr;
        if addr.ip().is_unspecified() {
            addr.set_ip(Ipv4Addr::LOCALHOST.into());
        }
        format!("http://{addr}{path}")
    }

    /// The same site under a host name of its own, e.g. `host_url("shop", "/")` is `http://shop.localhost:PORT/`.
    pub fn host_url(&self, site: &str, path: &str) -> String {
        format!("http://{site}.localhost:{}{path}", self.addr.port())
    }

    /// Stops and waits until every connection is closed.
    pub async fn stop(self) {
        self.stop.announce();
        self.connections.close();
        self.connections.wait().await;
    }
}

impl Drop for Sites {
    fn drop(&mut self) {
        self.stop.announce();
    }
}

async fn accept(listener: TcpListener, app: Router, stop: Stop, connections: TaskTracker) {
    loop {
        let accepted = tokio::select! {
            () = stop.announced() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                connections.spawn(serve(stream, app.clone(), stop.clone()));
            }
            Err(error) => {
                // Out of file descriptors, most likely: give the others time to close theirs.
                tracing::warn!(%error, "practice sites cannot accept a connection");
                stop.pause(50).await;
            }
        }
    }
}

async fn serve(stream: TcpStream, app: Router, stop: Stop) {
    let reset = Arc::new(AtomicBool::new(false));
    let connection = Connection::new(stream, reset.clone());
    let service = service_fn(move |request| answer(app.clone(), request, reset.clone()));
    let connection = http1::Builder::new().serve_connection(TokioIo::new(connection), service);
    let mut connection = std::pin::pin!(connection.with_upgrades());
    let finished = tokio::select! {
        finished = connection.as_mut() => finished,
        () = stop.announced() => {
            connection.as_mut().graceful_shutdown();
            tokio::time::timeout(GRACE, connection).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = finished {
        tracing::debug!(%error, "a connection to the practice sites broke off");
    }
}

async fn answer(
    app: Router,
    request: hyper::Request<Incoming>,
    reset: Arc<AtomicBool>,
) -> Result<Response, HungUp> {
    let response = match hosts::resolve(request.map(Body::new)) {
        Ok(request) => infallible(app.oneshot(request).await),
        Err(redirect) => *redirect,
    };
    match response.extensions().get::<HangUp>() {
        None => Ok(response),
        Some(how) => {
            reset.store(*how == HangUp::Reset, Ordering::Relaxed);
            Err(HungUp)
        }
    }
}

fn infallible(result: Result<Response, Infallible>) -> Response {
    match result {
        Ok(response) => response,
        Err(never) => match never {},
    }
}
