//! The HTTP server of the pages: listens with connection limits, checks access, and serves until dropped.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use axum::Router;
use net::listener::{BoundedListener, ConnectionLimits};
use tokio::task::JoinHandle;

use crate::access::Access;

/// Few connections: most of the files that a run may open are for its episodes.
const CONNECTION_LIMITS: ConnectionLimits =
    ConnectionLimits { max_connections: 512, idle_timeout: Duration::from_mins(1) };

/// A server that runs until it is dropped.
#[derive(Debug)]
pub struct PageServer {
    task: JoinHandle<()>,
    address: SocketAddr,
    access: Access,
}

/// Serves `routes` at `address` (port 0 picks a free one). Outside loopback a token is required: the given one, or a
/// generated one that is part of [`PageServer::link`].
#[expect(clippy::unused_async, reason = "only callable inside a Tokio runtime, which the listener needs")]
pub async fn serve(address: SocketAddr, token: Option<String>, routes: Router) -> io::Result<PageServer> {
    if token.as_ref().is_some_and(|token| !token.bytes().all(is_allowed_in_token)) {
        return Err(io::Error::other("a token may contain only letters, digits, '-', '_' and '.'"));
    }
    let listener = BoundedListener::bind(address, CONNECTION_LIMITS)?;
    let address = listener.local_addr()?;
    let access = Access::new(address.ip(), token);
    let task = tokio::spawn(listener.serve(access.protect(routes)));
    Ok(PageServer { task, address, access })
}

/// Allows the characters that need no escaping in a query and in a cookie.
const fn is_allowed_in_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

impl PageServer {
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the link to open, with the token if one is required.
    pub fn link(&self) -> String {
        format!("{}{}", self.root(), self.access.query())
    }

    /// Returns the link for logs, without a token that the user chose.
    pub fn shown_link(&self) -> String {
        format!("{}{}", self.root(), self.access.shown_query())
    }

    fn root(&self) -> String {
        let host = match self.address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => host_name(),
            IpAddr::V6(ip) if ip.is_unspecified() => host_name(),
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => format!("[{ip}]"),
        };
        format!("http://{host}:{}/", self.address.port())
    }

    /// Waits for the server to end, which happens only if its task fails.
    pub async fn wait(&mut self) {
        let _ = (&mut self.task).await;
    }
}

impl Drop for PageServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Returns the name of this machine.
pub(crate) fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "localhost".to_owned() } else { name.to_owned() }
}
