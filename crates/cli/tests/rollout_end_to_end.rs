//! `webgym rollout` with real Chromium in the same process, the practice sites and a policy server with vLLM's API, in both
//! interaction modes. Checks the files on disk afterwards.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed helper fails its test")]

use std::{
    collections::BTreeMap,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use practice::Sites;
use proto::{
    ImageFormat,
    trajectory::{Outcome, Trajectory},
};
use rustix::process::Signal;
use serde_json::{Value, json};
use store::{IterationFile, IterationId, SavePath, Split};
use testkit::{
    Webgym, eventually,
    sim_model::{ModelReply, ModelRequest, SimModel},
};

const LIMIT: Duration = Duration::from_secs(180);

fn write_tasks(folder: &Path, sites: &Sites) {
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
    webgym_with(folder, policy, mode, more, &[])
}

fn webgym_with(folder: &Path, policy: &str, mode: &str, more: &[&str], variables: &[(&str, &str)]) -> Webgym {
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
    Webgym::spawn_with(env!("CARGO_BIN_EXE_webgym"), &arguments, variables)
}

/// Returns the mark of the first link in the numbered elements of the current page.
fn first_link(request: &ModelRequest) -> Option<u64> {
    let tree = request.text.rsplit("Numbered elements:").next()?;
    let line = tree.lines().find(|line| line.ends_with("tag: a") && line.starts_with("id: "))?;
    line["id: ".len()..].split(',').next()?.parse().ok()
}

fn act(request: &ModelRequest, marks: bool) -> ModelReply {
    let name = if marks { "web_interaction" } else { "computer_use" };
    match (request.step(), marks) {
        (1, _) => ModelReply::call(name, &json!({"action": "scroll", "direction": "down"})),
        (2, true) => ModelReply::call(
            name,
            &json!({"action": "click", "element_id": first_link(request).unwrap_or(1)}),
        ),
        (2, false) => ModelReply::call(name, &json!({"action": "left_click", "coordinate": [20, 990]})),
        (3, _) => ModelReply::call(name, &json!({"action": "go_back"})),
        _ => ModelReply::call(name, &json!({"action": "answer", "text": "It is 42."})),
    }
}

fn read_saved(folder: &Path) -> Vec<Trajectory> {
    let save_path = SavePath::new(folder.join("run"));
    let file = IterationFile::open(&save_path.iteration_file(IterationId::new(Split::Test, 0))).unwrap();
    (0..file.summaries().len()).map(|index| file.read(index).unwrap()).collect()
}

async fn collect(mode: &'static str, format: ImageFormat) {
    let folder = tempfile::tempdir().unwrap();
    let sites = Sites::start("127.0.0.1:0".parse().unwrap()).unwrap();
    write_tasks(folder.path(), &sites);
    let marks = mode == "set_of_marks";
    let policy = SimModel::start(move |request| act(request, marks)).await;
    let format_setting = format!("env_config.screenshot_format={}", format.as_str());
    let mut run = webgym(folder.path(), &policy.url(), mode, &[&format_setting]);
    let finished = run.wait_for_event("finished").await;
    let status = run.wait_for_exit(LIMIT).await;
    assert_eq!(status.code(), Some(0), "{}", run.log());
    let trajectories = read_saved(folder.path());
    assert_eq!(trajectories.len(), 3);
    for trajectory in &trajectories {
        check_trajectory(trajectory, marks, format);
    }
    if marks {
        let moved =
            trajectories.iter().filter(|one| one.steps[2].observation.url != one.steps[1].observation.url);
        assert!(moved.count() > 0, "a click on a marked link opens another page");
    }
    assert_eq!(finished["metrics"]["total_trajectories"], 3);
    assert_eq!(finished["metrics"]["success_rate"], 2.0 / 3.0);
    let root = folder.path().join("run");
    let hyperparameters = std::fs::read_to_string(root.join("hyperparameters.yaml")).unwrap();
    assert!(hyperparameters.contains(mode) && hyperparameters.contains("seed"), "{hyperparameters}");
    assert!(root.join("tensorboard").read_dir().unwrap().count() > 0);
    assert!(!root.join("navigation_error_websites.txt").exists() && !root.join("blocklist.jsonl").exists());
    check_metrics_command(&root, &finished["metrics"]).await;
}

/// Attempts at a task share a group; steps and trajectories know which version of the policy replied.
#[tokio::test(flavor = "multi_thread")]
async fn groups_and_policy_versions_are_recorded_and_exported() {
    let folder = tempfile::tempdir().unwrap();
    let sites = Sites::start("127.0.0.1:0".parse().unwrap()).unwrap();
    write_tasks(folder.path(), &sites);
    let answers = AtomicUsize::new(0);
    let policy = SimModel::start(move |request| {
        let (version, action) = match request.step() {
            1 => ("step-1", json!({"action": "scroll", "direction": "down"})),
            _ if answers.fetch_add(1, Ordering::Relaxed).is_multiple_of(3) => {
                ("step-1", json!({"action": "answer", "text": "It is 42."}))
            }
            _ => ("step-2", json!({"action": "answer", "text": "No idea."})),
        };
        let ModelReply::Reply(text) = ModelReply::call("computer_use", &action) else { unreachable!() };
        ModelReply::Versioned(version, text)
    })
    .await;
    let train = [
        "env_config.split=train",
        "env_config.train_tasks=tasks.jsonl",
        "env_config.train_tasks_rollout_size=3",
        "env_config.group_size=4",
    ];
    let mut run = webgym(folder.path(), &policy.url(), "coordinates", &train);
    let finished = run.wait_for_event("finished").await;
    assert_eq!(run.wait_for_exit(LIMIT).await.code(), Some(0), "{}", run.log());
    assert_eq!(finished["metrics"]["total_trajectories"], 12);
    let (root, out) = (folder.path().join("run"), folder.path().join("out"));
    let paths = [root.to_str().unwrap(), out.to_str().unwrap()];
    let arguments = ["export", paths[0], "--to", "jsonl", "--advantage", "rloo", "--out", paths[1]];
    let mut export = Webgym::spawn(env!("CARGO_BIN_EXE_webgym"), &arguments);
    assert_eq!(export.wait_for_exit(LIMIT).await.code(), Some(0), "{}", export.log());
    let lines = std::fs::read_to_string(out.join("train.jsonl")).unwrap();
    let mut groups: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for line in lines.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let is_answered =
            line["steps"][1]["response"]["raw_response"].as_str().unwrap().contains("It is 42.");
        let versions = if is_answered { json!(["step-1"]) } else { json!(["step-1", "step-2"]) };
        assert_eq!(line["metadata"]["policy_versions"], versions);
        assert_eq!(line["steps"][0]["extras"]["policy_version"], "step-1");
        let group = line["metadata"]["group_id"].as_str().unwrap().to_owned();
        groups.entry(group).or_default().push(line);
    }
    assert_eq!(groups.keys().collect::<Vec<_>>(), ["train-0-0", "train-0-1", "train-0-2"]);
    for members in groups.values() {
        assert_eq!(members.len(), 4);
        assert!(members.iter().all(|one| one["task"]["task_name"] == members[0]["task"]["task_name"]));
        let sum: f64 = members.iter().map(|one| one["advantage"].as_f64().unwrap()).sum();
        assert!(sum.abs() < 1e-9, "the advantages of a group add up to 0, not {sum}");
    }
}

/// Session options come from the configuration and from the task; secrets are read from files and variables and stay
/// there.
#[tokio::test(flavor = "multi_thread")]
async fn session_options_reach_the_browser() {
    let folder = tempfile::tempdir().unwrap();
    let sites = Sites::start("127.0.0.1:0".parse().unwrap()).unwrap();
    let task = json!({
        "task_id": 1, "task_name": "read the headers", "website": sites.url("/echo/headers"), "domain": "d", "subdomain": "s",
        "difficulty": 1, "evaluator_reference": ["seen"], "definite_answer": "42",
        "session": {"locale": "fr-FR", "storage_state": "login.json"},
    });
    std::fs::write(folder.path().join("tasks.jsonl"), task.to_string()).unwrap();
    let login = json!({"cookies": [{"name": "sid", "value": "hunter2", "domain": "127.0.0.1"}]});
    std::fs::write(folder.path().join("login.json"), login.to_string()).unwrap();
    let (sender, mut prompts) = tokio::sync::mpsc::unbounded_channel();
    let policy = SimModel::start(move |request| {
        sender.send(request.text.clone()).unwrap();
        ModelReply::call("computer_use", &json!({"action": "answer", "text": "42"}))
    })
    .await;
    let more = [
        "context_config.page_text_lines=60",
        "env_config.session.user_agent=Tester/1.0",
        "env_config.session.locale=de-DE",
        "env_config.session.extra_http_headers={x-team-token: env:WEBGYM_TEST_TOKEN}",
    ];
    let variables = [("WEBGYM_TEST_TOKEN", "correct horse")];
    let mut run = webgym_with(folder.path(), &policy.url(), "coordinates", &more, &variables);
    let status = run.wait_for_exit(LIMIT).await;
    assert_eq!(status.code(), Some(0), "{}", run.log());
    let prompt = prompts.recv().await.unwrap();
    for expected in ["Tester/1.0", "fr-FR", "sid=hunter2", "correct horse"] {
        assert!(prompt.contains(expected), "{expected}: {prompt}");
    }
    let stored = std::fs::read_to_string(folder.path().join("run/hyperparameters.yaml")).unwrap();
    assert!(stored.contains("env:WEBGYM_TEST_TOKEN") && !stored.contains("correct horse"), "{stored}");
    let log = run.log();
    assert!(!log.contains("correct horse") && !log.contains("hunter2"), "{log}");
    assert_eq!(read_saved(folder.path())[0].task.extra["session"]["storage_state"], "login.json");
}

/// Invalid options and missing files are reported before anything starts.
#[tokio::test(flavor = "multi_thread")]
async fn invalid_session_options_stop_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let sites = Sites::start("127.0.0.1:0".parse().unwrap()).unwrap();
    write_tasks(folder.path(), &sites);
    let policy = SimModel::start(|request| act(request, false)).await;
    for (option, expected) in [
        ("env_config.session.locle=de-DE", "did you mean env_config.session.locale"),
        ("env_config.session.proxy={server: p.test:1, password: hunter2}", "never the secret itself"),
        ("env_config.session.storage_state=missing.json", "missing.json"),
        (
            "env_config.session.extra_http_headers={x-key: env:NO_SUCH_VARIABLE}",
            "NO_SUCH_VARIABLE is not set",
        ),
    ] {
        let mut run = webgym(folder.path(), &policy.url(), "coordinates", &[option]);
        let status = run.wait_for_exit(LIMIT).await;
        let log = run.log();
        assert_ne!(status.code(), Some(0), "{option}: {log}");
        assert!(log.contains(expected), "{option}: {log}");
        assert!(!log.contains("hunter2"), "{log}");
    }
}

fn check_trajectory(trajectory: &Trajectory, marks: bool, format: ImageFormat) {
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
        let image = std::fs::read(&step.observation.image_path).unwrap();
        assert_eq!(ImageFormat::of(&image), Some(format));
        assert!(step.observation.image_path.ends_with(format.extension()), "{}", step.observation.image_path);
        if format == ImageFormat::Png {
            assert_eq!(image[16..24], [0, 0, 5, 0, 0, 0, 3, 0], "1280 × 768");
        }
        assert_eq!(step.observation.ac_tree.is_some(), marks);
        assert!(step.observation.url.starts_with("http://127.0.0.1:"), "{}", step.observation.url);
        let prompt: Value = serde_json::from_str(&step.response.raw_prompt).unwrap();
        assert_eq!(prompt[0]["role"], "system");
    }
}

async fn check_metrics_command(root: &Path, expected: &Value) {
    let output = tokio::process::Command::new(env!("CARGO_BIN_EXE_webgym"))
        .args(["metrics", root.to_str().unwrap(), "--split", "test", "--json"])
        .output();
    let output = output.await.unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report.to_string().contains(&expected["success_rate"].to_string()), "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn coordinates_mode_collects_trajectories() {
    collect("coordinates", ImageFormat::Png).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn set_of_marks_mode_collects_trajectories() {
    collect("set_of_marks", ImageFormat::Png).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jpeg_screenshots_are_collected_in_both_modes() {
    collect("coordinates", ImageFormat::Jpeg).await;
    collect("set_of_marks", ImageFormat::Jpeg).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unfinished_run_is_refused_or_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let sites = Sites::start("127.0.0.1:0".parse().unwrap()).unwrap();
    write_tasks(folder.path(), &sites);
    let stuck = SimModel::start(|request| {
        if request.task().ends_with("part 0") { ModelReply::answer("42") } else { ModelReply::Never }
    })
    .await;
    let mut run = webgym(folder.path(), &stuck.url(), "coordinates", &[]);
    let journal = SavePath::new(folder.path().join("run")).journal(IterationId::new(Split::Test, 0));
    let done = || IterationFile::open(&journal).is_ok_and(|file| file.summaries().len() == 1);
    eventually("one trajectory is finished", LIMIT, async || done()).await;
    run.signal(Signal::INT);
    eventually("it logs that it stops", LIMIT, async || run.log().contains("Stopping: ")).await;
    run.signal(Signal::INT);
    assert_eq!(run.wait_for_exit(LIMIT).await.code(), Some(3), "{}", run.log());

    let working = SimModel::start(|_| ModelReply::answer("42")).await;
    let mut refused = webgym(folder.path(), &working.url(), "coordinates", &[]);
    assert_eq!(refused.wait_for_exit(LIMIT).await.code(), Some(1));
    assert!(refused.log().contains("--resume") && refused.log().contains("--fresh"), "{}", refused.log());
    assert!(journal.exists());

    let mut resumed = webgym(folder.path(), &working.url(), "coordinates", &["--resume"]);
    assert_eq!(resumed.wait_for_exit(LIMIT).await.code(), Some(0), "{}", resumed.log());
    assert_eq!(read_saved(folder.path()).len(), 3);
    assert_eq!(working.count(), 2, "only the missing tasks are collected");
    assert!(!journal.exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unusable_policy_fails_before_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let sites = Sites::start("127.0.0.1:0".parse().unwrap()).unwrap();
    write_tasks(folder.path(), &sites);
    let mut run = webgym(folder.path(), "http://127.0.0.1:9", "coordinates", &[]);
    assert_eq!(run.wait_for_exit(LIMIT).await.code(), Some(1));
    assert!(run.log().contains("http://127.0.0.1:9") && run.log().contains("webgym demo"), "{}", run.log());
    assert!(!folder.path().join("run").exists(), "no run was started");
    let mut run = webgym(folder.path(), &sites.url(""), "coordinates", &[]);
    assert_eq!(run.wait_for_exit(LIMIT).await.code(), Some(1));
    assert!(run.log().contains("not a chat server"), "{}", run.log());
    let wrong_model = SimModel::start(|_| ModelReply::Status(404, "no such model".into())).await;
    let mut run =
        webgym(folder.path(), &wrong_model.url(), "coordinates", &["policy_config.base_model=typo"]);
    assert_eq!(run.wait_for_exit(LIMIT).await.code(), Some(1));
    assert!(run.log().contains("does not serve typo; it serves sim"), "{}", run.log());
    assert!(!folder.path().join("run").exists(), "no run was started");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unreachable_farm_fails_before_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let sites = Sites::start("127.0.0.1:0".parse().unwrap()).unwrap();
    write_tasks(folder.path(), &sites);
    let policy = SimModel::start(|_| ModelReply::answer("42")).await;
    let unreachable = ["env_config.host_ip=127.0.0.1", "env_config.master_port=9"];
    let mut run = webgym(folder.path(), &policy.url(), "coordinates", &unreachable);
    assert_eq!(run.wait_for_exit(LIMIT).await.code(), Some(1));
    assert!(run.log().contains("no farm answers at http://127.0.0.1:9"), "{}", run.log());
    assert!(!folder.path().join("run").exists(), "no run was started");
}

/// The policy refuses every request: nothing is finished, and the next start needs neither --resume nor --fresh.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn run_without_results_leaves_no_journal() {
    let folder = tempfile::tempdir().unwrap();
    let sites = Sites::start("127.0.0.1:0".parse().unwrap()).unwrap();
    write_tasks(folder.path(), &sites);
    let refusing = SimModel::start(|_| ModelReply::Status(400, "context is too short".into())).await;
    let mut run = webgym(folder.path(), &refusing.url(), "coordinates", &[]);
    assert_eq!(run.wait_for_exit(LIMIT).await.code(), Some(1));
    assert!(
        run.log().contains("context is too short") && run.log().contains("start it again"),
        "{}",
        run.log()
    );
    let working = SimModel::start(|_| ModelReply::answer("42")).await;
    let mut run = webgym(folder.path(), &working.url(), "coordinates", &[]);
    assert_eq!(run.wait_for_exit(LIMIT).await.code(), Some(0), "{}", run.log());
    assert_eq!(read_saved(folder.path()).len(), 3);
}
