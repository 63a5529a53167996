//! A run's metrics for Prometheus, as OpenMetrics text. Labels are stages and outcomes only, never tasks or addresses, so
//! that the number of series stays small.

use std::{collections::BTreeMap, fmt};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet, text::encode},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
    registry::Registry,
};
use rollout::run::{
    event::Stage,
    state::{RunState, Timing, Totals},
};

/// Content type of the OpenMetrics text format.
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Returns the run's metrics in the OpenMetrics text format.
pub(super) fn render(run: &RunState) -> String {
    let mut registry = Registry::with_prefix("webgym_rollout");
    registry.register_collector(Box::new(Snapshot {
        totals: run.totals(),
        stages: run.stages(),
        timings: run.timings(),
    }));
    let mut text = String::new();
    match encode(&mut text, &registry) {
        Ok(()) => text,
        Err(error) => format!("# cannot encode the metrics: {error}\n# EOF\n"),
    }
}

/// The numbers of a run at one moment.
#[derive(Debug)]
struct Snapshot {
    totals: Totals,
    stages: BTreeMap<Stage, usize>,
    timings: BTreeMap<Stage, Timing>,
}

impl Collector for Snapshot {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Totals { tasks, steps, retried, failures, outcomes, .. } = &self.totals;
        let tasks_gauge = encoder.encode_descriptor("tasks", "Tasks of this run", None, MetricType::Gauge)?;
        ConstGauge::new(*tasks as u64).encode(tasks_gauge)?;
        for (name, help, value) in [
            ("steps", "Steps taken", steps),
            ("retried", "Episodes restarted after an infrastructure loss", retried),
            ("troubles", "Operations that failed", failures),
        ] {
            ConstCounter::new(*value).encode(encoder.encode_descriptor(
                name,
                help,
                None,
                MetricType::Counter,
            )?)?;
        }
        let mut finished =
            encoder.encode_descriptor("finished", "Trajectories by outcome", None, MetricType::Counter)?;
        for (outcome, count) in outcomes {
            ConstCounter::new(*count as u64).encode(finished.encode_family(&[("outcome", *outcome)])?)?;
        }
        let mut episodes =
            encoder.encode_descriptor("episodes", "Episodes by current stage", None, MetricType::Gauge)?;
        for (stage, count) in &self.stages {
            ConstGauge::new(*count as u64).encode(episodes.encode_family(&[("stage", stage.as_str())])?)?;
        }
        let mut seconds =
            encoder.encode_descriptor("stage_seconds", "Time per stage", None, MetricType::Histogram)?;
        for (stage, timing) in &self.timings {
            // Sum and count are all that is recorded, so everything is in the one bucket that a histogram must have.
            seconds.encode_family(&[("stage", stage.as_str())])?.encode_histogram::<NoLabelSet>(
                timing.total.as_secs_f64(),
                timing.count,
                &[(f64::INFINITY, timing.count)],
                None,
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proto::trajectory::Outcome;
    use rollout::run::event::{Event, Listener};

    use super::*;

    #[test]
    fn metrics_keep_their_names_and_labels() {
        let run = RunState::new(0..2);
        run.on_event(&Event::StepDone { index: 0 });
        run.on_event(&Event::StageTimed { stage: Stage::Policy, duration: Duration::from_millis(1500) });
        run.on_event(&Event::Finished { index: 0, outcome: Outcome::Success, steps: 3 });
        let text = render(&run);
        for line in [
            "webgym_rollout_tasks 2",
            "webgym_rollout_steps_total 1",
            "webgym_rollout_retried_total 0",
            "webgym_rollout_troubles_total 0",
            "webgym_rollout_finished_total{outcome=\"success\"} 1",
            "webgym_rollout_episodes{stage=\"not_started\"} 1",
            "webgym_rollout_stage_seconds_sum{stage=\"policy\"} 1.5",
            "webgym_rollout_stage_seconds_count{stage=\"policy\"} 1",
        ] {
            assert!(text.lines().any(|found| found == line), "no line {line:?} in\n{text}");
        }
        assert!(text.ends_with("# EOF\n"), "{text}");
    }
}
