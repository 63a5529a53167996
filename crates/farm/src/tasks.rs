//! The only way to start background work in this crate: named, logged if it panics, joined at shutdown.

use std::{future::Future, panic::AssertUnwindSafe, time::Duration};

use futures_util::FutureExt;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::Instrument;

/// The background tasks of one owner. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Tasks {
    tracker: TaskTracker,
    stop: CancellationToken,
}

impl Tasks {
    /// Starts a task that ends by itself once [`Tasks::stopping`] is cancelled.
    pub(crate) fn spawn(&self, name: &'static str, work: impl Future<Output = ()> + Send + 'static) {
        let watched = async move {
            if AssertUnwindSafe(work).catch_unwind().await.is_err() {
                tracing::error!(name, "a background task panicked; this is a bug in webgym");
            }
        };
        self.tracker.spawn(watched.instrument(tracing::debug_span!("task", name)));
    }

    /// Starts a task that is dropped at shutdown.
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

    /// Asks all tasks to end and waits for them. Returns false if some still ran at the timeout.
    pub(crate) async fn stop(&self, timeout: Duration) -> bool {
        self.stop.cancel();
        self.tracker.close();
        tokio::time::timeout(timeout, self.tracker.wait()).await.is_ok()
    }
}
