//! The time by which a call, with all its waits and retries, must end.

use std::time::Duration;

use tokio::time::Instant;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(Instant);

impl Deadline {
    pub fn after(span: Duration) -> Self {
        let now = Instant::now();
        // A span that the clock cannot represent becomes a year.
        Self(now.checked_add(span).unwrap_or(now + Duration::from_secs(365 * 24 * 3600)))
    }

    pub fn at(instant: Instant) -> Self {
        Self(instant)
    }

    pub fn instant(self) -> Instant {
        self.0
    }

    pub fn remaining(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    pub fn has_passed(self) -> bool {
        self.remaining().is_zero()
    }

    #[must_use]
    pub fn earlier(self, other: Self) -> Self {
        self.min(other)
    }
}
