//! How fast a run goes: over the last while, not since its start, because runs warm up, stall and speed up again.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

const EVERY: Duration = Duration::from_secs(1);
const STEPS_OVER: Duration = Duration::from_secs(60);
const TRAJECTORIES_OVER: Duration = Duration::from_secs(300);
/// Durations of a stage that percentiles are taken over.
const RECENT: usize = 256;

/// The pace of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pace {
    pub steps_per_second: f64,
    pub trajectories_per_minute: f64,
}

struct Sample {
    at: Instant,
    steps: u64,
    collected: u64,
}

pub(super) struct Speedometer {
    samples: VecDeque<Sample>,
    steps: u64,
    collected: u64,
}

impl Speedometer {
    pub(super) fn new(now: Instant) -> Self {
        Self { samples: VecDeque::from([Sample { at: now, steps: 0, collected: 0 }]), steps: 0, collected: 0 }
    }

    pub(super) fn count(&mut self, steps: u64, collected: u64, now: Instant) {
        if self.samples.back().is_none_or(|last| now.duration_since(last.at) >= EVERY) {
            self.samples.push_back(Sample { at: now, steps: self.steps, collected: self.collected });
        }
        self.steps += steps;
        self.collected += collected;
        while self.samples.len() > 2
            && self.samples.front().is_some_and(|first| now.duration_since(first.at) > TRAJECTORIES_OVER)
        {
            self.samples.pop_front();
        }
    }

    pub(super) fn pace(&self, now: Instant) -> Pace {
        let per_second = |over: Duration, of: fn(&Sample) -> u64, total: u64| {
            let first = self.samples.iter().find(|sample| now.duration_since(sample.at) <= over)?;
            let seconds = now.duration_since(first.at).as_secs_f64();
            (seconds > 0.0).then(|| (total - of(first)) as f64 / seconds)
        };
        Pace {
            steps_per_second: per_second(STEPS_OVER, |sample| sample.steps, self.steps).unwrap_or(0.0),
            trajectories_per_minute: 60.0
                * per_second(TRAJECTORIES_OVER, |sample| sample.collected, self.collected).unwrap_or(0.0),
        }
    }
}

/// The last durations of one stage.
#[derive(Default)]
pub(super) struct Recent {
    times: VecDeque<Duration>,
}

/// How long a stage took lately: half of the times, and all but one of twenty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    pub median: Duration,
    pub high: Duration,
}

impl Recent {
    pub(super) fn note(&mut self, time: Duration) {
        if self.times.len() == RECENT {
            self.times.pop_front();
        }
        self.times.push_back(time);
    }

    pub(super) fn latency(&self) -> Latency {
        let mut times: Vec<Duration> = self.times.iter().copied().collect();
        times.sort_unstable();
        let at = |share: f64| {
            times.get(((times.len() as f64 * share) as usize).min(times.len().saturating_sub(1)))
        };
        Latency { median: at(0.5).copied().unwrap_or_default(), high: at(0.95).copied().unwrap_or_default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_is_that_of_the_last_while() {
        let start = Instant::now();
        let after = |seconds: f64| start + Duration::from_secs_f64(seconds);
        let mut meter = Speedometer::new(start);
        for second in 1..=600u32 {
            meter.count(2, u64::from(second % 6 == 0), after(f64::from(second)));
        }
        let pace = meter.pace(after(600.0));
        assert!((pace.steps_per_second - 2.0).abs() < 0.1, "{pace:?}");
        assert!((pace.trajectories_per_minute - 10.0).abs() < 0.5, "{pace:?}");
        assert!(meter.samples.len() < 310);
        assert_eq!(meter.pace(after(10_000.0)), Pace::default(), "a run that stands still has no pace");
    }

    #[test]
    fn percentiles_are_of_the_last_times() {
        let mut recent = Recent::default();
        assert_eq!(recent.latency(), Latency::default());
        for millis in 0..1000 {
            recent.note(Duration::from_millis(millis));
        }
        let latency = recent.latency();
        assert!(
            (860..890).contains(&latency.median.as_millis()) && latency.high.as_millis() > 980,
            "{latency:?}"
        );
    }
}
