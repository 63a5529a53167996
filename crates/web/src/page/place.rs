//! Where a page is served: binds, says the address in words a person can open, and serves until dropped.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use axum::Router;
use hyper::server::conn::http1::Builder;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinHandle,
};

use super::Guard;

/// The files that a run may open are for its episodes: whoever only looks gets so many connections in all.
const MOST_CONNECTIONS: usize = 512;
/// How long a connection may take to ask, and to read what it asked for.
const PATIENCE: Duration = Duration::from_secs(60);
const LARGEST_HEAD: usize = 64 << 10;

/// A server that runs until it is dropped.
#[derive(Debug)]
pub struct Place {
    task: JoinHandle<()>,
    address: SocketAddr,
    guard: Guard,
}

/// Serves `routes` at `address` (port 0 picks a free one). Beyond loopback a token is needed: the given one, or one that
/// is made here and stands in [`Place::link`].
pub async fn serve(address: SocketAddr, token: Option<String>, routes: Router) -> io::Result<Place> {
    if token.as_ref().is_some_and(|token| !token.bytes().all(is_plain)) {
        return Err(io::Error::other("a token may have letters, digits, '-', '_' and '.' only"));
    }
    let listener = TcpListener::bind(address).await.map_err(|error| {
        io::Error::new(error.kind(), format!("cannot listen on {address}: {error} (port 0 picks a free one)"))
    })?;
    let address = listener.local_addr()?;
    let guard = Guard::new(address.ip(), token);
    let routes = guard.around(routes);
    let task = tokio::spawn(show(listener, routes));
    Ok(Place { task, address, guard })
}

/// Serves everyone who connects, a bounded number at a time.
async fn show(listener: TcpListener, routes: Router) {
    let service = TowerToHyperService::new(routes);
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&room).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            // Out of file descriptors, most likely: let some close.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let connection = Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(PATIENCE)
            .max_buf_size(LARGEST_HEAD)
            .serve_connection(TokioIo::new(timed(stream)), service.clone());
        // On their own: who looks when a run ends is still told that it is over.
        tokio::spawn(async move {
            let _place = place;
            if let Err(error) = connection.await {
                tracing::trace!(%error, "a connection ended");
            }
        });
    }
}

/// Whoever does not read what they asked for is left by the kernel.
fn timed(stream: TcpStream) -> TcpStream {
    let _ = stream.set_nodelay(true);
    let patience = u32::try_from(PATIENCE.as_millis()).unwrap_or(u32::MAX);
    let _ = rustix::net::sockopt::set_tcp_user_timeout(&stream, patience);
    stream
}

const fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

impl Place {
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The link to open, with the token where one is needed.
    pub fn link(&self) -> String {
        format!("{}{}", self.root(), self.guard.query())
    }

    /// The same for logs, where a token that somebody chose does not belong.
    pub fn shown_link(&self) -> String {
        format!("{}{}", self.root(), self.guard.shown_query())
    }

    fn root(&self) -> String {
        let host = match self.address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => this_machine(),
            IpAddr::V6(ip) if ip.is_unspecified() => this_machine(),
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => format!("[{ip}]"),
        };
        format!("http://{host}:{}/", self.address.port())
    }

    /// Until the server ends, which it does not by itself.
    pub async fn forever(&mut self) {
        let _ = (&mut self.task).await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn this_machine() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "localhost".to_owned() } else { name.to_owned() }
}
