//! Polls until a condition holds or a deadline passes.

use std::time::{Duration, Instant};

const POLL_INTERVAL: Duration = Duration::from_millis(25);

/// Polls until `poll` returns a value. Panics with `what` when `limit` has passed.
pub async fn poll_until<T>(what: &str, limit: Duration, mut poll: impl AsyncFnMut() -> Option<T>) -> T {
    let end = Instant::now() + limit;
    loop {
        if let Some(value) = poll().await {
            return value;
        }
        assert!(Instant::now() < end, "timed out after {limit:?}, waiting until {what}");
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Polls until a condition holds. Panics with `what` when `limit` has passed.
pub async fn eventually(what: &str, limit: Duration, mut holds: impl AsyncFnMut() -> bool) {
    poll_until(what, limit, async || holds().await.then_some(())).await;
}
