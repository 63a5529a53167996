//! The one sign that the server is going: everything that waits, waits beside it, so that no handler
//! holds up a shutdown.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// Longer waits help no test and would only look like a hang.
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

#[derive(Clone, Default)]
pub(crate) struct Stop(CancellationToken);

impl Stop {
    pub(crate) fn announce(&self) {
        self.0.cancel();
    }

    pub(crate) async fn announced(&self) {
        self.0.cancelled().await;
    }

    /// Waits that long, or until the server stops.
    pub(crate) async fn pause(&self, milliseconds: u64) {
        let pause = Duration::from_millis(milliseconds).min(LONGEST_PAUSE);
        tokio::select! {
            () = self.0.cancelled() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }

    /// As [`Stop::pause`]; false when the server stops instead.
    pub(crate) async fn tick(&self, milliseconds: u64) -> bool {
        self.pause(milliseconds).await;
        !self.0.is_cancelled()
    }
}
