//! Waiting for something to become true, by looking.

use std::time::{Duration, Instant};

const LOOK_EVERY: Duration = Duration::from_millis(25);

/// Looks until `look` yields something; at the limit the test stops, saying what was waited for.
pub async fn poll_until<T>(what: &str, limit: Duration, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let end = Instant::now() + limit;
    loop {
        if let Some(seen) = look().await {
            return seen;
        }
        assert!(Instant::now() < end, "not within {limit:?}: {what}");
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// The same for a condition.
pub async fn eventually(what: &str, limit: Duration, mut holds: impl AsyncFnMut() -> bool) {
    poll_until(what, limit, async || holds().await.then_some(())).await;
}
