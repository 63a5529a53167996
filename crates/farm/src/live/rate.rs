//! Limits how many messages a viewer sends.

use std::time::Instant;

use super::{MAX_MESSAGE_BURST, MAX_MESSAGES_PER_SECOND};

/// A token bucket.
pub(crate) struct MessageRate {
    left: f64,
    since: Instant,
}

impl MessageRate {
    pub(crate) fn new(now: Instant) -> Self {
        Self { left: MAX_MESSAGE_BURST, since: now }
    }

    /// Counts a message. Returns whether it is within the limit.
    pub(crate) fn count(&mut self, now: Instant) -> bool {
        let elapsed = now.saturating_duration_since(self.since).as_secs_f64();
        self.left = (self.left + elapsed * MAX_MESSAGES_PER_SECOND).min(MAX_MESSAGE_BURST);
        self.since = now;
        self.left -= 1.0;
        self.left >= 0.0
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn burst_is_limited_and_refills() {
        let now = Instant::now();
        let mut rate = MessageRate::new(now);
        let burst = MAX_MESSAGE_BURST as usize;
        assert_eq!((0..2 * burst).filter(|_| rate.count(now)).count(), burst);
        let mut rate = MessageRate::new(now);
        let steady = (0..3000_u32).all(|number| rate.count(now + Duration::from_millis(6) * number));
        assert!(steady, "166 messages per second are within the limit");
    }
}
