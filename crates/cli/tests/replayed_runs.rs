//! `webgym rollout` that replays an archive, with a simulated farm: interrupted and resumed, and refused settings.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed helper fails its test")]

use std::{
    collections::BTreeSet,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use proto::trajectory::Outcome;
use rustix::process::Signal;
use serde_json::json;
use store::{IterationFile, IterationId, SavePath, Split};
use testkit::{
    Webgym, eventually,
    sim_farm::{Call, Fault, SimFarm, SimFarmOptions},
    sim_model::{ModelReply, SimModel},
};

/// Generous for loaded machines; a passing test needs a few seconds.
const LIMIT: Duration = Duration::from_secs(120);

/// Starts a run with two attempts at each of two tasks, one after another.
fn start(folder: &Path, policy: &SimModel, more: &[&str]) -> Webgym {
    let task = |number: usize| {
        json!({
            "task_id": number, "task_name": format!("task {number}"), "website": "http://shop.test/", "domain": "d",
            "subdomain": "s", "difficulty": 1, "evaluator_reference": ["shown"], "definite_answer": "42",
        })
        .to_string()
    };
    std::fs::write(folder.join("tasks.jsonl"), [task(0), task(1)].join("\n")).unwrap();
    let own = [
        format!("save_path={}", folder.join("run").display()),
        format!("data_path={}", folder.display()),
        format!("env_config.vllm_server_url={}", policy.url()),
    ];
    let fixed = [
        "rollout",
        "--config-name=rollout_train",
        "env_config.train_tasks=tasks.jsonl",
        "env_config.train_tasks_rollout_size=2",
        "env_config.group_size=2",
        "env_config.server_size=1",
        "env_config.monitor_port=null",
        "env_config.network=replay",
        "judge=reference",
    ];
    let arguments: Vec<&str> =
        fixed.into_iter().chain(own.iter().map(String::as_str)).chain(more.iter().copied()).collect();
    Webgym::spawn(env!("CARGO_BIN_EXE_webgym"), &arguments)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resumed_run_keeps_misses_and_the_names_of_sessions() {
    let folder = tempfile::tempdir().unwrap();
    let matches = json!({"exact": 9, "normalised": 0, "scored": 0, "missed": 1});
    let report = json!({"replay": "shop", "matches": matches});
    let script = |call: &Call| {
        if call.lease == 0 && call.runs("click_coords") { Fault::ReplayMiss } else { Fault::None }
    };
    let options = SimFarmOptions { network_report: Some(report), ..SimFarmOptions::default() };
    let farm = SimFarm::start(options.with_script(script)).await;
    let port = format!("env_config.master_port={}", farm.port());
    let replay = ["env_config.host_ip=127.0.0.1", &port, "env_config.archive=shop"];

    // The first episode misses a request; the second one waits for the policy until the run is stopped.
    let was_asked = AtomicBool::new(false);
    let stuck = SimModel::start(move |_| {
        if was_asked.swap(true, Ordering::Relaxed) { ModelReply::Never } else { ModelReply::click(500, 500) }
    })
    .await;
    let mut run = start(folder.path(), &stuck, &replay);
    let save_path = SavePath::new(folder.path().join("run"));
    let id = IterationId::new(Split::Train, 0);
    let finished = || IterationFile::open(&save_path.journal(id)).map_or(0, |file| file.summaries().len());
    eventually("one episode has ended", LIMIT, async || finished() == 1).await;
    eventually("the next one waits for the policy", LIMIT, async || stuck.count() == 2).await;
    run.signal(Signal::INT);
    eventually("it logs that it stops", LIMIT, async || run.log().contains("Stopping: ")).await;
    run.signal(Signal::INT);
    assert_eq!(run.wait_for_exit(LIMIT).await.code(), Some(3), "{}", run.log());

    let policy = SimModel::start(|_| ModelReply::answer("42")).await;
    let mut run = start(folder.path(), &policy, &[&replay[..], &["--resume"]].concat());
    assert_eq!(run.wait_for_exit(LIMIT).await.code(), Some(0), "{}", run.log());
    assert!(run.log().contains("1 of 4 episodes ended because the archive lacks a request"), "{}", run.log());
    let options = farm.session_options();
    let sessions: Vec<&str> = options.iter().map(|one| one["network"]["session"].as_str().unwrap()).collect();
    assert_eq!(sessions.len(), 5, "{sessions:?}");
    assert_eq!(sessions[1], sessions[2], "only the interrupted episode is repeated: {sessions:?}");
    assert_eq!(BTreeSet::from_iter(sessions), BTreeSet::from(["0#0", "0#1", "1#0", "1#1"]));

    let file = IterationFile::open(&save_path.iteration_file(id)).unwrap();
    let outcomes: Vec<_> = file.summaries().iter().map(|one| one.outcome.unwrap()).collect();
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == Outcome::ReplayMiss).count(), 1);
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == Outcome::Success).count(), 3);
    let metrics = store::metrics::of_iteration(&save_path, Split::Train, 0).unwrap().breakdown;
    let coverage = metrics.coverage.unwrap();
    assert_eq!((coverage.overall.trajectories, coverage.by_site[0].matches.missed), (4, 4));
    assert_eq!((metrics.overall.replay_misses, metrics.overall.success_rate), (1, 1.0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attempts_of_a_group_share_their_first_steps() {
    let folder = tempfile::tempdir().unwrap();
    let farm = SimFarm::start(SimFarmOptions::default()).await;
    let policy = SimModel::start(|request| {
        if request.step() > 2 { ModelReply::answer("42") } else { ModelReply::click(500, 500) }
    })
    .await;
    let port = format!("env_config.master_port={}", farm.port());
    let more =
        ["env_config.host_ip=127.0.0.1", &port, "env_config.archive=shop", "env_config.group_from_step=2"];
    let mut run = start(folder.path(), &policy, &more);
    assert_eq!(run.wait_for_exit(LIMIT).await.code(), Some(0), "{}", run.log());
    let save_path = SavePath::new(folder.path().join("run"));
    let file = IterationFile::open(&save_path.iteration_file(IterationId::new(Split::Train, 0))).unwrap();
    let forks = (0..4).map(|position| file.read(position).unwrap().metadata.forked_at_step);
    assert_eq!(forks.collect::<Vec<_>>(), [None, Some(2), None, Some(2)]);
    assert_eq!(policy.count(), 2 * (3 + 1), "the second attempts ask only for their own steps");
    let options = farm.session_options();
    let sessions = options.iter().map(|one| one["network"]["session"].as_str().unwrap());
    assert_eq!(sessions.collect::<BTreeSet<_>>(), BTreeSet::from(["0#0", "1#0"]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn missing_archive_is_reported_before_the_run_starts() {
    let folder = tempfile::tempdir().unwrap();
    let policy = SimModel::start(|_| ModelReply::answer("42")).await;
    let archive = format!("env_config.archive={}", folder.path().join("none").display());
    let mut run = start(folder.path(), &policy, &[&archive]);
    assert_eq!(run.wait_for_exit(LIMIT).await.code(), Some(1), "{}", run.log());
    let log = run.log();
    assert!(log.contains("env_config.archive: ") && log.contains("none is not a directory"), "{log}");
    assert!(!folder.path().join("run").join("train_trajectories").exists(), "{log}");
}
