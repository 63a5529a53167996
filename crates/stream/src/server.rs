//! The server of a stream: binds its address before the run starts, serves while it lasts, and gives the consumer time to
//! take the last items.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use axum::middleware;
use net::listener::{BoundedListener, ConnectionLimits};
use tokio::{sync::watch, task::JoinHandle};
use tokio_util::sync::CancellationToken;

pub use crate::shared::StreamedRun;
use crate::{
    access::{self, Access},
    routes,
    shared::{EndReason, Progress, Shared, StartError},
};

/// A consumer that does not read for longer is disconnected, and continues with its cursor.
const CONNECTION_LIMITS: ConnectionLimits =
    ConnectionLimits { max_connections: 64, idle_timeout: Duration::from_secs(120) };
/// How long a consumer that has acknowledged everything may take to ask once more.
const END_TIMEOUT: Duration = Duration::from_secs(5);
/// How long connections may take to end after the stream.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Clone, Debug)]
pub struct StreamOptions {
    /// Port 0 picks a free one.
    pub address: SocketAddr,
    /// Required outside loopback; generated if it is not given.
    pub token: Option<String>,
}

/// A bound address at which nothing is served yet.
pub struct StreamListener {
    listener: BoundedListener,
    address: SocketAddr,
    access: Access,
}

impl StreamListener {
    #[expect(clippy::unused_async, reason = "only callable inside a Tokio runtime, which the listener needs")]
    pub async fn bind(options: StreamOptions) -> io::Result<Self> {
        let listener = BoundedListener::bind(options.address, CONNECTION_LIMITS)?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address, access: Access::new(address.ip(), options.token) })
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the token if it was generated, so that the consumer must be told.
    pub fn generated_token(&self) -> Option<&str> {
        self.access.generated_token()
    }

    /// Starts to serve a run. Call it before the run writes to its journal.
    pub fn start(self, run: StreamedRun) -> Result<Stream, StartError> {
        let (shared, finished) = Shared::open(run)?;
        let stop = CancellationToken::new();
        let routes = routes::router(Arc::clone(&shared))
            .layer(middleware::from_fn_with_state(self.access, access::require));
        let serving = tokio::spawn(self.listener.serve_until(routes, stop.clone(), STOP_TIMEOUT));
        let following = tokio::spawn(Arc::clone(&shared).follow(finished));
        Ok(Stream { shared, stop, serving, following })
    }
}

/// The stream of a run.
pub struct Stream {
    shared: Arc<Shared>,
    stop: CancellationToken,
    serving: JoinHandle<bool>,
    following: JoinHandle<()>,
}

impl Stream {
    /// Ends the stream after the journal was closed. After a finished run, waits at most `linger` until everything is
    /// acknowledged. Returns how many items were not acknowledged when `stop` ended that; they need the journal, so that a
    /// resumed run can deliver them.
    pub async fn finish(mut self, reason: EndReason, linger: Duration, stop: &CancellationToken) -> u64 {
        // Ends because the journal is closed.
        let _ = tokio::time::timeout(STOP_TIMEOUT, &mut self.following).await;
        let is_finished = reason == EndReason::Finished;
        self.shared.end(reason);
        let mut left = 0;
        if is_finished {
            tokio::select! {
                () = self.wait_for_consumer(linger) => {}
                () = stop.cancelled() => left = missing(&self.shared.progress.borrow()),
            }
        }
        self.stop.cancel();
        let _ = (&mut self.serving).await;
        left
    }

    async fn wait_for_consumer(&self, linger: Duration) {
        let mut progress = self.shared.progress.subscribe();
        if !self.wait_for_acknowledgments(&mut progress, linger).await {
            return;
        }
        // A consumer that asks for one item at a time acknowledges the last one before it learns that it was the last.
        let is_told = progress.wait_for(|progress| progress.is_end_sent || !progress.has_consumer);
        let _ = tokio::time::timeout(END_TIMEOUT.min(linger), is_told).await;
    }

    /// Returns whether everything was acknowledged in time.
    async fn wait_for_acknowledgments(
        &self,
        progress: &mut watch::Receiver<Progress>,
        linger: Duration,
    ) -> bool {
        let before = missing(&progress.borrow());
        if before == 0 {
            return true;
        }
        tracing::info!(
            "everything is collected; waiting at most {} s until the consumer of the stream acknowledges the last {before} items",
            linger.as_secs()
        );
        let acknowledged = progress.wait_for(|progress| missing(progress) == 0);
        let is_in_time = tokio::time::timeout(linger, acknowledged).await.is_ok();
        if !is_in_time {
            let left = missing(&self.shared.progress.borrow());
            tracing::warn!(
                "{left} items of the stream were not acknowledged within env_config.stream_linger={} s; \
                 they are in the file of the iteration",
                linger.as_secs()
            );
        }
        is_in_time
    }
}

/// Returns how many items are not acknowledged.
fn missing(progress: &Progress) -> u64 {
    progress.available.saturating_sub(progress.acknowledged)
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.stop.cancel();
        self.following.abort();
        self.serving.abort();
    }
}
