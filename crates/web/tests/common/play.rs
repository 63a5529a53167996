//! A run that is only played: tasks with names and sites, a board, and episodes that go through their stages as far as
//! the test says.

#![allow(
    clippy::cast_possible_wrap,
    clippy::unwrap_used,
    dead_code,
    reason = "a helper of tests; each uses its part"
)]

use std::{path::PathBuf, sync::Arc};

use client::farm::{FarmClient, FarmOptions};
use proto::trajectory::{Outcome, Task, TaskId};
use rollout::run::{
    event::{Event, Listener, Stage},
    state::Board,
};
use web::monitor::{About, Monitor, Watched};

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

/// A farm that only answers `/info`: nodes by address, capacity, and how many of their slots are in use.
pub(crate) async fn farm(nodes: &'static [(&'static str, usize, usize)]) -> FarmClient {
    let told: Vec<_> = nodes
        .iter()
        .map(|(url, capacity, used)| {
            let instances: Vec<_> = (0..*used).map(|number| format!("{number}:9000")).collect();
            serde_json::json!({"url": url, "hash": url, "healthy": true, "capacity": capacity, "available": capacity - used,
                "instances": instances, "starting": 0, "dead": 0})
        })
        .collect();
    let routes = axum::Router::new()
        .route("/info", axum::routing::get(async move || axum::Json(serde_json::json!({"nodes": told}))));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, routes).await });
    FarmClient::new(&url, "key", FarmOptions::default()).unwrap()
}

/// A board and what can be done to it.
#[derive(Clone)]
pub(crate) struct Play {
    pub(crate) board: Arc<Board>,
}

impl Play {
    pub(crate) fn new(tasks: usize) -> Self {
        Self::of(&(0..tasks).map(task).collect::<Vec<_>>())
    }

    pub(crate) fn of(tasks: &[Task]) -> Self {
        Self { board: Arc::new(Board::of_tasks(tasks, [])) }
    }

    pub(crate) fn watched(&self) -> Watched {
        let about = About {
            name: "first-run".into(),
            split: "train".into(),
            iteration: 3,
            model: "qwen3-vl-8b".into(),
            judge: "reference".into(),
            version: "0.1.0".into(),
        };
        Watched { board: Arc::clone(&self.board), about, policy: None, judge_places: 64, farm: None }
    }

    pub(crate) async fn monitor(&self) -> Monitor {
        Monitor::start(self.watched(), ([127, 0, 0, 1], 0).into(), None).await.unwrap()
    }

    /// The next stage of an episode.
    pub(crate) fn at(&self, index: usize, step: usize, stage: Stage) {
        self.board.event(&Event::Stage { index, step, stage });
    }

    pub(crate) fn took(&self, stage: Stage, millis: u64) {
        self.board.event(&Event::Took { stage, time: std::time::Duration::from_millis(millis) });
    }

    pub(crate) fn sees(&self, index: usize, url: &str, picture: impl Into<PathBuf>) {
        self.board.event(&Event::Seen { index, url: url.into(), picture: picture.into() });
    }

    pub(crate) fn decides(&self, index: usize, action: &str, thought: &str) {
        self.board.event(&Event::Decided { index, action: action.into(), thought: thought.into() });
        self.board.event(&Event::StepDone { index });
    }

    pub(crate) fn board_trouble(&self, index: usize, why: &str) {
        self.board.event(&Event::Trouble { index, stage: Stage::Execute, why: why.into() });
    }

    pub(crate) fn ends(&self, index: usize, outcome: Outcome) {
        self.board.event(&Event::Finished { index, outcome, steps: 4 });
    }
}
