//! How much happens at once, and when a run has waited long enough.

use std::time::Duration;

use proto::trajectory::Outcome;
use rollout::run::event::Stage;
use testkit::{
    sim_farm::{Fault, SimFarmOptions},
    sim_model::{ModelReply, ModelRequest},
};

use crate::harness::{Bench, assert_cut_short, clicks_then_answers, ending, outcome, tasks};

const LATENCY: Duration = Duration::from_millis(15);

#[tokio::test]
async fn permits_bound_concurrent_requests_per_kind() {
    let farm = SimFarmOptions { combined_calls: false, latency: LATENCY, ..SimFarmOptions::default() };
    let mut bench = Bench::new(farm, clicks_then_answers(2)).await;
    bench.mode = proto::InteractionMode::SetOfMarks;
    bench.policy = testkit::sim_model::SimModel::start(|question| match question.step() {
        1 => ModelReply::call("web_interaction", &serde_json::json!({"action": "click", "element_id": 1})),
        _ => ModelReply::answer("42"),
    })
    .await;
    bench.limits.episodes = 12;
    bench.pools = rollout::config::HttpPools {
        metadata: 2,
        navigate: 3,
        allocate: 4,
        release: 2,
        screenshot: 3,
        ac_tree: 2,
        page_metadata: 1,
        execute: 2,
    };
    let left = bench.run(tasks(24)).await;
    assert!(left.trajectories.iter().all(|one| outcome(one) == Outcome::Success));
    let most = |kind| bench.farm.max_in_flight(kind);
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
        assert!((1..=bound).contains(&most(kind)), "{kind}: {} at once", most(kind));
    }
}

#[tokio::test]
async fn concurrent_episodes_are_bounded() {
    let farm = SimFarmOptions { latency: LATENCY, ..SimFarmOptions::default() };
    let mut bench = Bench::new(farm, clicks_then_answers(2)).await;
    bench.limits.episodes = 3;
    let left = bench.run(tasks(12)).await;
    assert_eq!((left.trajectories.len(), bench.farm.max_leased()), (12, 3));
}

#[tokio::test]
async fn max_vllm_sessions_bounds_policy_requests() {
    let mut bench = Bench::new(SimFarmOptions::default(), |question: &ModelRequest| {
        ModelReply::Delayed(LATENCY, format!("ANSWER [{}]", question.step()))
    })
    .await;
    bench.limits.episodes = 12;
    bench.sessions = 2;
    let left = bench.run(tasks(12)).await;
    assert_eq!((left.trajectories.len(), bench.policy.max_concurrent()), (12, 2));
}

#[tokio::test]
async fn waiting_for_session_does_not_count_as_request_time() {
    // One session and six episodes: the last waits far longer than one request may take.
    let mut bench = Bench::new(SimFarmOptions::default(), |_: &ModelRequest| {
        ModelReply::Delayed(Duration::from_millis(200), "ANSWER [42]".into())
    })
    .await;
    bench.sessions = 1;
    bench.attempt_timeout = Duration::from_millis(700);
    let left = bench.run(tasks(6)).await;
    assert!(left.trajectories.iter().all(|one| outcome(one) == Outcome::Success));
    assert_eq!(bench.policy.count(), 6);
}

#[tokio::test]
async fn permit_timeout_is_an_infrastructure_loss() {
    let script = |call: &testkit::sim_farm::Call| {
        if call.path == "/observe" && call.total == 0 { Fault::NoResponse } else { Fault::None }
    };
    let mut bench = Bench::faulty(script, clicks_then_answers(1)).await;
    bench.pools.screenshot = 1;
    bench.wait_timeout = Duration::from_millis(50);
    bench.limits.max_infra_retries = 0;
    bench.limits.task_timeout = Duration::from_secs(2);
    let left = bench.run(tasks(2)).await;
    let endings: Vec<String> = left.trajectories.iter().map(ending).collect();
    assert!(endings.iter().any(|why| why.contains("no place in the Screenshot pool")), "{endings:?}");
}

#[tokio::test]
async fn episodes_after_completion_threshold_get_a_grace_period() {
    let mut bench = Bench::faulty(
        |_| Fault::None,
        |question| match (question.task(), question.step()) {
            (name, 2..) if name.ends_with(" 7") => ModelReply::Never,
            (_, 1) => ModelReply::click(1, 1),
            _ => ModelReply::answer("42"),
        },
    )
    .await;
    bench.limits.completion_threshold = 0.7;
    bench.limits.completion_grace = Duration::from_millis(300);
    bench.attempt_timeout = Duration::from_secs(60);
    let left = bench.run(tasks(8)).await;
    assert_eq!(left.collected.unwrap().unfinished, 0);
    let slow = &left.trajectories[7];
    assert_cut_short(slow, 1);
    assert_eq!((outcome(slow), ending(slow)), (Outcome::Cancelled, "the run ended first".into()));
    assert!(left.trajectories[..7].iter().all(|one| outcome(one) == Outcome::Success));
    assert!(bench.farm.active_leases().is_empty());
}

#[tokio::test]
async fn completion_threshold_cancels_tasks_that_never_started() {
    let mut bench = Bench::faulty(
        |_| Fault::None,
        |question| match question.task() {
            name if name.ends_with(" 1") => ModelReply::Never,
            _ => ModelReply::answer("42"),
        },
    )
    .await;
    bench.limits.episodes = 1;
    bench.limits.completion_threshold = 0.25;
    bench.limits.completion_grace = Duration::from_millis(200);
    bench.attempt_timeout = Duration::from_secs(60);
    let left = bench.run(tasks(4)).await;
    let outcomes: Vec<Outcome> = left.trajectories.iter().map(outcome).collect();
    assert_eq!(outcomes, [Outcome::Success, Outcome::Cancelled, Outcome::Cancelled, Outcome::Cancelled]);
}

#[tokio::test]
async fn watchdog_reports_what_episodes_wait_for() {
    let mut bench = Bench::faulty(|_| Fault::None, |_| ModelReply::Never).await;
    bench.limits.task_timeout = Duration::from_secs(3);
    bench.attempt_timeout = Duration::from_secs(60);
    let (say, mut said) = tokio::sync::mpsc::unbounded_channel();
    let state = std::sync::Arc::clone(&bench.state);
    let watchdog = tokio::spawn(rollout::run::watch(state, Duration::from_millis(400), move |words| {
        let _ = say.send(words.to_owned());
    }));
    let left = bench.run(tasks(3)).await;
    watchdog.abort();
    assert_eq!(left.trajectories.len(), 3);
    let words = said.recv().await.unwrap();
    assert!(words.contains("3 in stage policy (waiting for the policy)"), "{words}");
}

#[tokio::test]
async fn run_state_counts_steps_and_ends_idle() {
    let mut bench = Bench::faulty(|_| Fault::None, clicks_then_answers(3)).await;
    bench.state = std::sync::Arc::new(rollout::run::state::RunState::new(0..4));
    bench.run(tasks(4)).await;
    assert_eq!(bench.state.totals().steps, 12);
    assert_eq!(bench.state.stages(), std::collections::BTreeMap::from([(Stage::Finished, 4)]));
    assert!(bench.state.cells().iter().all(|cell| cell.step == 3));
}
