//! The registry's times, as the Python system has them. Tests make them pass faster, all by the same factor.

use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// How long an entry lives unless it is renewed.
    pub(crate) ttl: Duration,
    /// How often it is renewed.
    pub(crate) beat: Duration,
    /// How often a node looks whether its entry is still there: a Redis that was restarted has forgotten it.
    pub(crate) look: Duration,
    /// How often to look for a Redis that is away.
    pub(crate) look_for_redis: Duration,
    /// How often a master reads the entries.
    pub(crate) read: Duration,
}

impl Pace {
    pub fn faster(self, factor: f64) -> Self {
        let short = |time: Duration| time.div_f64(factor.clamp(1.0, 1000.0));
        Self {
            ttl: short(self.ttl),
            beat: short(self.beat),
            look: short(self.look),
            look_for_redis: short(self.look_for_redis),
            read: short(self.read),
        }
    }

    /// An entry with more than this left has been renewed by somebody who lives: at most one beat was missed.
    pub(crate) fn fresh(self) -> Duration {
        self.ttl.saturating_sub(self.beat * 2)
    }
}

impl Default for Pace {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            ttl: seconds(120),
            beat: seconds(30),
            look: seconds(5),
            look_for_redis: seconds(2),
            read: seconds(10),
        }
    }
}
