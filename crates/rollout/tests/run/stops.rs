//! Runs that stop before their end: asked to, refused by the policy, or with nowhere to write.

use std::{
    collections::HashSet,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use proto::trajectory::Outcome;
use rollout::run::{Collected, RunError, leases::LeaseLog};
use testkit::{
    sim_farm::{Call, Fault, SimFarmOptions},
    sim_model::{ModelReply, ModelRequest},
};

use crate::harness::{Bench, clicks_then_answers, outcome, task, tasks, until};

#[tokio::test]
async fn soft_stop_finishes_running_episodes_only() {
    let farm = SimFarmOptions { latency: Duration::from_millis(20), ..SimFarmOptions::default() };
    let begun = Arc::new(Mutex::new(HashSet::new()));
    let (under_way, policy) = (Arc::clone(&begun), clicks_then_answers(4));
    let policy = move |question: &ModelRequest| {
        begun.lock().unwrap().insert(question.task().to_owned());
        policy(question)
    };
    let mut bench = Bench::new(farm, policy).await;
    bench.limits.episodes = 2;
    let soft = bench.stop.soft.clone();
    tokio::spawn(async move {
        until("both episodes are under way", || under_way.lock().unwrap().len() == 2).await;
        soft.cancel();
    });
    let left = bench.run(tasks(10)).await;
    let Collected { finished, unfinished, .. } = left.collected.unwrap();
    assert_eq!((finished, unfinished), (2, 8));
    assert!(left.trajectories.iter().all(|one| outcome(one) == Outcome::Success && one.steps.len() == 4));
    assert!(bench.farm.active_leases().is_empty());
}

/// An episode without a browser has not begun: waiting for one must not hold up the end.
#[tokio::test]
async fn soft_stop_does_not_wait_for_free_browsers() {
    let script = |call: &Call| if call.path == "/get" { Fault::Full } else { Fault::None };
    let mut bench = Bench::faulty(script, clicks_then_answers(1)).await;
    bench.limits.task_timeout = Duration::from_secs(3600);
    bench.limits.completion_grace = Duration::from_secs(3600);
    let (soft, state) = (bench.stop.soft.clone(), Arc::clone(&bench.state));
    tokio::spawn(async move {
        until("they wait", || state.stages().contains_key(&rollout::run::event::Stage::Allocate)).await;
        soft.cancel();
    });
    let run = tokio::time::timeout(Duration::from_secs(60), bench.run(tasks(4)));
    let left = run.await.expect("it stops without waiting");
    assert_eq!(left.collected.unwrap(), Collected { finished: 0, unfinished: 4, lost: None });
}

#[tokio::test]
async fn soft_stop_ends_after_grace_period() {
    let mut bench = Bench::faulty(|_| Fault::None, |_| ModelReply::Never).await;
    bench.attempt_timeout = Duration::from_secs(60);
    bench.limits.completion_grace = Duration::from_millis(200);
    let (soft, policy) = (bench.stop.soft.clone(), Arc::clone(&bench.state));
    tokio::spawn(async move {
        until("the policy is asked", || policy.stages().contains_key(&rollout::run::event::Stage::Policy))
            .await;
        soft.cancel();
    });
    let left = bench.run(tasks(1)).await;
    assert_eq!(left.collected.unwrap(), Collected { finished: 0, unfinished: 1, lost: None });
    assert!(bench.farm.active_leases().is_empty(), "the browser is given back all the same");
}

#[tokio::test]
async fn hard_stop_releases_browsers_and_keeps_journal() {
    let mut bench = Bench::faulty(
        |_| Fault::None,
        |question| match question.task() {
            name if name.ends_with(" 0") => ModelReply::answer("42"),
            _ if question.step() == 1 => ModelReply::click(1, 1),
            _ => ModelReply::Never,
        },
    )
    .await;
    bench.attempt_timeout = Duration::from_secs(60);
    let (hard, state) = (bench.stop.hard.clone(), Arc::clone(&bench.state));
    tokio::spawn(async move {
        until("one is done, four have made a step", || state.done() == 1 && state.totals().steps == 5).await;
        hard.cancel();
    });
    let left = bench.run(tasks(5)).await;
    assert_eq!(left.collected.unwrap(), Collected { finished: 1, unfinished: 4, lost: None });
    assert_eq!(left.trajectories.len(), 1, "what was cut off is collected anew by a resumed run");
    assert!(bench.farm.active_leases().is_empty());
    let scan = store::journal::scan(&bench.save_path().journal(bench.id())).unwrap();
    assert!(!scan.is_complete() && scan.file_length == scan.valid_length);
}

#[tokio::test]
async fn policy_refusal_stops_the_run_with_reason() {
    for (status, words) in [(401, "bad key"), (404, "no such model")] {
        let mut bench =
            Bench::faulty(|_| Fault::None, move |_| ModelReply::Status(status, words.into())).await;
        let left = bench.run(tasks(20)).await;
        let Err(RunError::PolicyRefuses(why)) = left.collected else { panic!("{:?}", left.collected) };
        assert!(why.contains(&status.to_string()) && why.contains(words), "{why}");
        assert!(bench.policy.count() <= 8, "nobody asks again: {}", bench.policy.count());
        assert!(left.trajectories.is_empty() && bench.farm.active_leases().is_empty());
    }
}

#[tokio::test]
async fn screenshot_write_error_stops_run_with_resumable_journal() {
    let mut bench = Bench::faulty(
        |_| Fault::None,
        |question| match question.task() {
            name if name.ends_with(" 0") => ModelReply::answer("42"),
            _ => ModelReply::Delayed(Duration::from_millis(200), "Click [1, 1]".into()),
        },
    )
    .await;
    bench.limits.episodes = 4;
    let (state, images) = (Arc::clone(&bench.state), bench.root().join("images"));
    tokio::spawn(async move {
        until("one is done", || state.done() == 1).await;
        replace_by_a_file(&images);
    });
    let left = bench.run(tasks(4)).await;
    let Err(RunError::Disk(why)) = left.collected else { panic!("{:?}", left.collected) };
    assert!(!why.is_empty());
    assert_eq!(left.trajectories.len(), 1, "what was durable before stays");
    let (_journal, recovered) = store::Journal::resume(&bench.save_path().journal(bench.id())).unwrap();
    assert_eq!(recovered.finished.into_iter().collect::<Vec<_>>(), [0]);
}

/// From now on no folder can be made here, and the ones there are gone.
fn replace_by_a_file(folder: &Path) {
    while std::fs::remove_dir_all(folder).is_err() {}
    std::fs::write(folder, "").unwrap();
}

#[tokio::test]
async fn only_leases_of_crashed_run_are_released() {
    let bench = Bench::new(SimFarmOptions::default(), clicks_then_answers(1)).await;
    let (ours, theirs) = (bench.farm.lease_to_other(), bench.farm.lease_to_other());
    let crashed = LeaseLog::open(bench.root()).unwrap();
    crashed
        .record_acquired(&client::farm::Lease { instance_id: ours.clone(), node: "http://node.sim".into() });
    drop(crashed);
    let log = LeaseLog::open(bench.root()).unwrap();
    assert_eq!(log.release_left_over(&bench.farm_client()).await.unwrap(), 1);
    assert_eq!(bench.farm.active_leases(), [theirs]);
    assert_eq!(log.release_left_over(&bench.farm_client()).await.unwrap(), 0);
}

#[tokio::test]
async fn unreleased_browser_is_recorded_for_next_run() {
    let mut bench = Bench::faulty(
        |call: &Call| if call.path == "/reset" { Fault::NodeUnreachable } else { Fault::None },
        clicks_then_answers(1),
    )
    .await;
    let trajectory = bench.run_one(task(0)).await;
    assert_eq!(outcome(&trajectory), Outcome::Success, "the episode is not to blame");
    let left = LeaseLog::open(bench.root()).unwrap().adopt_left_over().unwrap();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].instance_id, bench.farm.active_leases()[0]);
}
