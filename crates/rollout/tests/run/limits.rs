//! Limits of concurrency and time: permits, sessions, the completion threshold, the watchdog.

use std::time::Duration;

use proto::trajectory::Outcome;
use rollout::run::event::Stage;
use testkit::{
    sim_farm::{Fault, SimFarmOptions},
    sim_model::{ModelReply, ModelRequest},
};

use crate::harness::{Harness, assert_ended_early, clicks_then_answers, ending, outcome, tasks};

const LATENCY: Duration = Duration::from_millis(15);

#[tokio::test]
async fn permits_bound_concurrent_requests_per_kind() {
    let farm = SimFarmOptions { combined_calls: false, latency: LATENCY, ..SimFarmOptions::default() };
    let mut harness = Harness::new(farm, clicks_then_answers(2)).await;
    harness.mode = proto::InteractionMode::SetOfMarks;
    harness.policy = testkit::sim_model::SimModel::start(|question| match question.step() {
        1 => ModelReply::call("web_interaction", &serde_json::json!({"action": "click", "element_id": 1})),
        _ => ModelReply::answer("42"),
    })
    .await;
    harness.limits.episodes = 12;
    harness.pools = rollout::config::HttpPools {
        metadata: 2,
        navigate: 3,
        allocate: 4,
        release: 2,
        screenshot: 3,
        ac_tree: 2,
        page_metadata: 1,
        execute: 2,
    };
    let result = harness.run(tasks(24)).await;
    assert!(result.trajectories.iter().all(|trajectory| outcome(trajectory) == Outcome::Success));
    let max_in_flight = |kind| harness.farm.max_in_flight(kind);
    for (kind, bound) in [
        ("metadata", 2),
        ("navigate", 3),
        ("get", 4),
        ("reset", 2),
        ("screenshot", 3),
        ("ac_tree", 2),
        ("page_metadata", 1),
        ("execute", 2),
    ] {
        assert!((1..=bound).contains(&max_in_flight(kind)), "{kind}: {} at once", max_in_flight(kind));
    }
}

#[tokio::test]
async fn concurrent_episodes_are_bounded() {
    let farm = SimFarmOptions { latency: LATENCY, ..SimFarmOptions::default() };
    let mut harness = Harness::new(farm, clicks_then_answers(2)).await;
    harness.limits.episodes = 3;
    let result = harness.run(tasks(12)).await;
    assert_eq!((result.trajectories.len(), harness.farm.max_leased()), (12, 3));
}

#[tokio::test]
async fn max_vllm_sessions_bounds_policy_requests() {
    let mut harness = Harness::new(SimFarmOptions::default(), |question: &ModelRequest| {
        ModelReply::Delayed(LATENCY, format!("ANSWER [{}]", question.step()))
    })
    .await;
    harness.limits.episodes = 12;
    harness.sessions = 2;
    let result = harness.run(tasks(12)).await;
    assert_eq!((result.trajectories.len(), harness.policy.max_concurrent()), (12, 2));
}

#[tokio::test]
async fn waiting_for_session_does_not_count_as_request_time() {
    // With one session and six episodes, the last episode waits longer than the timeout of one request.
    let mut harness = Harness::new(SimFarmOptions::default(), |_: &ModelRequest| {
        ModelReply::Delayed(Duration::from_millis(200), "ANSWER [42]".into())
    })
    .await;
    harness.sessions = 1;
    harness.attempt_timeout = Duration::from_millis(700);
    let result = harness.run(tasks(6)).await;
    assert!(result.trajectories.iter().all(|trajectory| outcome(trajectory) == Outcome::Success));
    assert_eq!(harness.policy.count(), 6);
}

#[tokio::test]
async fn permit_timeout_is_an_infrastructure_loss() {
    let script = |call: &testkit::sim_farm::Call| {
        if call.path == "/observe" && call.total == 0 { Fault::NoResponse } else { Fault::None }
    };
    let mut harness = Harness::faulty(script, clicks_then_answers(1)).await;
    harness.pools.screenshot = 1;
    harness.wait_timeout = Duration::from_millis(50);
    harness.limits.max_infra_retries = 0;
    harness.limits.task_timeout = Duration::from_secs(2);
    let result = harness.run(tasks(2)).await;
    let endings: Vec<String> = result.trajectories.iter().map(ending).collect();
    assert!(endings.iter().any(|ending| ending.contains("no Screenshot permit became free")), "{endings:?}");
}

#[tokio::test]
async fn episodes_after_completion_threshold_get_a_grace_period() {
    let mut harness = Harness::faulty(
        |_| Fault::None,
        |question| match (question.task(), question.step()) {
            (name, 2..) if name.ends_with(" 7") => ModelReply::Never,
            (_, 1) => ModelReply::click(1, 1),
            _ => ModelReply::answer("42"),
        },
    )
    .await;
    harness.limits.completion_threshold = 0.7;
    harness.limits.completion_grace = Duration::from_millis(300);
    harness.attempt_timeout = Duration::from_mins(1);
    let result = harness.run(tasks(8)).await;
    assert_eq!(result.collected.unwrap().unfinished, 0);
    let slow = &result.trajectories[7];
    assert_ended_early(slow, 1);
    assert_eq!((outcome(slow), ending(slow)), (Outcome::Cancelled, "the run ended first".into()));
    assert!(result.trajectories[..7].iter().all(|trajectory| outcome(trajectory) == Outcome::Success));
    assert!(harness.farm.active_leases().is_empty());
}

#[tokio::test]
async fn completion_threshold_cancels_tasks_that_never_started() {
    let mut harness = Harness::faulty(
        |_| Fault::None,
        |question| match question.task() {
            name if name.ends_with(" 1") => ModelReply::Never,
            _ => ModelReply::answer("42"),
        },
    )
    .await;
    harness.limits.episodes = 1;
    harness.limits.completion_threshold = 0.25;
    harness.limits.completion_grace = Duration::from_millis(200);
    harness.attempt_timeout = Duration::from_mins(1);
    let result = harness.run(tasks(4)).await;
    let outcomes: Vec<Outcome> = result.trajectories.iter().map(outcome).collect();
    assert_eq!(outcomes, [Outcome::Success, Outcome::Cancelled, Outcome::Cancelled, Outcome::Cancelled]);
}

#[tokio::test]
async fn watchdog_reports_what_episodes_wait_for() {
    let mut harness = Harness::faulty(|_| Fault::None, |_| ModelReply::Never).await;
    harness.limits.task_timeout = Duration::from_secs(3);
    harness.attempt_timeout = Duration::from_mins(1);
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    let state = std::sync::Arc::clone(&harness.state);
    let watchdog = tokio::spawn(rollout::run::watch(state, Duration::from_millis(400), move |report| {
        let _ = sender.send(report.to_owned());
    }));
    let result = harness.run(tasks(3)).await;
    watchdog.abort();
    assert_eq!(result.trajectories.len(), 3);
    let report = receiver.recv().await.unwrap();
    assert!(report.contains("3 in stage policy (waiting for the policy)"), "{report}");
}

#[tokio::test]
async fn run_state_counts_steps_and_ends_idle() {
    let mut harness = Harness::faulty(|_| Fault::None, clicks_then_answers(3)).await;
    harness.state = std::sync::Arc::new(rollout::run::state::RunState::new(0..4));
    harness.run(tasks(4)).await;
    assert_eq!(harness.state.totals().steps, 12);
    assert_eq!(harness.state.stages(), std::collections::BTreeMap::from([(Stage::Finished, 4)]));
    assert!(harness.state.cells().iter().all(|cell| cell.step == 3));
}
