//! `webgym rollout` as a user runs it: real Chromium in the process, the practice sites, a policy server that speaks
//! vLLM's dialect, in both interaction modes. Checks what is on disk afterwards.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed helper is a failed test")]

use std::{path::Path, time::Duration};

use practice::Sites;
use proto::trajectory::{Outcome, Trajectory};
use rustix::process::Signal;
use serde_json::{Value, json};
use store::{IterationFile, IterationId, SavePath, Split};
use testkit::{
    Webgym, eventually,
    sim_model::{ModelReply, ModelRequest, SimModel},
};

const LIMIT: Duration = Duration::from_secs(180);

fn tasks(folder: &Path, sites: &Sites) {
    let task = |id: usize, path: &str, answer: &str| {
        json!({
            "task_id": id, "task_name": format!("look around, part {id}"), "website": sites.url(path), "domain": "d",
            "subdomain": "s", "difficulty": 1, "evaluator_reference": ["seen"], "definite_answer": answer, "note": "kept",
        })
        .to_string()
    };
    let lines = [task(0, "/shop/", "42"), task(1, "/wiki/", "42"), task(2, "/jobs/", "other")];
    std::fs::write(folder.join("tasks.jsonl"), lines.join("\n")).unwrap();
}

fn webgym(folder: &Path, policy: &str, mode: &str, more: &[&str]) -> Webgym {
    let own = [
        format!("save_path={}", folder.join("run").display()),
        format!("data_path={}", folder.display()),
        format!("env_config.vllm_server_url={policy}"),
        format!("context_config.interaction_mode={mode}"),
    ];
    let fixed = [
        "--quiet",
        "rollout",
        "--allow-private-network",
        "--config-name=rollout_test",
        "env_config.test_tasks=tasks.jsonl",
        "env_config.test_tasks_rollout_size=0",
        "env_config.test_tasks_repeat_times=1",
        "env_config.server_size=2",
        "judge=reference",
    ];
    let arguments: Vec<&str> =
        fixed.iter().copied().chain(more.iter().copied()).chain(own.iter().map(String::as_str)).collect();
    Webgym::spawn(env!("CARGO_BIN_EXE_webgym"), &arguments)
}

/// The mark of the first link in the numbered elements of the current page.
fn first_link(question: &ModelRequest) -> Option<u64> {
    let tree = question.text.rsplit("Numbered elements:").next()?;
    let line = tree.lines().find(|line| line.ends_with("tag: a") && line.starts_with("id: "))?;
    line["id: ".len()..].split(',').next()?.parse().ok()
}

fn act(question: &ModelRequest, marks: bool) -> ModelReply {
    let name = if marks { "web_interaction" } else { "computer_use" };
    match (question.step(), marks) {
        (1, _) => ModelReply::call(name, &json!({"action": "scroll", "direction": "down"})),
        (2, true) => ModelReply::call(
            name,
            &json!({"action": "click", "element_id": first_link(question).unwrap_or(1)}),
        ),
        (2, false) => ModelReply::call(name, &json!({"action": "left_click", "coordinate": [20, 990]})),
        (3, _) => ModelReply::call(name, &json!({"action": "go_back"})),
        _ => ModelReply::call(name, &json!({"action": "answer", "text": "It is 42."})),
    }
}

fn saved(folder: &Path) -> Vec<Trajectory> {
    let save_path = SavePath::new(folder.join("run"));
    let file = IterationFile::open(&save_path.iteration_file(IterationId::new(Split::Test, 0))).unwrap();
    (0..file.summaries().len()).map(|place| file.read(place).unwrap()).collect()
}

async fn collect(mode: &'static str) {
    let folder = tempfile::tempdir().unwrap();
    let sites = Sites::start("127.0.0.1:0".parse().unwrap()).unwrap();
    tasks(folder.path(), &sites);
    let marks = mode == "set_of_marks";
    let policy = SimModel::start(move |question| act(question, marks)).await;
    let mut run = webgym(folder.path(), &policy.url(), mode, &[]);
    let told = run.wait_for_event("finished").await;
    let status = run.wait_for_exit(LIMIT).await;
    assert_eq!(status.code(), Some(0), "{}", run.log());
    let trajectories = saved(folder.path());
    assert_eq!(trajectories.len(), 3);
    for trajectory in &trajectories {
        check(trajectory, marks);
    }
    if marks {
        let moved =
            trajectories.iter().filter(|one| one.steps[2].observation.url != one.steps[1].observation.url);
        assert!(moved.count() > 0, "a click on a marked link leads somewhere");
    }
    assert_eq!(told["metrics"]["total_trajectories"], 3);
    assert_eq!(told["metrics"]["success_rate"], 2.0 / 3.0);
    let root = folder.path().join("run");
    let hyperparameters = std::fs::read_to_string(root.join("hyperparameters.yaml")).unwrap();
    assert!(hyperparameters.contains(mode) && hyperparameters.contains("seed"), "{hyperparameters}");
    assert!(root.join("tensorboard").read_dir().unwrap().count() > 0);
    assert!(!root.join("navigation_error_websites.txt").exists() && !root.join("blocklist.jsonl").exists());
    metrics_from_disk(&root, &told["metrics"]).await;
}

fn check(trajectory: &Trajectory, marks: bool) {
    let keys: Vec<&str> =
        trajectory.steps.iter().map(|step| step.action.as_ref().unwrap().key.as_str()).collect();
    assert_eq!(keys, ["scroll", "click", "goback", "answer"]);
    let wanted = if trajectory.task.reference_answer.as_deref() == Some("42") {
        Outcome::Success
    } else {
        Outcome::Failure
    };
    assert_eq!(trajectory.metadata.outcome, Some(wanted));
    assert_eq!(trajectory.task.extra.get("note"), Some(&json!("kept")));
    for step in &trajectory.steps {
        let picture = std::fs::read(&step.observation.image_path).unwrap();
        assert!(picture.starts_with(b"\x89PNG"));
        assert_eq!(picture[16..24], [0, 0, 5, 0, 0, 0, 3, 0], "1280 × 768");
        assert_eq!(step.observation.ac_tree.is_some(), marks);
        assert!(step.observation.url.starts_with("http://127.0.0.1:"), "{}", step.observation.url);
        let prompt: Value = serde_json::from_str(&step.response.raw_prompt).unwrap();
        assert_eq!(prompt[0]["role"], "system");
    }
}

async fn metrics_from_disk(root: &Path, told: &Value) {
    let output = tokio::process::Command::new(env!("CARGO_BIN_EXE_webgym"))
        .args(["metrics", root.to_str().unwrap(), "--split", "test", "--json"])
        .output();
    let output = output.await.unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report.to_string().contains(&told["success_rate"].to_string()), "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trajectories_are_collected_by_coordinates() {
    collect("coordinates").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trajectories_are_collected_by_set_of_marks() {
    collect("set_of_marks").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unfinished_run_is_refused_resumed_or_set_aside() {
    let folder = tempfile::tempdir().unwrap();
    let sites = Sites::start("127.0.0.1:0".parse().unwrap()).unwrap();
    tasks(folder.path(), &sites);
    let stuck = SimModel::start(|question| match question.task().ends_with("part 0") {
        true => ModelReply::answer("42"),
        false => ModelReply::Never,
    })
    .await;
    let mut run = webgym(folder.path(), &stuck.url(), "coordinates", &[]);
    let journal = SavePath::new(folder.path().join("run")).journal(IterationId::new(Split::Test, 0));
    let done = || IterationFile::open(&journal).is_ok_and(|file| file.summaries().len() == 1);
    eventually("one is finished", LIMIT, async || done()).await;
    run.signal(Signal::INT);
    eventually("it says that it stops", LIMIT, async || run.log().contains("Stopping: ")).await;
    run.signal(Signal::INT);
    assert_eq!(run.wait_for_exit(LIMIT).await.code(), Some(3), "{}", run.log());

    let willing = SimModel::start(|_| ModelReply::answer("42")).await;
    let mut refused = webgym(folder.path(), &willing.url(), "coordinates", &[]);
    assert_eq!(refused.wait_for_exit(LIMIT).await.code(), Some(1));
    assert!(refused.log().contains("--resume") && refused.log().contains("--fresh"), "{}", refused.log());
    assert!(journal.exists());

    let mut resumed = webgym(folder.path(), &willing.url(), "coordinates", &["--resume"]);
    assert_eq!(resumed.wait_for_exit(LIMIT).await.code(), Some(0), "{}", resumed.log());
    assert_eq!(saved(folder.path()).len(), 3);
    assert_eq!(willing.count(), 2, "only the rest is collected");
    assert!(!journal.exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_absent_or_unwilling_policy_is_told_before_any_browser_is_leased() {
    let folder = tempfile::tempdir().unwrap();
    let sites = Sites::start("127.0.0.1:0".parse().unwrap()).unwrap();
    tasks(folder.path(), &sites);
    let mut run = webgym(folder.path(), "http://127.0.0.1:9", "coordinates", &[]);
    assert_eq!(run.wait_for_exit(LIMIT).await.code(), Some(1));
    assert!(run.log().contains("http://127.0.0.1:9") && run.log().contains("webgym demo"), "{}", run.log());
    assert!(!folder.path().join("run").exists(), "nothing was begun");
    let mut run = webgym(folder.path(), &sites.url(""), "coordinates", &[]);
    assert_eq!(run.wait_for_exit(LIMIT).await.code(), Some(1));
    assert!(run.log().contains("no chat server"), "{}", run.log());
    let picky = SimModel::start(|_| ModelReply::Status(404, "no such model".into())).await;
    let mut run = webgym(folder.path(), &picky.url(), "coordinates", &["policy_config.base_model=typo"]);
    assert_eq!(run.wait_for_exit(LIMIT).await.code(), Some(1));
    assert!(run.log().contains("does not serve typo, but sim"), "{}", run.log());
    assert!(!folder.path().join("run").exists(), "nothing was begun");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_absent_farm_is_told_before_anything_is_begun() {
    let folder = tempfile::tempdir().unwrap();
    let sites = Sites::start("127.0.0.1:0".parse().unwrap()).unwrap();
    tasks(folder.path(), &sites);
    let policy = SimModel::start(|_| ModelReply::answer("42")).await;
    let nobody = ["env_config.host_ip=127.0.0.1", "env_config.master_port=9"];
    let mut run = webgym(folder.path(), &policy.url(), "coordinates", &nobody);
    assert_eq!(run.wait_for_exit(LIMIT).await.code(), Some(1));
    assert!(run.log().contains("no farm answers at http://127.0.0.1:9"), "{}", run.log());
    assert!(!folder.path().join("run").exists(), "nothing was begun");
}

/// The policy goes away for good with the first question: nothing is finished, and nothing is in the way of the next try.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_finished_nothing_leaves_no_journal_in_the_way() {
    let folder = tempfile::tempdir().unwrap();
    let sites = Sites::start("127.0.0.1:0".parse().unwrap()).unwrap();
    tasks(folder.path(), &sites);
    let refuses = SimModel::start(|_| ModelReply::Status(400, "context is too short".into())).await;
    let mut run = webgym(folder.path(), &refuses.url(), "coordinates", &[]);
    assert_eq!(run.wait_for_exit(LIMIT).await.code(), Some(1));
    assert!(
        run.log().contains("context is too short") && run.log().contains("start it again"),
        "{}",
        run.log()
    );
    let willing = SimModel::start(|_| ModelReply::answer("42")).await;
    let mut run = webgym(folder.path(), &willing.url(), "coordinates", &[]);
    assert_eq!(run.wait_for_exit(LIMIT).await.code(), Some(0), "{}", run.log());
    assert_eq!(saved(folder.path()).len(), 3);
}
