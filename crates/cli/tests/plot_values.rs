//! `webgym plot` and `webgym metrics` on a save path, and `scripts/wandb_log`, which logs the values of the plots.

#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "../../store/tests/support/sample.rs"]
mod sample;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use proto::trajectory::Trajectory;
use serde_json::{Value, json};
use store::{IterationId, RunMetadata, SavePath, Split, durable::Existing, pt::PtWriter};

fn write_iteration(root: &Path, split: Split, iteration: u64, trajectories: &[Trajectory]) {
    let save_path = SavePath::new(root);
    save_path.create_directories(split).unwrap();
    let mut writer = PtWriter::create(&save_path.iteration_file(IterationId::new(split, iteration))).unwrap();
    for trajectory in trajectories {
        writer.push(trajectory).unwrap();
    }
    writer.finish(&RunMetadata::default(), Existing::Refuse).unwrap();
}

/// Returns a trajectory that succeeds if its task is even.
fn trajectory(task: i64, index: i64) -> Trajectory {
    let mut trajectory = sample::trajectory(task, 3);
    trajectory.task.trajectory_index = index;
    trajectory
}

/// Writes train iterations 0 and 1 with three and two trajectories, and test iteration 0 with two trajectories of task 0,
/// and one of task 1, which is in distribution.
fn write_save_path(root: &Path) {
    let mut in_distribution = trajectory(1, 2);
    in_distribution.task.extra.insert("distribution".to_owned(), "id".into());
    write_iteration(root, Split::Train, 0, &[trajectory(0, 0), trajectory(1, 1), trajectory(2, 2)]);
    write_iteration(root, Split::Train, 1, &[trajectory(3, 0), trajectory(5, 1)]);
    write_iteration(root, Split::Test, 0, &[trajectory(0, 0), trajectory(0, 1), in_distribution]);
}

fn assert_success(output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn webgym(arguments: &[&str]) -> String {
    assert_success(&Command::new(env!("CARGO_BIN_EXE_webgym")).args(arguments).output().unwrap())
}

/// Runs `webgym plot` with the options and returns the overall series of a measure.
fn plotted(root: &Path, options: &[&str], split: &str, measure: &str) -> Value {
    let out = root.join("values.json");
    let fixed = ["plot", root.to_str().unwrap(), "--out", out.to_str().unwrap()];
    webgym(&[&fixed[..], options].concat());
    let charts: Value = serde_json::from_slice(&std::fs::read(out).unwrap()).unwrap();
    let charts = charts["charts"].as_array().unwrap();
    let chart = charts.iter().find(|chart| chart["measure"] == measure).unwrap();
    let mut series = chart["series"].as_array().unwrap().iter();
    series.find(|series| series["split"] == split && series["line"] == "overall").unwrap().clone()
}

#[test]
fn unreadable_file_fails_the_plot() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    write_save_path(root);
    let damaged = SavePath::new(root).iteration_file(IterationId::new(Split::Train, 1));
    std::fs::write(&damaged, "not a file of PyTorch").unwrap();
    let output =
        Command::new(env!("CARGO_BIN_EXE_webgym")).args(["plot", root.to_str().unwrap()]).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && stderr.contains("train_trajectories.pt.iteration1"), "{stderr}");
    assert!(root.join("metrics.png").exists(), "the plots of the other files are written");
}

#[test]
fn x_axis_and_ood_filter_change_plots() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    write_save_path(root);
    let train = plotted(root, &[], "train", "success");
    assert_eq!((&train["x"], &train["values"]), (&json!([0, 1]), &json!([2.0 / 3.0, 0.0])));
    assert_eq!(plotted(root, &["--x", "trajectories"], "train", "success")["x"], json!([3, 5]));
    assert_eq!(plotted(root, &[], "test", "success")["values"], json!([2.0 / 3.0]));
    assert_eq!(plotted(root, &["--ood"], "test", "success")["values"], json!([1.0]));
    let svg = root.join("metrics.svg");
    let arguments =
        ["plot", root.to_str().unwrap(), "--x", "trajectories", "--ood", "--out", svg.to_str().unwrap()];
    assert!(webgym(&arguments).contains("7 trajectories"), "one of the eight is filtered");
    let image = std::fs::read_to_string(svg).unwrap();
    assert!(image.contains("trajectories of the split so far") && image.contains("out of distribution"));
}

#[test]
fn metrics_name_pass_at_k_of_repeated_tasks() {
    let directory = tempfile::tempdir().unwrap();
    write_save_path(directory.path());
    let root = directory.path().to_str().unwrap();
    assert!(
        webgym(&["metrics", root, "--split", "test"])
            .contains("pass@1 100.0 %, pass@2 100.0 % (1 repeated task)")
    );
    let report: Value =
        serde_json::from_str(&webgym(&["metrics", root, "--split", "test", "--json"])).unwrap();
    assert_eq!(report["pass_at_k"], json!({"k": 2, "tasks": 1, "mean": 1.0, "rate": 1.0}));
    assert!(!webgym(&["metrics", root, "--split", "train"]).contains("pass@"));
}

/// Stands in for the `wandb` package: writes every call as a line of JSON. It has only what the script may use.
const FAKE_WANDB: &str = r#"
import json, os

def write(**call):
    with open(os.environ["CALLS"], "a") as out:
        out.write(json.dumps(call) + "\n")

class Settings:
    def __init__(self, **settings): pass

class Run:
    id = "run-7"
    def define_metric(self, name, step_metric=None): write(metric=name, step_metric=step_metric)
    def log(self, values, step): write(log=values, step=step)
    def finish(self): write(finish=True)

def init(*, project, entity, name, id, resume, dir, settings):
    write(project=project, name=name, id=id, resume=resume)
    return Run()
"#;

/// Runs `scripts/wandb_log` with the stand-in and returns the calls.
fn wandb_log(root: &Path, package: &Path) -> Vec<Value> {
    let calls = package.join("calls.jsonl");
    std::fs::write(&calls, "").unwrap();
    std::fs::write(package.join("wandb.py"), FAKE_WANDB).unwrap();
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scripts/wandb_log");
    let output = Command::new("python3")
        .args([script.as_path(), root])
        .args(["--project", "p", "--name", "n", "--webgym", env!("CARGO_BIN_EXE_webgym")])
        .env("PYTHONPATH", package)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("CALLS", &calls)
        .output()
        .unwrap();
    assert_success(&output);
    let lines = std::fs::read_to_string(calls).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns the iteration, W&B step and one value of every logged row.
fn rows(calls: &[Value], key: &str) -> Vec<Value> {
    let logged = calls.iter().filter(|call| call["log"].is_object());
    logged.map(|call| json!([call["log"]["iteration"], call["step"], call["log"][key]])).collect()
}

#[test]
fn wandb_log_continues_its_run_with_new_iterations() {
    let directory = tempfile::tempdir().unwrap();
    let package = tempfile::tempdir().unwrap();
    let root = directory.path();
    write_save_path(root);
    let calls = wandb_log(root, package.path());
    assert_eq!(calls[0], json!({"project": "p", "name": "n", "id": null, "resume": null}));
    assert!(calls.contains(&json!({"metric": "train/*", "step_metric": "iteration"})));
    assert_eq!(
        rows(&calls, "train/success"),
        [json!([0, 0, null]), json!([0, 1, 2.0 / 3.0]), json!([1, 2, 0.0])],
        "test and train of iteration 0, then train of iteration 1"
    );
    assert_eq!(rows(&calls, "test/success_easy")[0], json!([0, 0, 2.0 / 3.0]));
    assert_eq!(wandb_log(root, package.path()), Vec::<Value>::new(), "nothing is new");

    write_iteration(root, Split::Train, 2, &[trajectory(0, 0)]);
    // A running iteration has only a journal.
    let running = SavePath::new(root).journal(IterationId::new(Split::Train, 3));
    let record = store::RunRecord {
        split: Split::Train,
        iteration: 3,
        rank: None,
        seed: 0,
        config_digest: String::new(),
        tasks: 2,
        metadata: RunMetadata::default(),
    };
    let journal = store::Journal::create(&running, &record).unwrap();
    journal.append_finished_blocking(&trajectory(0, 0)).unwrap();
    let calls = wandb_log(root, package.path());
    assert_eq!(calls[0], json!({"project": "p", "name": "n", "id": "run-7", "resume": "allow"}));
    assert_eq!(rows(&calls, "train/success"), [json!([2, 3, 1.0])]);
    assert_eq!(calls.last(), Some(&json!({"finish": true})));
    journal.close_blocking().unwrap();
}
