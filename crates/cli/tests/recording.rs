//! A run with `env_config.record`: its recordings are in the save path, and the viewer plays them next to the steps.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed helper fails its test")]

#[path = "../../web/tests/common/mod.rs"]
mod common;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use common::Tab;
use practice::Sites;
use serde_json::{Value, json};
use testkit::{
    Webgym,
    sim_model::{ModelReply, SimModel},
};
use tokio::io::{AsyncBufReadExt, BufReader};

const WEBGYM: &str = env!("CARGO_BIN_EXE_webgym");
const LIMIT: Duration = Duration::from_secs(180);

/// Collects one episode into `folder/run`.
async fn collect(folder: &Path, more: &[&str]) {
    let sites = Sites::start("127.0.0.1:0".parse().unwrap()).unwrap();
    let task = json!({
        "task_id": 0, "task_name": "look around", "website": sites.url("/shop/"), "domain": "d", "subdomain": "s",
        "difficulty": 1, "evaluator_reference": ["seen"], "definite_answer": "42",
    });
    std::fs::write(folder.join("tasks.jsonl"), task.to_string()).unwrap();
    let serve = "serve 1 --master-port 0 --node-port 0 --allow-private-network";
    let farm = Webgym::start(WEBGYM, &serve.split(' ').collect::<Vec<_>>()).await;
    let port = farm.listening().iter().find(|one| one.tier == "master").unwrap().port;
    let policy = SimModel::start(|_| ModelReply::answer("42")).await;
    let own = [
        format!("save_path={}", folder.join("run").display()),
        format!("data_path={}", folder.display()),
        format!("env_config.vllm_server_url={}", policy.url()),
        format!("env_config.master_port={port}"),
    ];
    let fixed = "rollout --config-name=rollout_test env_config.host_ip=127.0.0.1 env_config.test_tasks=tasks.jsonl \
                 env_config.test_tasks_rollout_size=0 env_config.test_tasks_repeat_times=1 env_config.server_size=1 \
                 env_config.monitor_port=null judge=reference";
    let arguments: Vec<&str> =
        fixed.split_whitespace().chain(own.iter().map(String::as_str)).chain(more.iter().copied()).collect();
    let mut run = Webgym::spawn(WEBGYM, &arguments);
    assert_eq!(run.wait_for_exit(LIMIT).await.code(), Some(0), "{}", run.log());
}

/// Returns the files of this name below a folder.
fn find(folder: &Path, name: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        if entry.path().is_dir() {
            found.extend(find(&entry.path(), name));
        } else if entry.file_name() == name {
            found.push(entry.path());
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_episode_is_saved_and_played_by_the_viewer() {
    common::require_built_pages();
    let folder = tempfile::tempdir().unwrap();
    collect(folder.path(), &["env_config.record=true"]).await;
    let run = folder.path().join("run");
    let [index] = &find(&run, "recording.json")[..] else { panic!("one recording") };
    let recording: Value = serde_json::from_slice(&std::fs::read(index).unwrap()).unwrap();
    assert!(recording["frames"].as_array().is_some_and(|frames| !frames.is_empty()), "{recording}");
    assert_eq!(recording["steps"].as_array().map(Vec::len), Some(1), "{recording}");
    let beside = |name: &str| std::fs::read(index.with_file_name(name)).unwrap();
    assert!(beside("step_000.png").starts_with(b"\x89PNG"), "beside the screenshots");
    assert!(beside("recording.mjpeg").starts_with(b"\xff\xd8\xff"));
    let har: Value = serde_json::from_slice(&beside("network.har")).unwrap();
    assert!(har["log"]["entries"].as_array().is_some_and(|entries| !entries.is_empty()), "{har}");
    beside("console.jsonl");

    let mut viewer = tokio::process::Command::new(WEBGYM);
    viewer.args(["view", run.to_str().unwrap(), "--port", "0"]).kill_on_drop(true);
    let mut viewer = viewer.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(viewer.stdout.take().unwrap()).lines();
    let link = loop {
        let line = lines.next_line().await.unwrap().expect("a line with the URL");
        if let Some((_, link)) = line.split_once("open ") {
            break link.split_whitespace().next().expect("a URL").to_owned();
        }
    };
    let tab = Tab::open().await;
    tab.visit(&format!("{link}#/test/0/0")).await;
    tab.wait_until("document.querySelector('.recording-frame')?.naturalWidth > 500").await;
    tab.assert_accessible("trajectory with a recording").await;
    let time = "Number(document.querySelector('.recording-controls input').value)";
    tab.eval(
        "(() => { const bar = document.querySelector('.recording-controls input'); bar.value = 0; \
         bar.dispatchEvent(new Event('input', { bubbles: true })); })()",
    )
    .await;
    tab.wait_until(&format!("{time} === 0")).await;
    tab.click(".recording-controls button").await;
    tab.wait_until(&format!("{time} > 0")).await;
    tab.wait_until("document.querySelector('.recording-controls button').textContent === 'Play'").await;
    assert_eq!(tab.eval("document.querySelectorAll('.recording a[download]').length").await, 4);
    tab.assert_no_errors();
    tab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn episodes_are_not_recorded_by_default() {
    let folder = tempfile::tempdir().unwrap();
    collect(folder.path(), &[]).await;
    assert_eq!(find(&folder.path().join("run"), "step_000.png").len(), 1);
    assert_eq!(find(&folder.path().join("run"), "recording.json"), Vec::<PathBuf>::new());
}
