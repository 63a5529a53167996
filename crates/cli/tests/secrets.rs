//! Keys never appear in the files or logs of a run, not even with `-vv`. The farm, the judge and the monitor each have their
//! own key, and each is really used.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed helper fails its test")]

use std::{path::Path, time::Duration};

use practice::Sites;
use serde_json::json;
use testkit::{
    Webgym,
    sim_model::{ModelReply, SimModel},
};

const LIMIT: Duration = Duration::from_secs(180);
const FARM: &str = "farm-key-5512-not-to-be-seen";
const JUDGE: &str = "judge-key-8871-not-to-be-seen";
const MONITOR: &str = "monitor-key-3320-not-to-be-seen";
const HUB: &str = "hub-key-9917-not-to-be-seen";

/// Returns every file below a folder with its content.
fn read_files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(read_files(&path));
        } else {
            found.push((path.display().to_string(), std::fs::read(&path).unwrap()));
        }
    }
    found
}

fn contains_key(content: &[u8], key: &str) -> bool {
    content.windows(key.len()).any(|part| part == key.as_bytes())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_are_never_written_or_logged() {
    let folder = tempfile::tempdir().unwrap();
    let sites = Sites::start("127.0.0.1:0".parse().unwrap()).unwrap();
    let task = json!({
        "task_id": 0, "task_name": "look around", "website": sites.url("/shop/"), "domain": "d", "subdomain": "s",
        "difficulty": 1, "evaluator_reference": ["seen"], "definite_answer": "42",
    });
    std::fs::write(folder.path().join("tasks.jsonl"), task.to_string()).unwrap();
    let arguments = "serve 1 --master-port 0 --node-port 0 --allow-private-network";
    let arguments: Vec<&str> = arguments.split(' ').collect();
    let mut farm = Webgym::spawn_with(env!("CARGO_BIN_EXE_webgym"), &arguments, &[("WEBGYM_API_KEY", FARM)]);
    farm.wait_for_event("ready").await;
    let port = farm.listening().iter().find(|one| one.tier == "master").unwrap().port;
    let policy = SimModel::start(|_| ModelReply::answer("42")).await;
    let judge =
        SimModel::start(|_| ModelReply::Reply("All there.\nYES\nBlocked: NO\nVerdict: SUCCESS".into())).await;
    let own = [
        format!("save_path={}", folder.path().join("run").display()),
        format!("data_path={}", folder.path().display()),
        format!("env_config.vllm_server_url={}", policy.url()),
        format!("env_config.master_port={port}"),
        format!("openai_config.base_url={}/v1", judge.url()),
    ];
    let fixed = [
        "-vv",
        "rollout",
        "--config-name=rollout_test",
        "env_config.host_ip=127.0.0.1",
        "env_config.test_tasks=tasks.jsonl",
        "env_config.test_tasks_rollout_size=0",
        "env_config.test_tasks_repeat_times=1",
        "env_config.server_size=1",
        "env_config.monitor_port=0",
        "judge=openai",
    ];
    let arguments: Vec<&str> = fixed.into_iter().chain(own.iter().map(String::as_str)).collect();
    let keys = [
        ("CPU_CLUSTER_TOKEN", FARM),
        ("OPENAI_API_KEY", JUDGE),
        ("WEBGYM_MONITOR_TOKEN", MONITOR),
        ("HF_TOKEN", HUB),
    ];
    let mut run = Webgym::spawn_with(env!("CARGO_BIN_EXE_webgym"), &arguments, &keys);
    assert_eq!(run.wait_for_exit(LIMIT).await.code(), Some(0), "{}", run.log());
    assert!(judge.requests().iter().any(|one| one.authorization.contains(JUDGE)), "the judge's key was used");
    let written = read_files(folder.path());
    assert!(written.iter().any(|(path, _)| path.contains("iteration0")), "{written:?}");
    // The last one is part of every address with the secret of a lease.
    for key in [FARM, JUDGE, MONITOR, HUB, "/live/"] {
        for (path, content) in &written {
            assert!(!contains_key(content, key), "{path} contains {key}");
        }
        for (process, log) in [("the run", run.log()), ("the farm", farm.log())] {
            assert!(!log.contains(key), "{process} logged {key}:\n{log}");
        }
    }
}
