//! Accepts connections and serves them, with limits on everything a client could otherwise hold for ever, and an
//! end that lets what runs finish.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    extract::{DefaultBodyLimit, Request},
    response::{IntoResponse, Response},
};
use hyper::server::conn::http1::Builder;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    sync::Semaphore,
};
use tokio_util::sync::CancellationToken;
use tower_http::catch_panic::CatchPanicLayer;

use super::reply::Failed;
use crate::{error::FarmError, options::Limits};

/// For the sentence about a body that is too large.
pub(crate) static BODY_LIMIT: AtomicUsize = AtomicUsize::new(0);

const LARGEST_HEAD: usize = 64 << 10;

/// Clients that come in a rush: those beyond it would try again only after a second. The kernel has a limit of its own.
const RUSH: u32 = 4096;

pub(crate) async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    listen(address).map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => io::Error::new(
            error.kind(),
            format!(
                "port {} is taken; stop what uses it, or choose another (0 picks a free one)",
                address.port()
            ),
        ),
        kind => io::Error::new(kind, format!("cannot listen on {address}: {error}")),
    })
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(RUSH)
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
pub(crate) async fn serve(listener: TcpListener, routes: Router, limits: Limits, stop: CancellationToken) {
    let service = TowerToHyperService::new(dress(routes, &limits));
    // HTTP/1 only: no client of a farm speaks anything else in the clear, and a connection that has not yet said which it
    // speaks would be nobody's to time.
    let mut builder = Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(limits.idle_timeout).max_buf_size(LARGEST_HEAD);
    let graceful = GracefulShutdown::new();
    let room = Arc::new(Semaphore::new(limits.connections));
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = accept(&listener, &room, limits.idle_timeout) => accepted,
        };
        let Some((stream, place)) = accepted else { continue };
        let connection = builder.serve_connection(TokioIo::new(stream), service.clone());
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            let _place = place;
            if let Err(error) = connection.await {
                tracing::trace!(%error, "a connection ended");
            }
        });
    }
    drop(listener);
    if tokio::time::timeout(limits.shutdown, graceful.shutdown()).await.is_err() {
        tracing::warn!("some requests did not finish in time and are cut off");
    }
}

async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
    patience: Duration,
) -> Option<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let place = Arc::clone(room).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => {
            let _ = stream.set_nodelay(true);
            // Whoever asks and then does not read the answer is left by the kernel, not waited for.
            let patience = u32::try_from(patience.as_millis()).unwrap_or(u32::MAX);
            if let Err(error) = rustix::net::sockopt::set_tcp_user_timeout(&stream, patience) {
                tracing::debug!(%error, "a connection that is not read from cannot be timed");
            }
            Some((stream, place))
        }
        Err(error) => {
            tracing::warn!(%error, "cannot accept a connection");
            tokio::time::sleep(Duration::from_millis(50)).await;
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_rush_of_clients_need_not_come_again() {
        let listener = bind(([127, 0, 0, 1], 0).into()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let kernel = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap();
        let rush = kernel.trim().parse::<usize>().unwrap().min(1000);
        // Nobody accepts them: those that find no room would wait for as long as it takes.
        let mut clients = Vec::new();
        for number in 0..rush {
            let coming = tokio::time::timeout(Duration::from_secs(20), TcpStream::connect(address)).await;
            clients.push(coming.unwrap_or_else(|_| panic!("client {number} finds no room")).unwrap());
        }
    }
}
