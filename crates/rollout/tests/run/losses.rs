//! Failures of the infrastructure: retried as a new episode, counted separately, never a failed task.

use std::time::Duration;

use proto::trajectory::Outcome;
use rollout::run::RunError;
use testkit::{
    sim_farm::{Call, Fault, SimFarmOptions},
    sim_model::{ModelReply, SimModel},
};

use crate::harness::{
    Harness, action_keys, assert_ended_early, clicks_then_answers, ending, outcome, task, tasks, until,
};

/// Loses the browser at the second click of the selected leases.
fn dies(call: &Call, lease: impl Fn(usize) -> bool) -> Fault {
    if call.runs("click_coords") && call.nth == 1 && lease(call.lease) {
        Fault::InstanceLost
    } else {
        Fault::None
    }
}

#[tokio::test]
async fn dead_instance_is_retried_as_new_episode() {
    let mut harness = Harness::faulty(|call| dies(call, |lease| lease == 0), clicks_then_answers(3)).await;
    let trajectory = harness.run_one(task(0)).await;
    assert_eq!(action_keys(&trajectory), ["click", "click", "answer"]);
    assert_eq!(outcome(&trajectory), Outcome::Success);
    assert_eq!(trajectory.metadata.extra["attempt"], 1);
    assert_eq!(harness.state.totals().retried, 1);
    let folders = std::fs::read_dir(harness.root().join("images")).unwrap().count();
    assert_eq!(folders, 1, "the screenshots of the lost attempt are removed");
    assert!(harness.farm.active_leases().is_empty());
}

#[tokio::test]
async fn dead_instance_ends_episode_after_last_retry() {
    let mut harness = Harness::faulty(|call| dies(call, |_| true), clicks_then_answers(3)).await;
    let trajectory = harness.run_one(task(0)).await;
    assert_ended_early(&trajectory, 2);
    assert_eq!(outcome(&trajectory), Outcome::InfraLost);
    assert!(ending(&trajectory).starts_with("browser lost: "), "{}", ending(&trajectory));
    assert_eq!(harness.farm.leases_granted(), 3, "one attempt and max_infra_retries more");
    let summary = store::Summary::of(&trajectory);
    let metrics = store::metrics::Metrics::of([&summary]);
    assert_eq!((metrics.infra_lost, metrics.scored), (1, 0), "never a failed task");
}

#[tokio::test]
async fn every_farm_loss_is_retried() {
    for combined_calls in [true, false] {
        for fault in [Fault::InstanceLost, Fault::NodeUnreachable] {
            let lost = fault.clone();
            let script = move |call: &Call| {
                if call.lease == 0 && call.returns_screenshot() { lost.clone() } else { Fault::None }
            };
            let farm = SimFarmOptions { combined_calls, ..SimFarmOptions::default() }.with_script(script);
            let mut harness = Harness::new(farm, clicks_then_answers(2)).await;
            let trajectory = harness.run_one(task(0)).await;
            assert_eq!(outcome(&trajectory), Outcome::Success, "{fault:?}");
            assert_eq!(trajectory.metadata.extra["attempt"], 1, "{fault:?}");
        }
    }
}

#[tokio::test]
async fn lost_get_response_does_not_lose_the_lease() {
    let script = |call: &Call| {
        if call.path == "/get" && call.total == 0 { Fault::TruncatedResponse } else { Fault::None }
    };
    let mut harness = Harness::faulty(script, clicks_then_answers(1)).await;
    let trajectory = harness.run_one(task(0)).await;
    assert_eq!(outcome(&trajectory), Outcome::Success);
    assert_eq!(harness.farm.leases_granted(), 1, "the repeated request gets the same instance");
    assert!(harness.farm.active_leases().is_empty());
}

#[tokio::test]
async fn unreachable_policy_ends_episode_after_retries() {
    let mut harness = Harness::faulty(
        |_| Fault::None,
        |question| match question.step() {
            1 => ModelReply::click(1, 1),
            _ => ModelReply::Status(503, "no GPU".into()),
        },
    )
    .await;
    harness.limits.max_infra_retries = 1;
    let trajectory = harness.run_one(task(0)).await;
    assert_ended_early(&trajectory, 1);
    assert_eq!(outcome(&trajectory), Outcome::InfraLost);
    assert!(ending(&trajectory).starts_with("policy lost: "), "{}", ending(&trajectory));
    assert_eq!(
        harness.policy.count(),
        2 * (1 + 3),
        "two attempts, each with one request for the first step and three for the second"
    );
}

#[tokio::test]
async fn temporary_policy_failure_is_retried() {
    let mut harness = Harness::faulty(
        |_| Fault::None,
        |question| match question.number {
            0 => ModelReply::Status(500, "oops".into()),
            1 => ModelReply::RateLimited(Some(0.01)),
            2 => ModelReply::RateLimited(None),
            3 => ModelReply::Never,
            _ => ModelReply::answer("42"),
        },
    )
    .await;
    harness.attempt_timeout = Duration::from_millis(300);
    let trajectory = harness.run_one(task(0)).await;
    assert_eq!((outcome(&trajectory), harness.policy.count()), (Outcome::Success, 5));
    assert_eq!(trajectory.metadata.extra["attempt"], 0);
}

#[tokio::test]
async fn restarted_policy_server_is_waited_for() {
    let mut harness = Harness::faulty(|_| Fault::None, clicks_then_answers(1)).await;
    let address = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap()
    };
    harness.policy_url = Some(format!("http://{address}"));
    harness.limits.max_infra_retries = 1;
    let state = std::sync::Arc::clone(&harness.state);
    let comes_back = tokio::spawn(async move {
        until("every episode was lost once", || state.totals().retried == 4).await;
        SimModel::start_at(address, Duration::ZERO, true, std::sync::Arc::new(clicks_then_answers(1))).await
    });
    let result = harness.run(tasks(4)).await;
    let policy = comes_back.await.unwrap();
    assert!(result.trajectories.iter().all(|trajectory| outcome(trajectory) == Outcome::Success));
    assert_eq!(policy.count(), 4);
}

#[tokio::test]
async fn invalid_policy_response_is_an_infrastructure_loss() {
    let mut harness = Harness::faulty(|_| Fault::None, |_| ModelReply::Garbage).await;
    harness.limits.max_infra_retries = 0;
    let trajectory = harness.run_one(task(0)).await;
    assert_ended_early(&trajectory, 0);
    assert_eq!(outcome(&trajectory), Outcome::InfraLost);
}

#[tokio::test]
async fn task_timeout_ends_episode_and_keeps_steps() {
    let mut harness = Harness::faulty(
        |_| Fault::None,
        |question| match question.step() {
            1 | 2 => ModelReply::click(1, 1),
            _ => ModelReply::Never,
        },
    )
    .await;
    harness.limits.task_timeout = Duration::from_millis(1500);
    harness.attempt_timeout = Duration::from_secs(30);
    let trajectory = harness.run_one(task(0)).await;
    assert_ended_early(&trajectory, 2);
    assert_eq!(
        (outcome(&trajectory), ending(&trajectory)),
        (Outcome::Cancelled, "the task took too long".into())
    );
    assert_eq!(harness.farm.leases_granted(), 1, "not retried");
    assert!(harness.farm.active_leases().is_empty(), "the browser is released");
}

/// The journal of a running iteration and its finished file contain the same.
#[tokio::test]
async fn finished_file_equals_journal() {
    let mut harness = Harness::faulty(
        |call| if call.lease == 0 && call.runs("click_coords") { Fault::InstanceLost } else { Fault::None },
        |question| match question.step() {
            1 => ModelReply::Reply(String::new()),
            2 | 3 => ModelReply::click(1, 1),
            _ if question.text.contains("find thing 3") => ModelReply::Never,
            _ => ModelReply::answer("42"),
        },
    )
    .await;
    harness.limits.max_infra_retries = 0;
    harness.limits.completion_threshold = 0.7;
    harness.limits.completion_grace = Duration::from_millis(300);
    harness.run(tasks(4)).await.collected.unwrap();
    let journal = harness.saved();
    let ended: Vec<_> = journal.iter().map(outcome).collect();
    assert!(ended.contains(&Outcome::InfraLost) && ended.contains(&Outcome::Cancelled), "{ended:?}");
    let path = store::finish_iteration(&harness.save_path(), harness.id()).unwrap().path;
    let file = store::IterationFile::open(&path).unwrap();
    for (position, trajectory) in journal.iter().enumerate() {
        assert_eq!(&file.read(position).unwrap(), trajectory);
    }
}

#[tokio::test]
async fn task_timeout_covers_all_attempts() {
    let mut harness = Harness::faulty(
        |call| if call.runs("click_coords") { Fault::InstanceLost } else { Fault::None },
        clicks_then_answers(2),
    )
    .await;
    harness.limits.task_timeout = Duration::from_secs(1);
    harness.limits.max_infra_retries = u32::MAX;
    let ended = tokio::time::timeout(Duration::from_secs(60), harness.run_one(task(0)));
    let trajectory = ended.await.expect("the timeout ends the task, not only its attempts");
    assert!(
        matches!(outcome(&trajectory), Outcome::Cancelled | Outcome::InfraLost),
        "{}",
        ending(&trajectory)
    );
    assert!(harness.farm.leases_granted() > 1);
}

#[tokio::test]
async fn allocation_is_retried_while_farm_is_full() {
    let script = |call: &Call| if call.path == "/get" && call.total < 12 { Fault::Full } else { Fault::None };
    let mut harness = Harness::faulty(script, clicks_then_answers(1)).await;
    let trajectory = harness.run_one(task(0)).await;
    assert_eq!(outcome(&trajectory), Outcome::Success);
    assert_eq!(
        trajectory.metadata.extra["attempt"], 0,
        "waiting for a full farm is not a retry of the episode"
    );
}

#[tokio::test]
async fn allocation_waits_in_the_farm_queue() {
    let farm = SimFarmOptions { capacity: 2, ..SimFarmOptions::default() };
    let mut harness = Harness::new(farm, clicks_then_answers(2)).await;
    let result = harness.run(tasks(8)).await;
    assert!(result.trajectories.iter().all(|trajectory| outcome(trajectory) == Outcome::Success));
    assert_eq!((result.trajectories.len(), harness.farm.max_leased()), (8, 2));
    let asked = harness.farm.calls().iter().filter(|call| call.path == "/get").count();
    assert_eq!(asked, 8, "every request succeeded at the first attempt");
}

#[tokio::test]
async fn allocation_ends_at_task_timeout() {
    let mut harness = Harness::faulty(
        |call| if call.path == "/get" { Fault::Full } else { Fault::None },
        clicks_then_answers(1),
    )
    .await;
    harness.limits.task_timeout = Duration::from_millis(300);
    let trajectory = harness.run_one(task(0)).await;
    assert_ended_early(&trajectory, 0);
    assert_eq!(outcome(&trajectory), Outcome::InfraLost);
    assert!(ending(&trajectory).starts_with("no browser available"), "{}", ending(&trajectory));
}

#[tokio::test]
async fn lost_episode_does_not_affect_others() {
    let script = |call: &Call| {
        if call.lease.is_multiple_of(3) && call.returns_screenshot() {
            Fault::InstanceLost
        } else {
            Fault::None
        }
    };
    let mut harness = Harness::faulty(script, clicks_then_answers(2)).await;
    harness.limits.max_infra_retries = 0;
    let result = harness.run(tasks(9)).await;
    let lost =
        result.trajectories.iter().filter(|trajectory| outcome(trajectory) == Outcome::InfraLost).count();
    assert_eq!((result.trajectories.len(), lost), (9, 3));
    assert_eq!(result.collected.unwrap().finished, 9);
}

/// Such a run gives no information about any task: it saves nothing, reports the reason and can be resumed.
#[tokio::test]
async fn run_that_loses_everything_stops_with_reason() {
    let script = |call: &Call| if call.returns_screenshot() { Fault::InstanceLost } else { Fault::None };
    let mut harness = Harness::faulty(script, clicks_then_answers(2)).await;
    harness.limits.max_infra_retries = 0;
    let result = harness.run(tasks(9)).await;
    let Err(RunError::AllEpisodesLost { count, reason }) = result.collected else {
        panic!("{:?}", result.collected)
    };
    assert_eq!((count, result.trajectories.len()), (9, 0));
    assert!(reason.starts_with("browser lost: "), "{reason}");
}

#[tokio::test]
async fn losses_are_saved_once_an_episode_succeeds() {
    let script = |call: &Call| {
        if call.lease < 4 && call.returns_screenshot() { Fault::InstanceLost } else { Fault::None }
    };
    let mut harness = Harness::faulty(script, clicks_then_answers(2)).await;
    harness.limits.max_infra_retries = 0;
    harness.limits.episodes = 1;
    let result = harness.run(tasks(6)).await;
    let lost =
        result.trajectories.iter().filter(|trajectory| outcome(trajectory) == Outcome::InfraLost).count();
    assert_eq!((result.trajectories.len(), lost), (6, 4));
    let (count, reason) = result.collected.unwrap().lost.unwrap();
    assert!(count == 4 && reason.starts_with("browser lost: "), "{count} {reason}");
}

/// The farm's network rules refuse the page: this says nothing about the agent, and a retry cannot help.
#[tokio::test]
async fn refused_start_page_is_not_a_failed_task() {
    let script = |call: &Call| if call.runs("visit_page") { Fault::UrlRefused } else { Fault::None };
    let mut harness = Harness::faulty(script, clicks_then_answers(2)).await;
    let trajectory = harness.run_one(task(0)).await;
    assert_ended_early(&trajectory, 0);
    assert_eq!(outcome(&trajectory), Outcome::InfraLost);
    assert!(ending(&trajectory).starts_with("page refused: "), "{}", ending(&trajectory));
    assert_eq!((harness.farm.leases_granted(), harness.policy.count()), (1, 0), "not retried");
    let mut harness = Harness::faulty(script, clicks_then_answers(2)).await;
    let result = harness.run(tasks(4)).await;
    let Err(RunError::AllEpisodesLost { reason, .. }) = result.collected else {
        panic!("{:?}", result.collected)
    };
    assert!(reason.starts_with("page refused: "), "{reason}");
}
