//! The intervals of the registry, which match those of the Python system. Tests shorten all of them by one factor.

use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegistryTiming {
    /// How long an entry lives unless it is renewed.
    pub(crate) ttl: Duration,
    /// How often an entry is renewed.
    pub(crate) renew_interval: Duration,
    /// How often a node checks that its entry still exists: a restarted Redis may have lost it.
    pub(crate) check_interval: Duration,
    /// How often a node tries to reach a Redis that is down.
    pub(crate) retry_interval: Duration,
    /// How often a master reads the entries.
    pub(crate) read_interval: Duration,
}

impl RegistryTiming {
    /// Divides all intervals by the factor.
    pub fn faster(self, factor: f64) -> Self {
        let divide = |time: Duration| time.div_f64(factor.clamp(1.0, 1000.0));
        Self {
            ttl: divide(self.ttl),
            renew_interval: divide(self.renew_interval),
            check_interval: divide(self.check_interval),
            retry_interval: divide(self.retry_interval),
            read_interval: divide(self.read_interval),
        }
    }

    /// An entry with more than this left was renewed by a live node: it has missed at most one renewal.
    pub(crate) fn fresh_ttl(self) -> Duration {
        self.ttl.saturating_sub(self.renew_interval * 2)
    }
}

impl Default for RegistryTiming {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            ttl: seconds(120),
            renew_interval: seconds(30),
            check_interval: seconds(5),
            retry_interval: seconds(2),
            read_interval: seconds(10),
        }
    }
}
