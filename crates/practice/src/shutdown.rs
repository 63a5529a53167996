//! The shutdown signal of the server. Every wait in a handler also waits for this signal, so that no handler
//! delays the shutdown.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// Longer waits are of no use to a test and would look like a hang.
const MAX_SLEEP: Duration = Duration::from_mins(10);

#[derive(Clone, Default)]
pub(crate) struct Shutdown(CancellationToken);

impl Shutdown {
    pub(crate) fn trigger(&self) {
        self.0.cancel();
    }

    pub(crate) async fn triggered(&self) {
        self.0.cancelled().await;
    }

    /// Waits for the given time or until the server stops.
    pub(crate) async fn sleep(&self, milliseconds: u64) {
        let duration = Duration::from_millis(milliseconds).min(MAX_SLEEP);
        tokio::select! {
            () = self.0.cancelled() => {}
            () = tokio::time::sleep(duration) => {}
        }
    }

    /// Like [`Shutdown::sleep`]. Returns false if the server stops.
    pub(crate) async fn sleep_unless_stopped(&self, milliseconds: u64) -> bool {
        self.sleep(milliseconds).await;
        !self.0.is_cancelled()
    }
}
