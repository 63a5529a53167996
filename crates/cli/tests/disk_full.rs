//! A disk that fills up during a run: a small tmpfs in its own mount namespace. The run stops with a message; when there is
//! space again, `--resume` collects exactly the rest.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed helper fails its test")]

use std::{collections::BTreeSet, path::Path};

use serde_json::json;
use store::{IterationFile, IterationId, SavePath, Split};
use testkit::{
    sim_farm::{SimFarm, SimFarmOptions},
    sim_model::{ModelReply, ModelRequest, SimModel},
};

const TASKS: usize = 40;

/// Arguments: the mount point of the small disk, the folder for copies of its content, then the command.
const SCRIPT: &str = r#"
set -eu
disk=$1 kept=$2; shift 2
mount -t tmpfs -o size=600k none "$disk"
code=0; "$@" >"$kept/first.out" 2>"$kept/first.err" || code=$?
echo "$code" >"$kept/first.code"
"$@" >"$kept/again.out" 2>"$kept/again.err" || echo "$?" >"$kept/again.code"
cp -r "$disk" "$kept/full"
mount -o remount,size=64m none "$disk"
code=0; "$@" >"$kept/second.out" 2>"$kept/second.err" || code=$?
echo "$code" >"$kept/second.code"
cp -r "$disk" "$kept/run"
"#;

fn reply(request: &ModelRequest) -> ModelReply {
    if request.step() < 4 { ModelReply::click(500, 500) } else { ModelReply::answer("42") }
}

fn indices(path: &Path) -> BTreeSet<i64> {
    let file = IterationFile::open(path).unwrap();
    let all: Vec<i64> = file.summaries().iter().map(|one| one.trajectory_index).collect();
    let set: BTreeSet<i64> = all.iter().copied().collect();
    assert_eq!(set.len(), all.len(), "no trajectory is there twice");
    set
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn full_disk_stops_run_and_resume_finishes() {
    let folder = tempfile::tempdir().unwrap();
    let (disk, kept) = (folder.path().join("disk"), folder.path().join("kept"));
    std::fs::create_dir(&disk).unwrap();
    std::fs::create_dir(&kept).unwrap();
    let task = |number: usize| {
        json!({"task_id": number, "task_name": format!("task number {number} here"), "website": "http://shop.test/",
            "domain": "d", "subdomain": "s", "difficulty": 1, "evaluator_reference": "shown", "definite_answer": "42"})
        .to_string()
    };
    let tasks: Vec<String> = (0..TASKS).map(task).collect();
    std::fs::write(folder.path().join("tasks.jsonl"), tasks.join("\n")).unwrap();
    let farm = SimFarm::start(SimFarmOptions::default()).await;
    let policy = SimModel::start(reply).await;
    let mut command = tokio::process::Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        command.arg("--map-root-user");
    }
    command.args(["--mount", "sh", "-c", SCRIPT, "sh"]).arg(&disk).arg(&kept);
    command.args([env!("CARGO_BIN_EXE_webgym"), "rollout", "--resume", "--config-name=rollout_train"]);
    command.args([
        format!("save_path={}", disk.display()),
        format!("data_path={}", folder.path().display()),
        "env_config.train_tasks=tasks.jsonl".to_owned(),
        format!("env_config.train_tasks_rollout_size={TASKS}"),
        "env_config.host_ip=127.0.0.1".to_owned(),
        format!("env_config.master_port={}", farm.port()),
        format!("env_config.vllm_server_url={}", policy.url()),
        "env_config.server_size=4".to_owned(),
        "env_config.completion_threshold=1.0".to_owned(),
        "env_config.monitor_port=null".to_owned(),
        "judge=reference".to_owned(),
        "seed=7".to_owned(),
    ]);
    let output = command.kill_on_drop(true).output().await.expect("unshare runs (package util-linux)");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read = |name: &str| std::fs::read_to_string(kept.join(name)).unwrap();
    let (code, stderr) = (read("first.code"), read("first.err"));
    assert_ne!(code.trim(), "0", "a full disk is not a success:\n{stderr}");
    assert!(stderr.to_lowercase().contains("no space left") && stderr.contains("--resume"), "{stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    let again = read("again.err");
    assert_ne!(read("again.code").trim(), "0", "the disk is still full:\n{again}");
    assert!(again.to_lowercase().contains("no space left"), "{again}");
    let id = IterationId::new(Split::Train, 0);
    let before = indices(&SavePath::new(kept.join("full")).journal(id));
    assert!(!before.is_empty() && before.len() < TASKS, "{} finished before the disk was full", before.len());
    assert_eq!(read("second.code").trim(), "0", "{}", read("second.err"));
    let run = SavePath::new(kept.join("run"));
    assert_eq!(indices(&run.iteration_file(id)), (0..i64::try_from(TASKS).unwrap()).collect());
    let image_folders = std::fs::read_dir(run.images()).unwrap().count();
    assert_eq!(image_folders, TASKS, "screenshots of interrupted attempts are removed");
    let record = std::fs::read_to_string(run.root().join("hyperparameters.yaml")).unwrap();
    let keys = |document: &str| -> Vec<String> {
        let top = document.lines().filter(|line| !line.starts_with([' ', '-']) && line.contains(':'));
        top.map(|line| line.split(':').next().unwrap_or_default().to_owned()).collect()
    };
    let documents: Vec<Vec<String>> = record.split("---\n").skip(1).map(keys).collect();
    assert!(documents.len() >= 2, "{record}");
    assert!(
        documents.iter().all(|keys| *keys == documents[0]),
        "a failed write leaves no partial document:\n{record}"
    );
}
