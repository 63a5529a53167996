//! Runs that stop early: on request, because the policy refuses, or because the disk cannot be written.

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

use crate::harness::{Harness, clicks_then_answers, outcome, task, tasks, until};

#[tokio::test]
async fn soft_stop_finishes_running_episodes_only() {
    let farm = SimFarmOptions { latency: Duration::from_millis(20), ..SimFarmOptions::default() };
    let started = Arc::new(Mutex::new(HashSet::new()));
    let (started_tasks, policy) = (Arc::clone(&started), clicks_then_answers(4));
    let policy = move |question: &ModelRequest| {
        started.lock().unwrap().insert(question.task().to_owned());
        policy(question)
    };
    let mut harness = Harness::new(farm, policy).await;
    harness.limits.episodes = 2;
    let soft = harness.stop.soft.clone();
    tokio::spawn(async move {
        until("both episodes have started", || started_tasks.lock().unwrap().len() == 2).await;
        soft.cancel();
    });
    let result = harness.run(tasks(10)).await;
    let Collected { finished, unfinished, .. } = result.collected.unwrap();
    assert_eq!((finished, unfinished), (2, 8));
    assert!(
        result
            .trajectories
            .iter()
            .all(|trajectory| outcome(trajectory) == Outcome::Success && trajectory.steps.len() == 4)
    );
    assert!(harness.farm.active_leases().is_empty());
}

/// An episode without a browser has not started, so a soft stop must not wait for it.
#[tokio::test]
async fn soft_stop_does_not_wait_for_free_browsers() {
    let script = |call: &Call| if call.path == "/get" { Fault::Full } else { Fault::None };
    let mut harness = Harness::faulty(script, clicks_then_answers(1)).await;
    harness.limits.task_timeout = Duration::from_hours(1);
    harness.limits.completion_grace = Duration::from_hours(1);
    let (soft, state) = (harness.stop.soft.clone(), Arc::clone(&harness.state));
    tokio::spawn(async move {
        until("the episodes wait for browsers", || {
            state.stages().contains_key(&rollout::run::event::Stage::Allocate)
        })
        .await;
        soft.cancel();
    });
    let run = tokio::time::timeout(Duration::from_mins(1), harness.run(tasks(4)));
    let result = run.await.expect("the run stops without waiting");
    assert_eq!(result.collected.unwrap(), Collected { finished: 0, unfinished: 4, lost: None });
}

#[tokio::test]
async fn soft_stop_ends_after_grace_period() {
    let mut harness = Harness::faulty(|_| Fault::None, |_| ModelReply::Never).await;
    harness.attempt_timeout = Duration::from_mins(1);
    harness.limits.completion_grace = Duration::from_millis(200);
    let (soft, state) = (harness.stop.soft.clone(), Arc::clone(&harness.state));
    tokio::spawn(async move {
        until("the policy is asked", || state.stages().contains_key(&rollout::run::event::Stage::Policy))
            .await;
        soft.cancel();
    });
    let result = harness.run(tasks(1)).await;
    assert_eq!(result.collected.unwrap(), Collected { finished: 0, unfinished: 1, lost: None });
    assert!(harness.farm.active_leases().is_empty(), "the browser is released nevertheless");
}

#[tokio::test]
async fn hard_stop_releases_browsers_and_keeps_journal() {
    let mut harness = Harness::faulty(
        |_| Fault::None,
        |question| match question.task() {
            name if name.ends_with(" 0") => ModelReply::answer("42"),
            _ if question.step() == 1 => ModelReply::click(1, 1),
            _ => ModelReply::Never,
        },
    )
    .await;
    harness.attempt_timeout = Duration::from_mins(1);
    let (hard, state) = (harness.stop.hard.clone(), Arc::clone(&harness.state));
    tokio::spawn(async move {
        until("one episode is done and four have made a step", || {
            state.done() == 1 && state.totals().steps == 5
        })
        .await;
        hard.cancel();
    });
    let result = harness.run(tasks(5)).await;
    assert_eq!(result.collected.unwrap(), Collected { finished: 1, unfinished: 4, lost: None });
    assert_eq!(result.trajectories.len(), 1, "a resumed run repeats the interrupted episodes");
    assert!(harness.farm.active_leases().is_empty());
    let scan = store::journal::scan(&harness.save_path().journal(harness.id())).unwrap();
    assert!(!scan.is_complete() && scan.file_length == scan.valid_length);
}

#[tokio::test]
async fn policy_refusal_stops_the_run_with_reason() {
    for (status, body) in [(401, "bad key"), (404, "no such model")] {
        let mut harness =
            Harness::faulty(|_| Fault::None, move |_| ModelReply::Status(status, body.into())).await;
        let result = harness.run(tasks(20)).await;
        let Err(RunError::PolicyRefuses(reason)) = result.collected else { panic!("{:?}", result.collected) };
        assert!(reason.contains(&status.to_string()) && reason.contains(body), "{reason}");
        assert!(harness.policy.count() <= 8, "a refused request is not repeated: {}", harness.policy.count());
        assert!(result.trajectories.is_empty() && harness.farm.active_leases().is_empty());
    }
}

#[tokio::test]
async fn screenshot_write_error_stops_run_with_resumable_journal() {
    let mut harness = Harness::faulty(
        |_| Fault::None,
        |question| match question.task() {
            name if name.ends_with(" 0") => ModelReply::answer("42"),
            _ => ModelReply::Delayed(Duration::from_millis(200), "Click [1, 1]".into()),
        },
    )
    .await;
    harness.limits.episodes = 4;
    let (state, images) = (Arc::clone(&harness.state), harness.root().join("images"));
    tokio::spawn(async move {
        until("one episode is done", || state.done() == 1).await;
        replace_by_a_file(&images);
    });
    let result = harness.run(tasks(4)).await;
    let Err(RunError::Disk(reason)) = result.collected else { panic!("{:?}", result.collected) };
    assert!(!reason.is_empty());
    assert_eq!(result.trajectories.len(), 1, "the trajectory saved before remains");
    let (_journal, recovered) = store::Journal::resume(&harness.save_path().journal(harness.id())).unwrap();
    assert_eq!(recovered.finished.into_iter().collect::<Vec<_>>(), [0]);
}

/// Removes a folder and puts a file in its place, so that no folder can be created there.
fn replace_by_a_file(folder: &Path) {
    while std::fs::remove_dir_all(folder).is_err() {}
    std::fs::write(folder, "").unwrap();
}

#[tokio::test]
async fn only_leases_of_crashed_run_are_released() {
    let harness = Harness::new(SimFarmOptions::default(), clicks_then_answers(1)).await;
    let (ours, theirs) = (harness.farm.lease_to_other(), harness.farm.lease_to_other());
    let crashed = LeaseLog::open(harness.root()).unwrap();
    crashed
        .record_acquired(&client::farm::Lease { instance_id: ours.clone(), node: "http://node.sim".into() });
    drop(crashed);
    let log = LeaseLog::open(harness.root()).unwrap();
    assert_eq!(log.release_left_over(&harness.farm_client()).await.unwrap(), 1);
    assert_eq!(harness.farm.active_leases(), [theirs]);
    assert_eq!(log.release_left_over(&harness.farm_client()).await.unwrap(), 0);
}

#[tokio::test]
async fn unreleased_browser_is_recorded_for_next_run() {
    let mut harness = Harness::faulty(
        |call: &Call| if call.path == "/reset" { Fault::NodeUnreachable } else { Fault::None },
        clicks_then_answers(1),
    )
    .await;
    let trajectory = harness.run_one(task(0)).await;
    assert_eq!(outcome(&trajectory), Outcome::Success, "the failed release does not affect the outcome");
    let result = LeaseLog::open(harness.root()).unwrap().adopt_left_over().unwrap();
    assert_eq!(result.len(), 1);
    assert_eq!(result[0].instance_id, harness.farm.active_leases()[0]);
}
