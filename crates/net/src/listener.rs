//! Accepts HTTP/1 connections and serves them with limits on everything that a client could otherwise hold for ever:
//! the number of connections, the time to send a request, the time to read a response, the size of the request head.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use axum::Router;
use hyper::server::conn::http1::{Builder, UpgradeableConnection};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

const MAX_HEAD_BYTES: usize = 64 << 10;

/// Connections that the kernel holds until they are accepted. Clients beyond it retry only after a second. The kernel
/// lowers it to `net.core.somaxconn`.
const ACCEPT_BACKLOG: u32 = 4096;

/// Pause after a failed accept. The usual cause is a lack of file descriptors: some may be closed meanwhile.
const ACCEPT_RETRY_PAUSE: Duration = Duration::from_millis(50);

/// Limits on the connections of one listener.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// Connections open at the same time; further ones wait in the backlog.
    pub max_connections: usize,
    /// Longest time to send a request head, and to accept bytes of a response.
    pub idle_timeout: Duration,
}

/// A listening socket whose connections are bounded by [`ConnectionLimits`].
pub struct BoundedListener {
    listener: TcpListener,
    limits: ConnectionLimits,
    permits: Arc<Semaphore>,
}

impl BoundedListener {
    /// Listens on `address`; port 0 picks a free one.
    pub fn bind(address: SocketAddr, limits: ConnectionLimits) -> io::Result<Self> {
        let listener = listen(address).map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => io::Error::new(
                error.kind(),
                format!(
                    "port {} is in use; stop the process that uses it, or choose another port (0 picks a free one)",
                    address.port()
                ),
            ),
            kind => io::Error::new(kind, format!("cannot listen on {address}: {error}")),
        })?;
        Ok(Self { listener, limits, permits: Arc::new(Semaphore::new(limits.max_connections)) })
    }

    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves `routes` until the returned future is dropped. Connections that are open then go on until their client
    /// closes them.
    pub async fn serve(self, routes: Router) {
        let service = TowerToHyperService::new(routes);
        loop {
            let Some((stream, permit)) = self.accept().await else { continue };
            let connection = self.http().serve_connection(TokioIo::new(stream), service.clone());
            tokio::spawn(run(connection.with_upgrades(), permit));
        }
    }

    /// Serves `routes` until `stop`, then waits at most `grace` for running requests. Returns whether all of them
    /// finished.
    pub async fn serve_until(self, routes: Router, stop: CancellationToken, grace: Duration) -> bool {
        let service = TowerToHyperService::new(routes);
        let connections = TaskTracker::new();
        loop {
            let accepted = tokio::select! {
                () = stop.cancelled() => break,
                accepted = self.accept() => accepted,
            };
            let Some((stream, permit)) = accepted else { continue };
            let connection =
                self.http().serve_connection(TokioIo::new(stream), service.clone()).with_upgrades();
            connections.spawn(run(until_stopped(connection, stop.clone()), permit));
        }
        drop(self);
        connections.close();
        tokio::time::timeout(grace, connections.wait()).await.is_ok()
    }

    /// HTTP/1 only. A connection that may still turn out to be HTTP/2 has no timeout while hyper waits for its first bytes.
    fn http(&self) -> Builder {
        let mut builder = Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.idle_timeout)
            .max_buf_size(MAX_HEAD_BYTES);
        builder
    }

    async fn accept(&self) -> Option<(TcpStream, OwnedSemaphorePermit)> {
        let permit = Arc::clone(&self.permits).acquire_owned().await.ok()?;
        match self.listener.accept().await {
            Ok((stream, _)) => {
                self.limit_unread_time(&stream);
                Some((stream, permit))
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_RETRY_PAUSE).await;
                None
            }
        }
    }

    /// Lets the kernel close the connection of a client that does not read its response.
    fn limit_unread_time(&self, stream: &TcpStream) {
        let _ = stream.set_nodelay(true);
        let timeout = u32::try_from(self.limits.idle_timeout.as_millis()).unwrap_or(u32::MAX);
        if let Err(error) = rustix::net::sockopt::set_tcp_user_timeout(stream, timeout) {
            tracing::debug!(%error, "cannot limit how long a client may leave its response unread");
        }
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(ACCEPT_BACKLOG)
}

type HttpConnection = UpgradeableConnection<TokioIo<TcpStream>, TowerToHyperService<Router>>;

/// Runs a connection; after `stop` it finishes its running request and ends.
async fn until_stopped(connection: HttpConnection, stop: CancellationToken) -> hyper::Result<()> {
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        ended = connection.as_mut() => return ended,
        () = stop.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    connection.await
}

/// Runs one connection; its permit returns when it ends or is upgraded.
async fn run(connection: impl Future<Output = hyper::Result<()>>, permit: OwnedSemaphorePermit) {
    let _permit = permit;
    if let Err(error) = connection.await {
        tracing::trace!(%error, "a connection ended with an error");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn burst_of_clients_connects_without_retry() {
        let limits = ConnectionLimits { max_connections: 16, idle_timeout: Duration::from_secs(60) };
        let listener = BoundedListener::bind(([127, 0, 0, 1], 0).into(), limits).unwrap();
        let address = listener.local_addr().unwrap();
        let somaxconn = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap();
        let burst = somaxconn.trim().parse::<usize>().unwrap().min(1000);
        // The test accepts no connection, so a client beyond the backlog would have to retry.
        let mut clients = Vec::new();
        for number in 0..burst {
            let client = tokio::time::timeout(Duration::from_secs(20), TcpStream::connect(address)).await;
            clients.push(client.unwrap_or_else(|_| panic!("client {number} could not connect")).unwrap());
        }
    }
}
