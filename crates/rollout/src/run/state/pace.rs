//! The pace of a run and the latency of its stages over a recent window, because runs warm up, stall and recover.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);
const STEP_WINDOW: Duration = Duration::from_secs(60);
const TRAJECTORY_WINDOW: Duration = Duration::from_secs(300);
/// Durations per stage over which percentiles are computed.
const MAX_RECENT_DURATIONS: usize = 256;

/// The pace of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pace {
    pub steps_per_second: f64,
    pub trajectories_per_minute: f64,
}

struct Sample {
    time: Instant,
    steps: u64,
    trajectories: u64,
}

/// Counts steps and trajectories and keeps samples of the counts.
pub(super) struct PaceMeter {
    samples: VecDeque<Sample>,
    steps: u64,
    trajectories: u64,
}

impl PaceMeter {
    pub(super) fn new(now: Instant) -> Self {
        let first = Sample { time: now, steps: 0, trajectories: 0 };
        Self { samples: VecDeque::from([first]), steps: 0, trajectories: 0 }
    }

    pub(super) fn add(&mut self, steps: u64, trajectories: u64, now: Instant) {
        if self.samples.back().is_none_or(|last| now.duration_since(last.time) >= SAMPLE_INTERVAL) {
            self.samples.push_back(Sample { time: now, steps: self.steps, trajectories: self.trajectories });
        }
        self.steps += steps;
        self.trajectories += trajectories;
        while self.samples.len() > 2
            && self.samples.front().is_some_and(|first| now.duration_since(first.time) > TRAJECTORY_WINDOW)
        {
            self.samples.pop_front();
        }
    }

    pub(super) fn pace(&self, now: Instant) -> Pace {
        let per_second = |window: Duration, count: fn(&Sample) -> u64, total: u64| {
            let first = self.samples.iter().find(|sample| now.duration_since(sample.time) <= window)?;
            let seconds = now.duration_since(first.time).as_secs_f64();
            (seconds > 0.0).then(|| (total - count(first)) as f64 / seconds)
        };
        let steps = per_second(STEP_WINDOW, |sample| sample.steps, self.steps);
        let trajectories = per_second(TRAJECTORY_WINDOW, |sample| sample.trajectories, self.trajectories);
        Pace {
            steps_per_second: steps.unwrap_or(0.0),
            trajectories_per_minute: 60.0 * trajectories.unwrap_or(0.0),
        }
    }
}

/// The latest durations of one stage.
#[derive(Default)]
pub(super) struct RecentDurations {
    durations: VecDeque<Duration>,
}

/// Percentiles of the recent durations of a stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    pub median: Duration,
    pub p95: Duration,
}

impl RecentDurations {
    pub(super) fn push(&mut self, duration: Duration) {
        if self.durations.len() == MAX_RECENT_DURATIONS {
            self.durations.pop_front();
        }
        self.durations.push_back(duration);
    }

    pub(super) fn latency(&self) -> Latency {
        let mut sorted: Vec<Duration> = self.durations.iter().copied().collect();
        sorted.sort_unstable();
        let quantile = |share: f64| {
            let rank = (sorted.len() as f64 * share) as usize;
            sorted.get(rank.min(sorted.len().saturating_sub(1))).copied().unwrap_or_default()
        };
        Latency { median: quantile(0.5), p95: quantile(0.95) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pace_covers_the_recent_window() {
        let start = Instant::now();
        let after = |seconds: f64| start + Duration::from_secs_f64(seconds);
        let mut meter = PaceMeter::new(start);
        for second in 1..=600u32 {
            meter.add(2, u64::from(second % 6 == 0), after(f64::from(second)));
        }
        let pace = meter.pace(after(600.0));
        assert!((pace.steps_per_second - 2.0).abs() < 0.1, "{pace:?}");
        assert!((pace.trajectories_per_minute - 10.0).abs() < 0.5, "{pace:?}");
        assert!(meter.samples.len() < 310);
        assert_eq!(meter.pace(after(10_000.0)), Pace::default(), "a stalled run has a pace of zero");
    }

    #[test]
    fn percentiles_cover_the_latest_durations() {
        let mut recent = RecentDurations::default();
        assert_eq!(recent.latency(), Latency::default());
        for millis in 0..1000 {
            recent.push(Duration::from_millis(millis));
        }
        let latency = recent.latency();
        assert!(
            (860..890).contains(&latency.median.as_millis()) && latency.p95.as_millis() > 980,
            "{latency:?}"
        );
    }
}
