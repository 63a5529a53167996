//! Infrastructure that goes away: retried as a fresh episode, counted apart, never a failed task.

use std::time::Duration;

use proto::trajectory::Outcome;
use rollout::run::RunError;
use testkit::{
    sim_farm::{Call, Fault, SimFarmOptions},
    sim_model::{ModelReply, SimModel},
};

use crate::harness::{
    Bench, assert_cut_short, clicks_then_answers, ending, keys, outcome, task, tasks, until,
};

/// The second click of this lease finds no browser any more.
fn dies(call: &Call, lease: impl Fn(usize) -> bool) -> Fault {
    if call.runs("click_coords") && call.nth == 1 && lease(call.lease) {
        Fault::InstanceLost
    } else {
        Fault::None
    }
}

#[tokio::test]
async fn dead_instance_is_retried_as_new_episode() {
    let mut bench = Bench::faulty(|call| dies(call, |lease| lease == 0), clicks_then_answers(3)).await;
    let trajectory = bench.run_one(task(0)).await;
    assert_eq!(keys(&trajectory), ["click", "click", "answer"]);
    assert_eq!(outcome(&trajectory), Outcome::Success);
    assert_eq!(trajectory.metadata.extra["attempt"], 1);
    assert_eq!(bench.state.totals().retried, 1);
    let folders = std::fs::read_dir(bench.root().join("images")).unwrap().count();
    assert_eq!(folders, 1, "the lost attempt's pictures are thrown away");
    assert!(bench.farm.active_leases().is_empty());
}

#[tokio::test]
async fn dead_instance_ends_episode_after_last_retry() {
    let mut bench = Bench::faulty(|call| dies(call, |_| true), clicks_then_answers(3)).await;
    let trajectory = bench.run_one(task(0)).await;
    assert_cut_short(&trajectory, 2);
    assert_eq!(outcome(&trajectory), Outcome::InfraLost);
    assert!(ending(&trajectory).starts_with("browser lost: "), "{}", ending(&trajectory));
    assert_eq!(bench.farm.leases_granted(), 3, "one attempt and max_infra_retries more");
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
            let mut bench = Bench::new(farm, clicks_then_answers(2)).await;
            let trajectory = bench.run_one(task(0)).await;
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
    let mut bench = Bench::faulty(script, clicks_then_answers(1)).await;
    let trajectory = bench.run_one(task(0)).await;
    assert_eq!(outcome(&trajectory), Outcome::Success);
    assert_eq!(bench.farm.leases_granted(), 1, "the repeated request gets the same instance");
    assert!(bench.farm.active_leases().is_empty());
}

#[tokio::test]
async fn unreachable_policy_ends_episode_after_retries() {
    let mut bench = Bench::faulty(
        |_| Fault::None,
        |question| match question.step() {
            1 => ModelReply::click(1, 1),
            _ => ModelReply::Status(503, "no GPU".into()),
        },
    )
    .await;
    bench.limits.max_infra_retries = 1;
    let trajectory = bench.run_one(task(0)).await;
    assert_cut_short(&trajectory, 1);
    assert_eq!(outcome(&trajectory), Outcome::InfraLost);
    assert!(ending(&trajectory).starts_with("policy lost: "), "{}", ending(&trajectory));
    assert_eq!(
        bench.policy.count(),
        2 * (1 + 3),
        "two attempts, each with a first step and three tries at the second"
    );
}

#[tokio::test]
async fn temporary_policy_failure_is_retried() {
    let mut bench = Bench::faulty(
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
    bench.attempt_timeout = Duration::from_millis(300);
    let trajectory = bench.run_one(task(0)).await;
    assert_eq!((outcome(&trajectory), bench.policy.count()), (Outcome::Success, 5));
    assert_eq!(trajectory.metadata.extra["attempt"], 0);
}

#[tokio::test]
async fn restarted_policy_server_is_waited_for() {
    let mut bench = Bench::faulty(|_| Fault::None, clicks_then_answers(1)).await;
    let address = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap()
    };
    bench.policy_url = Some(format!("http://{address}"));
    bench.limits.max_infra_retries = 1;
    let state = std::sync::Arc::clone(&bench.state);
    let comes_back = tokio::spawn(async move {
        until("every episode was lost once", || state.totals().retried == 4).await;
        SimModel::start_at(address, Duration::ZERO, true, std::sync::Arc::new(clicks_then_answers(1))).await
    });
    let left = bench.run(tasks(4)).await;
    let policy = comes_back.await.unwrap();
    assert!(left.trajectories.iter().all(|one| outcome(one) == Outcome::Success));
    assert_eq!(policy.count(), 4);
}

#[tokio::test]
async fn invalid_policy_response_is_an_infrastructure_loss() {
    let mut bench = Bench::faulty(|_| Fault::None, |_| ModelReply::Garbage).await;
    bench.limits.max_infra_retries = 0;
    let trajectory = bench.run_one(task(0)).await;
    assert_cut_short(&trajectory, 0);
    assert_eq!(outcome(&trajectory), Outcome::InfraLost);
}

#[tokio::test]
async fn task_timeout_ends_episode_and_keeps_steps() {
    let mut bench = Bench::faulty(
        |_| Fault::None,
        |question| match question.step() {
            1 | 2 => ModelReply::click(1, 1),
            _ => ModelReply::Never,
        },
    )
    .await;
    bench.limits.task_timeout = Duration::from_millis(1500);
    bench.attempt_timeout = Duration::from_secs(30);
    let trajectory = bench.run_one(task(0)).await;
    assert_cut_short(&trajectory, 2);
    assert_eq!(
        (outcome(&trajectory), ending(&trajectory)),
        (Outcome::Cancelled, "the task took too long".into())
    );
    assert_eq!(bench.farm.leases_granted(), 1, "not retried");
    assert!(bench.farm.active_leases().is_empty(), "the browser is given back");
}

#[tokio::test]
async fn allocation_is_retried_while_farm_is_full() {
    let script = |call: &Call| if call.path == "/get" && call.total < 12 { Fault::Full } else { Fault::None };
    let mut bench = Bench::faulty(script, clicks_then_answers(1)).await;
    let trajectory = bench.run_one(task(0)).await;
    assert_eq!(outcome(&trajectory), Outcome::Success);
    assert_eq!(trajectory.metadata.extra["attempt"], 0, "a full farm is waited for, not retried");
}

#[tokio::test]
async fn allocation_waits_in_the_farm_queue() {
    let farm = SimFarmOptions { capacity: 2, ..SimFarmOptions::default() };
    let mut bench = Bench::new(farm, clicks_then_answers(2)).await;
    let left = bench.run(tasks(8)).await;
    assert!(left.trajectories.iter().all(|one| outcome(one) == Outcome::Success));
    assert_eq!((left.trajectories.len(), bench.farm.max_leased()), (8, 2));
    let asked = bench.farm.calls().iter().filter(|call| call.path == "/get").count();
    assert_eq!(asked, 8, "nobody had to ask twice");
}

#[tokio::test]
async fn allocation_ends_at_task_timeout() {
    let mut bench = Bench::faulty(
        |call| if call.path == "/get" { Fault::Full } else { Fault::None },
        clicks_then_answers(1),
    )
    .await;
    bench.limits.task_timeout = Duration::from_millis(300);
    let trajectory = bench.run_one(task(0)).await;
    assert_cut_short(&trajectory, 0);
    assert_eq!(outcome(&trajectory), Outcome::InfraLost);
    assert!(ending(&trajectory).starts_with("no browser to be had"), "{}", ending(&trajectory));
}

#[tokio::test]
async fn lost_episode_does_not_affect_others() {
    let script = |call: &Call| {
        if call.lease % 3 == 0 && call.returns_screenshot() { Fault::InstanceLost } else { Fault::None }
    };
    let mut bench = Bench::faulty(script, clicks_then_answers(2)).await;
    bench.limits.max_infra_retries = 0;
    let left = bench.run(tasks(9)).await;
    let lost = left.trajectories.iter().filter(|one| outcome(one) == Outcome::InfraLost).count();
    assert_eq!((left.trajectories.len(), lost), (9, 3));
    assert_eq!(left.collected.unwrap().finished, 9);
}

/// Nothing was learnt about any task, so nothing counts: the run says why and can be taken up again.
#[tokio::test]
async fn run_that_loses_everything_stops_with_reason() {
    let script = |call: &Call| if call.returns_screenshot() { Fault::InstanceLost } else { Fault::None };
    let mut bench = Bench::faulty(script, clicks_then_answers(2)).await;
    bench.limits.max_infra_retries = 0;
    let left = bench.run(tasks(9)).await;
    let Err(RunError::NothingWorks { count, why }) = left.collected else { panic!("{:?}", left.collected) };
    assert_eq!((count, left.trajectories.len()), (9, 0));
    assert!(why.starts_with("browser lost: "), "{why}");
}

#[tokio::test]
async fn losses_before_first_success_are_saved() {
    let script = |call: &Call| {
        if call.lease < 4 && call.returns_screenshot() { Fault::InstanceLost } else { Fault::None }
    };
    let mut bench = Bench::faulty(script, clicks_then_answers(2)).await;
    bench.limits.max_infra_retries = 0;
    bench.limits.episodes = 1;
    let left = bench.run(tasks(6)).await;
    let lost = left.trajectories.iter().filter(|one| outcome(one) == Outcome::InfraLost).count();
    assert_eq!((left.trajectories.len(), lost), (6, 4));
    let (count, why) = left.collected.unwrap().lost.unwrap();
    assert!(count == 4 && why.starts_with("browser lost: "), "{count} {why}");
}

/// The farm's own rules keep the page away: no result of the agent, and no attempt would do better.
#[tokio::test]
async fn refused_start_page_is_not_a_failed_task() {
    let script = |call: &Call| if call.runs("visit_page") { Fault::UrlRefused } else { Fault::None };
    let mut bench = Bench::faulty(script, clicks_then_answers(2)).await;
    let trajectory = bench.run_one(task(0)).await;
    assert_cut_short(&trajectory, 0);
    assert_eq!(outcome(&trajectory), Outcome::InfraLost);
    assert!(ending(&trajectory).starts_with("page refused: "), "{}", ending(&trajectory));
    assert_eq!((bench.farm.leases_granted(), bench.policy.count()), (1, 0), "one look is enough");
    let mut bench = Bench::faulty(script, clicks_then_answers(2)).await;
    let left = bench.run(tasks(4)).await;
    let Err(RunError::NothingWorks { why, .. }) = left.collected else { panic!("{:?}", left.collected) };
    assert!(why.starts_with("page refused: "), "{why}");
}
