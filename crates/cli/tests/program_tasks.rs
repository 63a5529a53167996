//! `webgym rollout judge=program` with real Chromium: tasks with a setup script and checks, and tasks that
//! `webgym tasks import miniwob` creates.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed helper fails its test")]

use std::{collections::HashMap, path::Path, process::Command, time::Duration};

use proto::trajectory::{Evaluation, Outcome, TaskId, Trajectory};
use serde_json::{Value, json};
use store::{IterationFile, IterationId, SavePath, Split};
use testkit::{
    RecordingServer, Served, Webgym,
    sim_model::{ModelReply, ModelRequest, SimModel},
};

const LIMIT: Duration = Duration::from_secs(180);

async fn collect(folder: &Path, policy: &SimModel, more: &[&str]) -> HashMap<String, Trajectory> {
    let own = [
        format!("save_path={}", folder.join("run").display()),
        format!("data_path={}", folder.display()),
        format!("env_config.vllm_server_url={}", policy.url()),
    ];
    let fixed = [
        "--quiet",
        "rollout",
        "--allow-private-network",
        "--config-name=rollout_test",
        "env_config.test_tasks=tasks.jsonl",
        "env_config.test_tasks_rollout_size=0",
        "env_config.server_size=2",
        "judge=program",
    ];
    let arguments: Vec<&str> =
        fixed.iter().copied().chain(more.iter().copied()).chain(own.iter().map(String::as_str)).collect();
    let mut run = Webgym::spawn(env!("CARGO_BIN_EXE_webgym"), &arguments);
    let status = run.wait_for_exit(LIMIT).await;
    assert_eq!(status.code(), Some(0), "{}", run.log());
    let save_path = SavePath::new(folder.join("run"));
    let file = IterationFile::open(&save_path.iteration_file(IterationId::new(Split::Test, 0))).unwrap();
    let read = |index| {
        let trajectory = file.read(index).unwrap();
        let Some(TaskId::Text(id)) = trajectory.task.task_id.clone() else { panic!("an id") };
        (id, trajectory)
    };
    (0..file.summaries().len()).map(read).collect()
}

fn outcome(trajectory: &Trajectory) -> (Outcome, i64, Option<f64>) {
    let reward = trajectory.steps.last().map_or(0, |step| step.reward.reward);
    let score = trajectory.metadata.extra.get("score").and_then(Value::as_f64);
    (trajectory.metadata.outcome.unwrap(), reward, score)
}

fn reason(trajectory: &Trajectory) -> &str {
    match &trajectory.steps.last().unwrap().reward.evaluation {
        Evaluation::Text(text) => text,
        Evaluation::Texts(texts) => &texts[0],
    }
}

/// A page with the interface of MiniWoB's `core.js`. The left half is the right button, and the right half the wrong one.
const CLICK_HALF: &str = r#"<!doctype html><title>Click half</title><body style="margin: 0">
<div id="query">Wait for the seed.</div>
<button style="position: fixed; left: 0; top: 40px; width: 50%; height: 90%" onclick="core.endEpisode(1)">left</button>
<button style="position: fixed; left: 50%; top: 40px; width: 50%; height: 90%" onclick="core.endEpisode(-1)">right</button>
<script>
var WOB_RAW_REWARD_GLOBAL = 0, WOB_DONE_GLOBAL = false, WOB_TASK_READY = false;
var core = {cover_div: null, EPISODE_MAX_TIME: 10000, timer: null};
Math.seedrandom = (seed) => { core.seed = seed; };
core.startEpisode = () => {
  core.cover_div ??= document.body.appendChild(document.createElement("div"));
  core.cover_div.textContent = "START";
  core.cover_div.style = "position: fixed; inset: 0; background: green";
  core.cover_div.onclick = () => core.startEpisodeReal();
};
core.startEpisodeReal = () => {
  document.getElementById("query").textContent = "Click left, seed " + core.seed;
  [WOB_RAW_REWARD_GLOBAL, WOB_DONE_GLOBAL] = [0, false];
  core.cover_div.style.display = "none";
  core.timer = setTimeout(() => core.endEpisode(-1), core.EPISODE_MAX_TIME);
  requestAnimationFrame(() => { WOB_TASK_READY = true; });
};
core.endEpisode = (reward) => {
  if (core.timer === null) return;
  clearTimeout(core.timer);
  core.timer = null;
  [WOB_RAW_REWARD_GLOBAL, WOB_DONE_GLOBAL] = [reward, true];
  core.startEpisode();
};
window.onload = () => core.startEpisode();
</script>"#;

/// Clicks left with seed 0, right and then twice left with seed 1, and nothing with seed 2.
fn click_half(request: &ModelRequest) -> ModelReply {
    let (left, right) = (ModelReply::click(250, 500), ModelReply::click(750, 500));
    let seed =
        (0..3).find(|seed| request.text.contains(&format!("?seed={seed}"))).expect("a seed in the prompt");
    let step = request.step();
    if step == 1 {
        assert!(request.text.contains(&format!("Click left, seed {seed}")), "{}", request.text);
    }
    match (seed, step) {
        (1, 1) => right,
        (0, 1) | (1, 2 | 3) => left,
        _ => ModelReply::answer("done"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn miniwob_reward_scores_the_first_episode_of_the_page() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("html/miniwob");
    std::fs::create_dir_all(&pages).unwrap();
    std::fs::write(pages.join("click-half.html"), CLICK_HALF).unwrap();
    let site = RecordingServer::start().await;
    site.serve("/miniwob/click-half.html", Served::Page(CLICK_HALF.to_owned()));
    let base_url = format!("http://{}", site.address);
    let output = folder.path().join("tasks.jsonl");
    let imported = Command::new(env!("CARGO_BIN_EXE_webgym"))
        .args(["tasks", "import", "miniwob", "--seeds", "3", "--base-url", &base_url, "-o"])
        .args([&output, &folder.path().join("html")])
        .output()
        .unwrap();
    assert!(imported.status.success(), "{imported:?}");
    assert!(String::from_utf8_lossy(&imported.stdout).starts_with("3 tasks written to "), "{imported:?}");
    let policy = SimModel::start(click_half).await;
    let trajectories = collect(folder.path(), &policy, &["context_config.page_text_lines=20"]).await;
    assert_eq!(outcome(&trajectories["click-half-0"]), (Outcome::Success, 1, Some(1.0)));
    assert_eq!(
        outcome(&trajectories["click-half-1"]),
        (Outcome::Failure, 0, Some(0.0)),
        "a second try does not count"
    );
    assert_eq!(outcome(&trajectories["click-half-2"]), (Outcome::Failure, 0, Some(0.0)));
}

fn task(id: &str, website: &str, more: &Value) -> String {
    let mut task = json!({
        "task_id": id, "task_name": format!("task {id}."), "website": website, "domain": "d", "subdomain": "s", "difficulty": 1,
    });
    task.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    task.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_see_the_last_page_and_failures_are_no_rewards() {
    let folder = tempfile::tempdir().unwrap();
    let site = RecordingServer::start().await;
    let page = |body: &str| Served::Page(format!("<!doctype html><title>t</title><h1>{body}</h1>"));
    site.serve("/start", page("<a href='/done?a=1&b=2' style='position: fixed; inset: 0'>Order</a>"));
    site.serve("/done", page("Order   placed"));
    let (start, done) = (format!("http://{}/start", site.address), format!("http://{}/done", site.address));
    let lines = [
        task("url", &start, &json!({"judge": {"url": format!("{done}?b=2&a=1"), "text": "order placed"}})),
        task("wrong url", &start, &json!({"judge": {"url": start}})),
        task(
            "script",
            &start,
            &json!({"judge": {"javascript": "document.title === 't' && answer === '42' // done"}}),
        ),
        task(
            "part",
            &start,
            &json!({"judge": {"javascript": "new Promise(end => setTimeout(end, 10, 0.5))"}}),
        ),
        task(
            "setup",
            &start,
            &json!({
                "setup": "sessionStorage.prepared = await Promise.resolve('yes');",
                "judge": {"javascript": "sessionStorage.prepared === 'yes'"},
            }),
        ),
        task("thrown", &start, &json!({"judge": {"javascript": "no.such.thing"}})),
        task("endless", &start, &json!({"judge": {"javascript": "(() => { for (;;); })()"}})),
        task("bad setup", &start, &json!({"setup": "throw new Error('not ready');", "judge": {"url": "*"}})),
        task("command", &start, &json!({"definite_answer": "42"})),
    ];
    std::fs::write(folder.path().join("tasks.jsonl"), lines.join("\n")).unwrap();
    let policy = SimModel::start(|request: &ModelRequest| match request.step() {
        1 => ModelReply::click(500, 500),
        _ => ModelReply::answer("42"),
    })
    .await;
    let script = "cat >given.json; echo '{\"reward\": 1}'";
    std::fs::write(folder.path().join("judge.sh"), format!("cd {}; {script}", folder.path().display()))
        .unwrap();
    let command = format!("program_config.command=[sh, {}]", folder.path().join("judge.sh").display());
    let found = collect(folder.path(), &policy, &[&command, "program_config.timeout=10"]).await;
    let success = (Outcome::Success, 1, Some(1.0));
    for id in ["url", "script", "setup", "command"] {
        assert_eq!(outcome(&found[id]), success, "{id}: {}", reason(&found[id]));
    }
    assert_eq!(outcome(&found["wrong url"]), (Outcome::Failure, 0, Some(0.0)));
    assert_eq!(outcome(&found["part"]), (Outcome::Failure, 0, Some(0.5)));
    for (id, expected) in [("thrown", "ReferenceError: no is not defined"), ("endless", "in")] {
        assert_eq!(outcome(&found[id]), (Outcome::JudgeError, 0, None), "{id}");
        assert!(reason(&found[id]).contains(expected), "{}", reason(&found[id]));
    }
    assert_eq!(outcome(&found["bad setup"]), (Outcome::InfraLost, 0, None));
    assert!(reason(&found["bad setup"]).contains("setup failed: the script failed: Error: not ready"));
    let given: Value =
        serde_json::from_slice(&std::fs::read(folder.path().join("given.json")).unwrap()).unwrap();
    assert_eq!((&given["answer"], &given["task"]["task_id"]), (&json!("42"), &json!("command")));
    assert!(given["url"].as_str().unwrap().starts_with(&done), "{given}");
    assert!(!Path::new(given["trajectory"].as_str().unwrap()).exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn command_of_a_task_file_needs_permission() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("ran");
    let check = json!({"judge": {"command": ["touch", mark]}});
    std::fs::write(folder.path().join("tasks.jsonl"), task("evil", "http://127.0.0.1:9/", &check)).unwrap();
    let policy = SimModel::start(|_: &ModelRequest| ModelReply::answer("42")).await;
    let url = format!("env_config.vllm_server_url={}", policy.url());
    let (save_path, data_path) = (
        format!("save_path={}", folder.path().join("run").display()),
        format!("data_path={}", folder.path().display()),
    );
    let fixed =
        ["rollout", "--config-name=rollout_test", "env_config.test_tasks=tasks.jsonl", "judge=program"];
    let run = Command::new(env!("CARGO_BIN_EXE_webgym"))
        .args(fixed)
        .args([&url, &save_path, &data_path])
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(!run.status.success());
    assert!(message.contains("the task \"task evil.\": judge.command"), "{message}");
    assert!(message.contains("program_config.allow_task_commands=true"), "{message}");
    assert!(!mark.exists());
}
