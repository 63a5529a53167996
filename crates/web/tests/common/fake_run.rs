//! A simulated run: tasks with names and websites, the run's state, and episodes that go through the stages that the test
//! reports.

#![allow(
    clippy::cast_possible_wrap,
    clippy::unwrap_used,
    dead_code,
    reason = "test helpers; each test uses some of them"
)]

use std::{path::PathBuf, sync::Arc};

use client::farm::{FarmClient, FarmClientOptions, LiveUrl};
use proto::{
    network::NetworkSummary,
    trajectory::{Outcome, Task, TaskId},
};
use rollout::run::{
    event::{Event, Listener, Stage},
    state::{RunState, TaskInfo},
};
use web::monitor::{Monitor, MonitoredRun, RunInfo};

const SITES: [(&str, &str); 5] = [
    ("Shopping", "https://shop.example/"),
    ("Jobs", "https://jobs.example/"),
    ("Encyclopedia", "https://wiki.example/"),
    ("Travel", "https://trains.example/"),
    ("Forum", "https://forum.example/"),
];

pub(crate) fn task(index: usize) -> Task {
    let (domain, website) = SITES[index % SITES.len()];
    Task {
        task_name: format!(
            "Find the {}th lamp under 40 that ships tomorrow and say what it costs",
            index + 1
        ),
        domain: domain.into(),
        subdomain: String::new(),
        website: website.into(),
        difficulty: 1 + (index as i64 * 7 + 3) % 10,
        evaluator_reference: Vec::new(),
        reference_answer: None,
        attempt_level: 0,
        task_id: Some(TaskId::Text(format!("lamp-{index}"))),
        max_steps: 15,
        trajectory_index: index as i64,
        extra: serde_json::Map::new(),
    }
}

/// Starts a farm that only answers `/info`. Each node is given as its URL, capacity and number of slots in use.
pub(crate) async fn farm(nodes: &'static [(&'static str, usize, usize)]) -> FarmClient {
    let nodes: Vec<_> = nodes
        .iter()
        .map(|(url, capacity, used)| {
            let instances: Vec<_> = (0..*used).map(|number| format!("{number}:9000")).collect();
            serde_json::json!({"url": url, "hash": url, "healthy": true, "capacity": capacity, "available": capacity - used,
                "instances": instances, "starting": 0, "dead": 0})
        })
        .collect();
    let routes = axum::Router::new()
        .route("/info", axum::routing::get(async move || axum::Json(serde_json::json!({"nodes": nodes}))));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, routes).await });
    FarmClient::new(&url, "key", FarmClientOptions::default()).unwrap()
}

/// A run whose events are reported by the test.
#[derive(Clone)]
pub(crate) struct FakeRun {
    pub(crate) state: Arc<RunState>,
}

impl FakeRun {
    pub(crate) fn new(tasks: usize) -> Self {
        Self::of(&(0..tasks).map(task).collect::<Vec<_>>())
    }

    pub(crate) fn of(tasks: &[Task]) -> Self {
        Self { state: Arc::new(RunState::of_tasks(tasks, [])) }
    }

    /// A run without a plan, which tasks join.
    pub(crate) fn open_ended() -> Self {
        Self { state: Arc::new(RunState::open_ended()) }
    }

    pub(crate) fn add(&self, index: usize) {
        let task = TaskInfo::of(&task(index), index);
        self.state.on_event(&Event::TaskAdded { task: Box::new(task) });
    }

    pub(crate) fn monitored(&self) -> MonitoredRun {
        let info = RunInfo {
            name: "first-run".into(),
            split: "train".into(),
            iteration: Some(3),
            model: "qwen3-vl-8b".into(),
            judge: "reference".into(),
            version: "0.1.0".into(),
        };
        MonitoredRun {
            run: Arc::clone(&self.state),
            info,
            policy: None,
            judge_slots: 64,
            farm: None,
            save_path: None,
        }
    }

    pub(crate) async fn monitor(&self) -> Monitor {
        Monitor::start(self.monitored(), ([127, 0, 0, 1], 0).into(), None).await.unwrap()
    }

    /// Moves an episode to a stage of a step.
    pub(crate) fn enter_stage(&self, index: usize, step: usize, stage: Stage) {
        self.state.on_event(&Event::Stage { index, step, stage });
    }

    pub(crate) fn record_duration(&self, stage: Stage, millis: u64) {
        self.state.on_event(&Event::StageTimed { stage, duration: std::time::Duration::from_millis(millis) });
    }

    pub(crate) fn record_page(&self, index: usize, url: &str, screenshot: impl Into<PathBuf>) {
        self.state.on_event(&Event::Observed { index, url: url.into(), screenshot: screenshot.into() });
    }

    /// Records that an episode has acquired a browser that can be watched, or has released it.
    pub(crate) fn set_browser(&self, index: usize, live_url: Option<&str>) {
        let live_url = live_url.and_then(LiveUrl::new);
        self.state.on_event(&Event::BrowserChanged { index, live_url });
    }

    pub(crate) fn record_decision(&self, index: usize, action: &str, thought: &str) {
        self.state.on_event(&Event::Decided { index, action: action.into(), thought: thought.into() });
        self.state.on_event(&Event::StepDone { index });
    }

    pub(crate) fn record_failure(&self, index: usize, reason: &str) {
        self.state.on_event(&Event::StageFailed { index, stage: Stage::Execute, reason: reason.into() });
    }

    pub(crate) fn report_network(&self, index: usize, summary: NetworkSummary) {
        self.state.on_event(&Event::NetworkReported { index, summary: Box::new(summary) });
    }

    pub(crate) fn finish(&self, index: usize, outcome: Outcome) {
        self.state.on_event(&Event::Finished { index, outcome, steps: 4 });
    }
}
