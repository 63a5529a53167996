//! Where a page is served: binds, says the address in words a person can open, and serves until dropped.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use axum::Router;
use net::listener::{BoundedListener, ConnectionLimits};
use tokio::task::JoinHandle;

use super::Guard;

/// Few connections: most of the files that a run may open are for its episodes.
const CONNECTIONS: ConnectionLimits =
    ConnectionLimits { max_connections: 512, idle_timeout: Duration::from_secs(60) };

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
    let listener = BoundedListener::bind(address, CONNECTIONS)?;
    let address = listener.local_addr()?;
    let guard = Guard::new(address.ip(), token);
    let routes = guard.around(routes);
    let task = tokio::spawn(listener.serve(routes));
    Ok(Place { task, address, guard })
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
