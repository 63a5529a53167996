//! `judge=program` in a run on a simulated farm: it judges before the browser is released, and a stop ends its programs.

use std::{path::Path, sync::Arc};

use proto::trajectory::{Evaluation, Outcome};
use rollout::{
    config::ProgramConfig,
    judge::{Judge, ProgramJudge},
    run::{Collected, event::Stage},
};
use serde_json::json;
use testkit::sim_farm::SimFarmOptions;

use crate::harness::{Harness, clicks_then_answers, outcome, task, until};

fn judge(script: &str) -> Judge {
    let command = Some(["sh", "-c", script].map(str::to_owned).to_vec());
    Judge::Program(ProgramJudge::new(&ProgramConfig { command, timeout: 60.0, allow_task_commands: false }))
}

#[tokio::test]
async fn browser_is_released_after_the_judgment() {
    let mut harness = Harness::new(SimFarmOptions::default(), clicks_then_answers(2)).await;
    let leased = harness.farm.lease_counter();
    let folder = harness.root().display().to_string();
    harness.judge =
        judge(&format!("cat >{folder}/given.json; until [ -e {folder}/go ]; do sleep 0.01; done; echo 1"));
    let given = harness.root().join("given.json");
    tokio::spawn(async move {
        until("the program runs", || std::fs::metadata(&given).is_ok_and(|file| file.len() > 0)).await;
        std::fs::write(given.with_file_name("leased"), leased().to_string()).unwrap();
        std::fs::write(given.with_file_name("go"), "").unwrap();
    });
    let trajectory = harness.run_one(task(0)).await;
    assert_eq!(outcome(&trajectory), Outcome::Success);
    assert_eq!(std::fs::read_to_string(harness.root().join("leased")).unwrap(), "1");
    assert!(harness.farm.active_leases().is_empty());
}

#[tokio::test]
async fn hard_stop_kills_the_program_and_leaves_the_task() {
    let mut harness = Harness::new(SimFarmOptions::default(), clicks_then_answers(2)).await;
    let started = harness.root().join("started");
    harness.judge = judge(&format!("echo $$ >{0}.new; mv {0}.new {0}; exec sleep 600", started.display()));
    let (hard, state) = (harness.stop.hard.clone(), Arc::clone(&harness.state));
    let waiting = started.clone();
    tokio::spawn(async move {
        until("the program runs", || waiting.exists()).await;
        assert!(state.stages().contains_key(&Stage::Reward));
        hard.cancel();
    });
    let result = harness.run(vec![task(0)]).await;
    assert_eq!(result.collected.unwrap(), Collected { finished: 0, unfinished: 1, lost: None });
    assert!(result.trajectories.is_empty());
    let process = std::fs::read_to_string(started).unwrap();
    let process = Path::new("/proc").join(process.trim());
    until("the program has ended", || !is_running(&process)).await;
    assert!(harness.farm.active_leases().is_empty());
}

/// A killed process may stay as a zombie until its parent reads its status.
fn is_running(process: &Path) -> bool {
    let status = std::fs::read_to_string(process.join("stat")).unwrap_or_default();
    status.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

#[tokio::test]
async fn setup_without_cdp_endpoint_is_infra_lost() {
    let mut harness = Harness::new(SimFarmOptions::default(), clicks_then_answers(2)).await;
    harness.judge = judge("echo 1");
    let mut prepared = task(0);
    prepared.extra.insert("setup".into(), json!("window.ready = true"));
    let result = harness.run(vec![prepared, task(1)]).await;
    let lost = result.trajectories.iter().find(|trajectory| trajectory.task.trajectory_index == 0).unwrap();
    assert_eq!(outcome(lost), Outcome::InfraLost);
    let Evaluation::Text(reason) = &lost.steps.last().unwrap().reward.evaluation else { panic!("one text") };
    assert!(reason.contains("setup failed: the farm has no CDP endpoint"), "{reason}");
}
