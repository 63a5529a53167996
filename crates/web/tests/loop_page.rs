//! The page of a training loop: its data for running, killed, finished, damaged and missing loops, and the page itself in a real
//! Chromium.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod common;
#[path = "common/fake_run.rs"]
mod fake_run;

use axum::{Router, body::Body, http::Request};
use common::Tab;
use fake_run::FakeRun;
use serde_json::{Value, json};
use store::{
    SavePath,
    loop_state::{FORMAT, Failure, Heartbeat, IterationState, LoopState, LoopStatus, Phase, PhaseStatus},
};
use tower::ServiceExt;
use web::{
    monitor::Monitor,
    server::{self, PageServer},
    training_loop::{self, LoopView},
};

struct TestLoop {
    _folder: tempfile::TempDir,
    save_path: SavePath,
    state: LoopState,
}

impl TestLoop {
    /// A loop whose first iteration is done and whose second one collects.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let save_path = SavePath::new(folder.path());
        let mut state = LoopState {
            format: FORMAT,
            status: LoopStatus::Running,
            reason: None,
            run_id: "start".into(),
            first_iteration: 0,
            iterations_planned: 3,
            iterations: vec![
                IterationState::new(0, "base".into(), Phase::ALL),
                IterationState::new(1, "/runs/checkpoints/iteration_0".into(), Phase::ALL),
            ],
            dead_ranks: Vec::new(),
            last_failure: None,
        };
        for phase in &mut state.iterations[0].phases {
            phase.status = PhaseStatus::Done;
            (phase.started_at, phase.ended_at) =
                ("2026-11-18T06:00:00Z".parse().ok(), "2026-11-18T06:01:05Z".parse().ok());
        }
        state.iterations[0].checkpoint = Some("checkpoints/iteration_0".into());
        let second = &mut state.iterations[1].phases;
        second[0].status = PhaseStatus::Done;
        second[1].status = PhaseStatus::Running;
        second[1].started_at = Some(jiff::Timestamp::now());
        second[1].log = Some("loop/logs/iteration_1_collect.log".into());
        let test = Self { _folder: folder, save_path, state };
        test.write_file(
            "loop/logs/iteration_1_collect.log",
            "== 2026 KEY=secret webgym rollout\n7 of 10 <b>done</b>\n",
        );
        test.write();
        test
    }

    fn write(&self) {
        self.state.write(&self.save_path).unwrap();
    }

    fn write_file(&self, name: &str, text: &str) {
        let path = self.save_path.root().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn beat(&self, process: u32, beat: u64) {
        let heartbeat = Heartbeat { host: hostname(), process, beat, run_id: Some("start".into()) };
        let path = Heartbeat::path(&self.save_path, 0);
        store::durable::write_json(&path, &heartbeat, store::durable::Existing::Replace).unwrap();
    }

    fn routes(&self) -> Router {
        training_loop::router(LoopView::new(self.save_path.clone(), false))
    }

    async fn snapshot(&self) -> Value {
        let request = Request::get("/api/loop").body(Body::empty()).unwrap();
        let response = self.routes().oneshot(request).await.unwrap();
        assert_eq!(response.status(), 200);
        serde_json::from_slice(&axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap()).unwrap()
    }

    async fn serve(&self) -> PageServer {
        server::serve(([127, 0, 0, 1], 0).into(), None, self.routes()).await.unwrap()
    }
}

/// A process id that no process has: above the largest one of Linux.
const NO_PROCESS: u32 = 4_194_305;

#[tokio::test]
async fn running_loop_shows_phases_activity_and_checkpoint() {
    let test = TestLoop::new();
    test.beat(std::process::id(), 1);
    let found = test.snapshot().await;
    let state = &found["loop"];
    assert_eq!(
        (&state["status"], &state["liveness"]["state"]),
        (&json!("running"), &json!("alive")),
        "{found}"
    );
    assert_eq!(state["activity"]["phase"], "collect");
    assert_eq!(state["activity"]["attempt"], 1);
    assert_eq!(
        state["activity"]["log_lines"],
        json!(["7 of 10 <b>done</b>"]),
        "without the command and its keys"
    );
    assert_eq!(state["checkpoint"]["path"], "checkpoints/iteration_0");
    let train = &state["iterations"][0]["phases"][4];
    let duration = train["ended_at"].as_f64().unwrap() - train["started_at"].as_f64().unwrap();
    assert!((duration - 65.0).abs() < 0.001, "{duration}");
}

#[tokio::test]
async fn killed_loop_is_told_from_a_running_one() {
    let test = TestLoop::new();
    assert_eq!(test.snapshot().await["loop"]["liveness"]["state"], "unknown", "there is no heartbeat");
    test.beat(NO_PROCESS, 1);
    let found = test.snapshot().await;
    assert_eq!(
        found["loop"]["liveness"],
        json!({"state": "gone", "host": hostname(), "process": NO_PROCESS})
    );
}

fn hostname() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap().trim().to_owned()
}

#[tokio::test]
async fn ended_loop_needs_no_process_and_keeps_its_last_failure() {
    let mut test = TestLoop::new();
    test.beat(NO_PROCESS, 1);
    test.state.status = LoopStatus::Failed;
    test.state.reason = Some("iteration 1, collect: no farm".into());
    let at = "2026-11-18T06:02:00Z".parse().unwrap();
    let failure =
        Failure { iteration: 0, phase: Phase::Train, at, reason: "rolled back".into(), is_rollback: true };
    test.state.last_failure = Some(failure);
    test.write();
    let found = test.snapshot().await["loop"].clone();
    assert_eq!((&found["status"], &found["liveness"]), (&json!("failed"), &Value::Null));
    assert_eq!(found["reason"], "iteration 1, collect: no farm");
    assert_eq!(
        (&found["failure"]["phase"], &found["failure"]["is_rollback"]),
        (&json!("train"), &json!(true))
    );
}

#[tokio::test]
async fn damaged_and_missing_states_are_explained() {
    let test = TestLoop::new();
    test.write_file("loop/state.json", "{\"format\": 1, ");
    let found = test.snapshot().await;
    assert_eq!(found["loop"], Value::Null);
    let problem = found["problem"].as_str().unwrap();
    assert!(problem.contains("state.json is not the state of a loop"), "{problem}");
    std::fs::remove_file(LoopState::path(&test.save_path)).unwrap();
    let found = test.snapshot().await;
    assert_eq!((&found["loop"], &found["problem"]), (&Value::Null, &Value::Null));
}

#[tokio::test]
async fn log_outside_the_loop_is_not_shown() {
    let mut test = TestLoop::new();
    test.write_file("secret.txt", "secret\n");
    test.state.iterations[1].phases[1].log = Some("loop/logs/../../secret.txt".into());
    test.write();
    assert_eq!(test.snapshot().await["loop"]["activity"]["log_lines"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn page_follows_the_loop_until_it_is_killed() {
    common::require_built_pages();
    let mut test = TestLoop::new();
    test.beat(std::process::id(), 1);
    let server = test.serve().await;
    let tab = Tab::open().await;
    tab.visit(&server.link()).await;
    tab.wait_until("document.querySelector('[data-connection=live]')").await;
    tab.wait_until("document.querySelector('.activity[data-phase=collect]')?.textContent.includes('7 of 10 <b>done</b>')")
        .await;
    tab.wait_until("document.querySelector('[data-iteration=\"0\"]').textContent.includes('1 min 05 s')")
        .await;
    tab.wait_until("document.querySelector('[role=progressbar]').ariaValueText === '1 of 3 iterations done'")
        .await;
    test.state.iterations[1].phases[1].status = PhaseStatus::Done;
    test.state.iterations[1].phases[2].status = PhaseStatus::Running;
    test.state.iterations[1].phases[2].started_at = Some(jiff::Timestamp::now());
    test.write();
    tab.wait_until("document.querySelector('.activity[data-phase=evaluate]')").await;
    test.beat(NO_PROCESS, 2);
    tab.wait_until("document.querySelector('.notice')?.textContent.includes('does not exist any more')")
        .await;
    tab.wait_until("document.querySelector('[data-loop=running]').textContent === 'killed'").await;
    for scheme in ["light", "dark"] {
        tab.set_colour_scheme(scheme).await;
        tab.assert_accessible(&format!("killed loop, {scheme}")).await;
    }
    tab.assert_no_errors();
    tab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn page_waits_for_a_loop_and_explains_a_damaged_one() {
    common::require_built_pages();
    let test = TestLoop::new();
    let state = std::fs::read_to_string(LoopState::path(&test.save_path)).unwrap();
    std::fs::remove_file(LoopState::path(&test.save_path)).unwrap();
    let server = test.serve().await;
    let tab = Tab::open().await;
    tab.visit(&server.link()).await;
    tab.wait_until("document.querySelector('[data-state=none]')").await;
    test.write_file("loop/state.json", "nonsense");
    tab.wait_until("document.querySelector('[data-state=problem]')?.textContent.includes('state.json')")
        .await;
    test.write_file("loop/state.json", &state);
    tab.wait_until("document.querySelector('.iterations')").await;
    tab.assert_no_errors();
    tab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn run_of_a_loop_links_to_its_page_and_others_do_not() {
    common::require_built_pages();
    let test = TestLoop::new();
    test.beat(std::process::id(), 1);
    let run = FakeRun::new(4);
    let mut monitored = run.monitored();
    monitored.save_path = Some(test.save_path.clone());
    let monitor = Monitor::start(monitored, ([127, 0, 0, 1], 0).into(), None).await.unwrap();
    let tab = Tab::open().await;
    tab.visit(&monitor.link()).await;
    tab.wait_until("document.querySelector('.loop-link')").await;
    tab.click(".loop-link").await;
    tab.wait_until("document.querySelector('.activity[data-phase=collect]')").await;
    tab.click("a[href='./']").await;
    tab.wait_until("document.querySelector('.grid-box')").await;
    let other = FakeRun::new(4).monitor().await;
    tab.visit(&other.link()).await;
    tab.wait_until("document.querySelector('.run')").await;
    assert_eq!(tab.eval("document.querySelector('.loop-link')").await, Value::Null);
    tab.assert_no_errors();
    tab.close().await;
}
