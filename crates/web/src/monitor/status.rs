//! A run as JSON numbers: the statistics that the page shows next to the grid, and the response of `/status`.

use client::chat::ModelClient;
use proto::network::MatchCounts;
use rollout::run::{
    event::Stage,
    state::{RunState, Totals},
};
use serde_json::{Map, Value, json};

use super::MonitoredRun;

/// Seconds without progress after which the page explains what the run is waiting for.
const STALL_NOTICE_SECONDS: u64 = 20;

/// Sites whose coverage by an archive the page shows.
const MAX_SITES: usize = 20;

/// Returns what the page shows next to the grid.
pub(super) fn statistics(monitored: &MonitoredRun, nodes: &Value) -> Value {
    let run = &monitored.run;
    let (totals, stages, pace) = (run.totals(), run.stages(), run.pace());
    let done: usize = totals.outcomes.values().sum();
    let in_stage = |stage: Stage| stages.get(&stage).copied().unwrap_or(0);
    let (busy, sessions) =
        monitored.policy.as_ref().map_or((in_stage(Stage::Policy), 0), ModelClient::sessions_in_use);
    let judge_slots = monitored.judge_slots;
    json!({
        "tasks": totals.tasks, "revision": run.revision(), "done": done, "elapsed": round(run.elapsed().as_secs_f64()),
        "stages": Stage::ALL.map(in_stage), "outcomes": totals.outcomes, "steps": totals.steps,
        "retried": totals.retried, "failures": totals.failures,
        "steps_per_second": round(pace.steps_per_second),
        "trajectories_per_minute": round(pace.trajectories_per_minute),
        "eta": eta(run, totals.tasks - done.min(totals.tasks), pace.trajectories_per_minute),
        "latency": latency(run),
        "policy": {"busy": busy, "slots": sessions, "waiting": in_stage(Stage::Policy).saturating_sub(busy)},
        "judge": {
            "busy": in_stage(Stage::Reward).min(judge_slots), "slots": judge_slots,
            "waiting": in_stage(Stage::Reward).saturating_sub(judge_slots),
        },
        "nodes": nodes, "stalled": round(run.stalled().as_secs_f64()), "diagnosis": diagnosis(run),
        "hold": run.hold(), "coverage": coverage(&totals),
    })
}

/// Returns the sites with the most missed requests of a replay, with the counts of exact, normalised, scored and missed ones.
fn coverage(totals: &Totals) -> Vec<Value> {
    let mut sites: Vec<_> = totals.coverage.iter().collect();
    sites.sort_by_key(|(_, matches)| std::cmp::Reverse(matches.missed));
    let row = |(site, matches): (&String, &MatchCounts)| {
        let MatchCounts { exact, normalised, scored, missed } = matches;
        json!([site, exact, normalised, scored, missed])
    };
    sites.into_iter().take(MAX_SITES).map(row).collect()
}

/// Explains what the run is waiting for, once it has not progressed for a while. A hold on request is shown by itself.
fn diagnosis(run: &RunState) -> Option<String> {
    let is_active = run.stages().keys().any(|stage| !stage.is_final());
    let is_stalled = is_active && run.stalled().as_secs() >= STALL_NOTICE_SECONDS;
    (is_stalled && run.hold().is_none()).then(|| run.diagnosis())
}

/// Estimates the remaining seconds; `None` while no trajectory has finished recently, and for runs without an end.
fn eta(run: &RunState, remaining: usize, trajectories_per_minute: f64) -> Option<f64> {
    (trajectories_per_minute > 0.0 && !run.is_open_ended())
        .then(|| round(remaining as f64 / trajectories_per_minute * 60.0))
}

/// Maps each stage to its total count and to the recent median and 95th percentile in milliseconds.
fn latency(run: &RunState) -> Map<String, Value> {
    let recent = run.latencies();
    let timings = run.timings();
    let entry = |(stage, latency): (&Stage, &rollout::run::state::Latency)| {
        let count = timings.get(stage).map_or(0, |timing| timing.count);
        (stage.as_str().to_owned(), json!([count, latency.median.as_millis(), latency.p95.as_millis()]))
    };
    recent.iter().map(entry).collect()
}

/// Rounds to two decimals.
fn round(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// Returns the response of `/status`.
pub(super) fn summary(run: &RunState) -> Value {
    let totals = run.totals();
    let stages: Map<String, Value> =
        run.stages().iter().map(|(stage, count)| (stage.as_str().to_owned(), (*count).into())).collect();
    json!({
        "tasks": totals.tasks, "done": run.done(), "steps": totals.steps, "retried": totals.retried,
        "outcomes": totals.outcomes, "stages": stages, "elapsed_seconds": run.elapsed().as_secs_f64(),
        "stalled_seconds": run.stalled().as_secs_f64(), "hold": run.hold(),
        "pause_seconds_left": run.pause_remaining().map(|remaining| remaining.as_secs_f64()),
    })
}

#[cfg(test)]
mod tests {
    use proto::trajectory::Outcome;
    use rollout::run::event::{Event, Listener};

    use super::*;

    #[test]
    fn finished_task_is_counted_as_done() {
        let run = RunState::new(0..2);
        run.on_event(&Event::Finished { index: 0, outcome: Outcome::Success, steps: 3 });
        assert_eq!(summary(&run)["done"], 1);
        assert_eq!(summary(&run)["stages"]["not_started"], 1);
    }

    #[test]
    fn pause_is_shown_until_it_ends() {
        let run = RunState::new(0..2);
        assert_eq!(summary(&run)["hold"], Value::Null);
        let until = tokio::time::Instant::now() + std::time::Duration::from_secs(90);
        run.on_event(&Event::Paused { until });
        let hold = summary(&run)["hold"].as_str().unwrap().to_owned();
        assert!(hold.starts_with("policy calls are paused for at most"), "{hold}");
        assert!(summary(&run)["pause_seconds_left"].as_f64().unwrap() > 30.0);
        run.on_event(&Event::Resumed);
        assert_eq!(summary(&run)["hold"], Value::Null);
    }
}
