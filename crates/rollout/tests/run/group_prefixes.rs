//! Groups whose attempts share their first steps: the first attempt publishes them, the others carry them out again.

use std::{path::Path, sync::Arc, time::Duration};

use proto::trajectory::{Outcome, Step, Task, Trajectory};
use rollout::{
    config::NetworkSource,
    run::{Collected, Stop},
};
use serde_json::Value;
use testkit::{
    sim_farm::{Call, Fault, SimFarmOptions},
    sim_model::{ModelReply, ModelRequest},
};

use crate::harness::{Harness, RunResult, ending, outcome, task, until};

const GROUP_SIZE: usize = 4;
const SHARED_STEPS: usize = 2;
/// The length of an episode that nothing interrupts.
const STEPS: usize = 4;

/// Returns attempts of one group.
fn attempts(indices: impl IntoIterator<Item = i64>) -> Vec<Task> {
    indices.into_iter().map(|trajectory_index| Task { trajectory_index, ..task(0) }).collect()
}

/// Clicks at another place with every call, so that only steps that were taken over are equal.
fn clicks_elsewhere(request: &ModelRequest) -> ModelReply {
    if request.step() >= STEPS {
        return ModelReply::answer("42");
    }
    ModelReply::click(100 + request.number as u32, 500)
}

async fn groups(
    farm: SimFarmOptions,
    policy: impl Fn(&ModelRequest) -> ModelReply + Send + Sync + 'static,
) -> Harness {
    let mut harness = Harness::new(farm, policy).await;
    harness.config.env_config.host_ip = Some("farm.test".into());
    harness.config.env_config.network = NetworkSource::Replay;
    harness.config.env_config.archive = Some("shop".into());
    harness.groups = Some((GROUP_SIZE, SHARED_STEPS));
    harness
}

async fn faulty(script: impl Fn(&Call) -> Fault + Send + Sync + 'static) -> Harness {
    let mut harness = groups(SimFarmOptions::default().with_script(script), clicks_elsewhere).await;
    // Leases are then acquired in the order of the attempts.
    harness.limits.episodes = 1;
    harness
}

/// Runs tasks; a run in which attempts wait for each other fails.
async fn run(harness: &mut Harness, tasks: Vec<Task>) -> RunResult {
    tokio::time::timeout(Duration::from_mins(1), harness.run(tasks)).await.expect("the run ends")
}

fn actions(trajectory: &Trajectory) -> Vec<Value> {
    trajectory.steps.iter().map(|step| serde_json::to_value(&step.action).unwrap()).collect()
}

fn forks(trajectories: &[Trajectory]) -> Vec<Option<u64>> {
    trajectories.iter().map(|trajectory| trajectory.metadata.forked_at_step).collect()
}

/// Returns the session names of all leases in the order of acquisition.
fn sessions(harness: &Harness) -> Vec<String> {
    let options = harness.farm.session_options();
    options.iter().map(|options| options["network"]["session"].as_str().unwrap().to_owned()).collect()
}

fn assert_same_prefix(trajectories: &[Trajectory]) {
    for trajectory in trajectories {
        assert_eq!(trajectory.steps.len(), STEPS);
        assert_eq!(actions(trajectory)[..SHARED_STEPS], actions(&trajectories[0])[..SHARED_STEPS]);
    }
}

#[tokio::test]
async fn attempts_continue_after_the_shared_steps() {
    let mut harness = groups(SimFarmOptions::default(), clicks_elsewhere).await;
    let result = run(&mut harness, attempts(0..4)).await;
    let saved = &result.trajectories;
    assert!(saved.len() == 4 && saved.iter().all(|one| outcome(one) == Outcome::Success));
    assert_same_prefix(saved);
    assert_eq!(forks(saved), [None, Some(2), Some(2), Some(2)]);
    assert_ne!(actions(&saved[1])[2], actions(&saved[2])[2], "later steps are their own");
    assert_eq!(harness.policy.count(), STEPS + 3 * (STEPS - SHARED_STEPS));
    let options = harness.farm.session_options();
    assert!(options.iter().all(|one| one["network"] == options[0]["network"]), "{options:?}");
    assert_eq!(sessions(&harness), ["t0#0"; 4]);
}

#[tokio::test]
async fn shared_steps_are_saved_like_own_ones() {
    // Prompts with page text are kept, others are built again.
    for page_text_lines in [0, 5] {
        let mut harness = groups(SimFarmOptions::default(), clicks_elsewhere).await;
        harness.page_text_lines = page_text_lines;
        let saved = run(&mut harness, attempts(0..4)).await.trajectories;
        let requests = harness.policy.requests();
        let texts: Vec<&str> = requests
            .iter()
            .filter(|request| request.step() == SHARED_STEPS + 1)
            .map(|request| request.text.as_str())
            .collect();
        assert_eq!(texts, [texts[0]; GROUP_SIZE], "the history is the same");
        for trajectory in &saved {
            assert_own_screenshots(trajectory);
            for (step, first) in trajectory.steps.iter().zip(&saved[0].steps).take(SHARED_STEPS) {
                assert_eq!(step.response.raw_response, first.response.raw_response);
                assert_eq!(step.response.answering_tokens, first.response.answering_tokens);
            }
        }
    }
}

/// Asserts that the shared steps and their prompts refer to existing screenshots in one folder.
fn assert_own_screenshots(trajectory: &Trajectory) {
    let folder = |step: &Step| Path::new(&step.observation.image_path).parent().unwrap().to_owned();
    let own = folder(&trajectory.steps[0]);
    for step in &trajectory.steps[..SHARED_STEPS] {
        assert_eq!(folder(step), own);
        assert!(Path::new(&step.observation.image_path).exists());
        let prompt = &step.response.raw_prompt;
        let name = own.file_name().unwrap().to_str().unwrap();
        assert_eq!(prompt.matches("/task_").count(), prompt.matches(name).count(), "{prompt}");
        assert!(prompt.contains(name));
    }
}

#[tokio::test]
async fn others_hold_no_browser_while_they_wait() {
    for capacity in [1, 4] {
        let farm = SimFarmOptions { capacity, ..SimFarmOptions::default() };
        let mut harness = groups(farm, clicks_elsewhere).await;
        let result = run(&mut harness, attempts(0..8)).await;
        assert_eq!(forks(&result.trajectories).iter().flatten().count(), 6);
        assert_eq!(harness.policy.count(), 2 * (STEPS + 3 * (STEPS - SHARED_STEPS)));
        let calls = harness.farm.calls();
        let positions = |path: &str| {
            calls
                .iter()
                .enumerate()
                .filter(|(_, call)| call.path == path)
                .map(|(at, _)| at)
                .collect::<Vec<_>>()
        };
        let (gets, steps) = (positions("/get"), positions("/step"));
        assert!(gets[2] > steps[SHARED_STEPS - 1], "two groups: two leases before any group has its steps");
    }
}

#[tokio::test]
async fn worker_prefers_another_group_to_waiting() {
    let policy = |request: &ModelRequest| {
        if request.task().ends_with(" 0") { ModelReply::Never } else { clicks_elsewhere(request) }
    };
    let mut harness = groups(SimFarmOptions::default(), policy).await;
    harness.limits.episodes = 2;
    harness.attempt_timeout = Duration::from_mins(1);
    let (hard, state) = (harness.stop.hard.clone(), Arc::clone(&harness.state));
    tokio::spawn(async move {
        until("the second group is done", || state.done() == 4).await;
        hard.cancel();
    });
    let second = (4..8).map(|trajectory_index| Task { trajectory_index, ..task(1) });
    let result = run(&mut harness, attempts(0..4).into_iter().chain(second).collect()).await;
    assert_eq!(result.collected.unwrap(), Collected { finished: 4, unfinished: 4, lost: None });
    assert_eq!(forks(&result.trajectories), [None, Some(2), Some(2), Some(2)]);
}

#[tokio::test]
async fn different_page_is_a_loss_that_names_the_step() {
    let script = |call: &Call| {
        if call.lease == 1 && call.path == "/step" && call.nth == 1 { Fault::NoEffect } else { Fault::None }
    };
    let mut harness = faulty(script).await;
    harness.limits.max_infra_retries = 0;
    let saved = run(&mut harness, attempts(0..4)).await.trajectories;
    let outcomes: Vec<Outcome> = saved.iter().map(outcome).collect();
    assert_eq!(outcomes, [Outcome::Success, Outcome::InfraLost, Outcome::Success, Outcome::Success]);
    assert_eq!(
        ending(&saved[1]),
        "not as in the first attempt of the group: step 2: title: expected \"Page 2 of http://shop.test/\", found \
         \"Page 1 of http://shop.test/\""
    );
    assert_eq!(forks(&saved), [None, None, Some(2), Some(2)]);
    assert_eq!(harness.policy.count(), STEPS + 2 * (STEPS - SHARED_STEPS), "the policy is not asked for it");
}

#[tokio::test]
async fn blank_page_before_the_own_steps_is_tried_again() {
    let script = |call: &Call| {
        if call.lease == 1 && call.path == "/observe" { Fault::BlankScreenshot } else { Fault::None }
    };
    let mut harness = faulty(script).await;
    harness.operation_timeout = Duration::from_millis(200);
    let saved = run(&mut harness, attempts(0..2)).await.trajectories;
    assert_eq!(outcome(&saved[1]), Outcome::Success);
    assert_eq!((harness.farm.leases_granted(), &saved[1].metadata.extra["attempt"]), (3, &1.into()));
    assert_same_prefix(&saved);
}

#[tokio::test]
async fn group_starts_at_the_beginning_if_its_first_attempt_ends_early() {
    for answer_step in [1, SHARED_STEPS] {
        let policy = move |request: &ModelRequest| match request.step() {
            step if request.number < answer_step && step == answer_step => ModelReply::answer("42"),
            _ => clicks_elsewhere(request),
        };
        let mut harness = groups(SimFarmOptions::default(), policy).await;
        let saved = run(&mut harness, attempts(0..4)).await.trajectories;
        let lengths: Vec<usize> = saved.iter().map(|one| one.steps.len()).collect();
        assert_eq!(lengths, [answer_step, STEPS, STEPS, STEPS]);
        assert_eq!(forks(&saved), [None; 4]);
        let mut sessions = sessions(&harness);
        sessions.sort();
        assert_eq!(sessions, ["t0#0", "t0#1", "t0#2", "t0#3"]);
    }
}

#[tokio::test]
async fn group_starts_at_the_beginning_if_its_first_attempt_is_lost() {
    let script = |call: &Call| if call.lease == 0 { Fault::InstanceLost } else { Fault::None };
    let mut harness = groups(SimFarmOptions::default().with_script(script), clicks_elsewhere).await;
    harness.limits.max_infra_retries = 0;
    let saved = run(&mut harness, attempts(0..4)).await.trajectories;
    let outcomes: Vec<Outcome> = saved.iter().map(outcome).collect();
    assert_eq!(outcomes, [Outcome::InfraLost, Outcome::Success, Outcome::Success, Outcome::Success]);
    assert_eq!(forks(&saved), [None; 4]);
}

#[tokio::test]
async fn lost_first_attempt_repeats_the_steps_that_it_published() {
    let script = |call: &Call| {
        if call.lease == 0 && call.path == "/step" && call.nth == 2 {
            Fault::InstanceLost
        } else {
            Fault::None
        }
    };
    let mut harness = faulty(script).await;
    let saved = run(&mut harness, attempts(0..4)).await.trajectories;
    assert!(saved.iter().all(|one| outcome(one) == Outcome::Success));
    assert_same_prefix(&saved);
    assert_eq!(forks(&saved), [None, Some(2), Some(2), Some(2)]);
    assert_eq!(harness.policy.count(), 3 + 4 * (STEPS - SHARED_STEPS));
}

#[tokio::test]
async fn stopped_run_does_not_wait_for_shared_steps() {
    for (is_hard, finished) in [(false, 1), (true, 0)] {
        let stop = Stop::default();
        let token = if is_hard { stop.hard.clone() } else { stop.soft.clone() };
        let policy = move |request: &ModelRequest| {
            token.cancel();
            clicks_elsewhere(request)
        };
        let mut harness = groups(SimFarmOptions::default(), policy).await;
        harness.stop = stop;
        let result = run(&mut harness, attempts(0..4)).await;
        assert_eq!(result.collected.unwrap(), Collected { finished, unfinished: 4 - finished, lost: None });
        assert!(harness.farm.leases_granted() == 1 && harness.farm.active_leases().is_empty());
    }
}

#[tokio::test]
async fn steps_count_towards_the_limit() {
    let mut harness = groups(SimFarmOptions::default(), |_| ModelReply::click(500, 500)).await;
    let tasks = attempts(0..2).into_iter().map(|task| Task { max_steps: 3, ..task }).collect();
    let saved = run(&mut harness, tasks).await.trajectories;
    let lengths: Vec<usize> = saved.iter().map(|one| one.steps.len()).collect();
    assert_eq!((lengths, forks(&saved)), (vec![3, 3], vec![None, Some(2)]));
}

#[tokio::test]
async fn resumed_run_takes_the_steps_from_the_journal() {
    let mut harness = groups(SimFarmOptions::default(), clicks_elsewhere).await;
    run(&mut harness, attempts([0])).await.collected.unwrap();
    let saved = harness.resume(attempts(1..4)).await.trajectories;
    assert_same_prefix(&saved);
    assert_eq!(forks(&saved), [None, Some(2), Some(2), Some(2)]);
    assert_eq!(sessions(&harness), ["t0#0"; 4]);
}

#[tokio::test]
async fn resumed_first_attempt_repeats_the_steps_of_its_group() {
    let mut harness = groups(SimFarmOptions::default(), clicks_elsewhere).await;
    let saved = run(&mut harness, attempts(0..2)).await.trajectories;
    std::fs::remove_file(harness.save_path().journal(harness.id())).unwrap();
    let journal = harness.journal(4);
    journal.append_finished(&saved[1]).await.unwrap();
    journal.close().await.unwrap();
    let resumed = harness.resume(attempts([0, 2, 3])).await.trajectories;
    assert_same_prefix(&resumed);
    assert_eq!(actions(&resumed[0])[..SHARED_STEPS], actions(&saved[0])[..SHARED_STEPS]);
    assert_eq!(forks(&resumed), [None, Some(2), Some(2), Some(2)]);
}
