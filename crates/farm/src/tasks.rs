//! The one way background work is started here: named, logged when it fails, joined at shutdown.

use std::{future::Future, panic::AssertUnwindSafe, time::Duration};

use futures_util::FutureExt;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::Instrument;

/// The tasks of one owner. Cloning shares them.
#[derive(Clone, Default)]
pub(crate) struct Tasks {
    tracker: TaskTracker,
    stop: CancellationToken,
}

impl Tasks {
    /// Starts work that ends by itself once [`Tasks::stopping`] is cancelled.
    pub(crate) fn spawn(&self, name: &'static str, work: impl Future<Output = ()> + Send + 'static) {
        let watched = async move {
            if AssertUnwindSafe(work).catch_unwind().await.is_err() {
                tracing::error!(name, "background work ended by a panic; this is a bug in webgym");
            }
        };
        self.tracker.spawn(watched.instrument(tracing::debug_span!("task", name)));
    }

    /// Starts a loop that is simply dropped at shutdown.
    pub(crate) fn spawn_until_stopped(
        &self,
        name: &'static str,
        work: impl Future<Output = ()> + Send + 'static,
    ) {
        let stop = self.stop.clone();
        self.spawn(name, async move {
            tokio::select! {
                () = work => {}
                () = stop.cancelled() => {}
            }
        });
    }

    pub(crate) fn stopping(&self) -> &CancellationToken {
        &self.stop
    }

    /// Asks everything to end and waits for it. False when something was still running at the limit.
    pub(crate) async fn stop(&self, limit: Duration) -> bool {
        self.stop.cancel();
        self.tracker.close();
        tokio::time::timeout(limit, self.tracker.wait()).await.is_ok()
    }
}
