//! A run in numbers: for the page, for `/status`, and in Prometheus' words.

use std::fmt::Write as _;

use client::chat::ModelClient;
use rollout::run::{event::Stage, state::Board};
use serde_json::{Map, Value, json};

use super::Watched;

/// What the page shows beside the grid.
pub(super) fn live(watched: &Watched, nodes: &Value) -> Value {
    let board = &watched.board;
    let (totals, stages, pace) = (board.totals(), board.stages(), board.pace());
    let done: usize = totals.outcomes.values().sum();
    let at = |stage: Stage| stages.get(&stage).copied().unwrap_or(0);
    let (busy, sessions) = watched.policy.as_ref().map_or((at(Stage::Policy), 0), ModelClient::busy);
    json!({
        "tasks": totals.tasks, "done": done, "elapsed": rounded(board.elapsed().as_secs_f64()),
        "stages": Stage::ALL.map(at), "outcomes": totals.outcomes, "steps": totals.steps,
        "retried": totals.retried, "troubles": totals.troubles,
        "steps_per_second": rounded(pace.steps_per_second),
        "trajectories_per_minute": rounded(pace.trajectories_per_minute),
        "eta": eta(totals.tasks - done.min(totals.tasks), pace.trajectories_per_minute),
        "latency": latency(board),
        "policy": {"busy": busy, "places": sessions, "waiting": at(Stage::Policy).saturating_sub(busy)},
        "judge": {
            "busy": at(Stage::Reward).min(watched.judge_places), "places": watched.judge_places,
            "waiting": at(Stage::Reward).saturating_sub(watched.judge_places),
        },
        "nodes": nodes, "stalled": rounded(board.stalled().as_secs_f64()), "diagnosis": diagnosis(board),
    })
}

/// Only worth its words when nothing has moved for a while.
fn diagnosis(board: &Board) -> Option<String> {
    (board.stalled().as_secs() >= 20 && board.done() < board.totals().tasks).then(|| board.diagnosis())
}

fn eta(left: usize, trajectories_per_minute: f64) -> Option<f64> {
    (trajectories_per_minute > 0.0).then(|| rounded(left as f64 / trajectories_per_minute * 60.0))
}

/// Stage → how often, median and 95th percentile of late, in milliseconds.
fn latency(board: &Board) -> Map<String, Value> {
    let lately = board.latencies();
    let timings = board.timings();
    let entry = |(stage, latency): (&Stage, &rollout::run::state::Latency)| {
        let count = timings.get(stage).map_or(0, |timing| timing.count);
        (stage.as_str().to_owned(), json!([count, latency.median.as_millis(), latency.high.as_millis()]))
    };
    lately.iter().map(entry).collect()
}

fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

pub(super) fn status(board: &Board) -> Value {
    let totals = board.totals();
    let stages: Map<String, Value> =
        board.stages().iter().map(|(stage, count)| (stage.as_str().to_owned(), (*count).into())).collect();
    json!({
        "tasks": totals.tasks, "done": board.done(), "steps": totals.steps, "retried": totals.retried,
        "outcomes": totals.outcomes, "stages": stages, "elapsed_seconds": board.elapsed().as_secs_f64(),
        "stalled_seconds": board.stalled().as_secs_f64(),
    })
}

/// Prometheus' text form. Labels are stages and outcomes only, never tasks or addresses.
pub(super) fn prometheus(board: &Board) -> String {
    let totals = board.totals();
    let mut text = String::new();
    let mut add = |name: &str, kind: &str, help: &str, values: Vec<(String, f64)>| {
        let _ = write!(text, "# HELP webgym_rollout_{name} {help}\n# TYPE webgym_rollout_{name} {kind}\n");
        for (labels, value) in values {
            let _ = writeln!(text, "webgym_rollout_{name}{labels} {value}");
        }
    };
    let plain = |value: f64| vec![(String::new(), value)];
    add("tasks", "gauge", "Tasks of this run", plain(totals.tasks as f64));
    add("steps_total", "counter", "Steps taken", plain(totals.steps as f64));
    let retried = "Episodes started afresh after an infrastructure loss";
    add("retried_total", "counter", retried, plain(totals.retried as f64));
    add("troubles_total", "counter", "Operations that failed", plain(totals.troubles as f64));
    let outcomes =
        totals.outcomes.iter().map(|(name, count)| (format!("{{outcome=\"{name}\"}}"), *count as f64));
    add("finished_total", "counter", "Trajectories by outcome", outcomes.collect());
    let label = |stage: Stage| format!("{{stage=\"{}\"}}", stage.as_str());
    let stages = board.stages().into_iter().map(|(stage, count)| (label(stage), count as f64));
    add("episodes", "gauge", "Episodes by what they are doing", stages.collect());
    let timings = board.timings();
    let sums = timings.iter().map(|(stage, timing)| (label(*stage), timing.total.as_secs_f64()));
    add("stage_seconds_sum", "counter", "Time spent in each stage", sums.collect());
    let counts = timings.iter().map(|(stage, timing)| (label(*stage), timing.count as f64));
    add("stage_seconds_count", "counter", "How often each stage was gone through", counts.collect());
    text
}

#[cfg(test)]
mod tests {
    use proto::trajectory::Outcome;
    use rollout::run::event::{Event, Listener};

    use super::*;

    #[test]
    fn figures_have_stages_and_outcomes() {
        let board = Board::new(0..2);
        board.event(&Event::Finished { index: 0, outcome: Outcome::Success, steps: 3 });
        let text = prometheus(&board);
        assert!(text.contains("webgym_rollout_finished_total{outcome=\"success\"} 1"), "{text}");
        assert!(text.contains("webgym_rollout_episodes{stage=\"not_started\"} 1"), "{text}");
        assert_eq!(status(&board)["done"], 1);
    }
}
