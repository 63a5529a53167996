//! The page of a training loop: its iterations and phases, what runs now, success over iterations, and failures. Reads the
//! files of a save path through `store` and never changes them, so it works for running, killed and finished loops alike.

mod feed;
mod liveness;
mod log_tail;
mod snapshot;
mod success;

use std::sync::{Arc, Mutex, PoisonError};

use axum::{
    Json, Router,
    body::Body,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use serde_json::json;
use store::{
    SavePath,
    loop_state::{LoopState, LoopStatus},
};

pub use liveness::Liveness;
pub use snapshot::{LoopSummary, Snapshot};

use crate::page::{self, Page};
use feed::LoopFeed;
use liveness::Observer;
use success::SuccessRates;

/// The loop of a save path, as its page shows it.
#[derive(Debug)]
pub struct LoopView {
    save_path: SavePath,
    /// Whether the page of a run is served beside this one.
    has_run_page: bool,
    observer: Mutex<Observer>,
    success: Mutex<SuccessRates>,
}

impl LoopView {
    pub fn new(save_path: SavePath, has_run_page: bool) -> Self {
        Self { save_path, has_run_page, observer: Mutex::default(), success: Mutex::default() }
    }

    /// Returns whether the save path has a loop, readable or not.
    pub fn has_loop(&self) -> bool {
        LoopState::path(&self.save_path).exists()
    }

    /// Reads the loop. Blocks.
    pub fn snapshot(&self) -> Snapshot {
        let name = self.save_path.root().file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (state, problem) = match LoopState::read(&self.save_path) {
            Ok(state) => (state.map(|state| self.summary(&state)), None),
            Err(error) => (None, Some(error.to_string())),
        };
        let save_path = self.save_path.root().display().to_string();
        Snapshot { name, save_path, has_run_page: self.has_run_page, problem, state }
    }

    fn summary(&self, state: &LoopState) -> LoopSummary {
        let lock = |mutex| Mutex::lock(mutex).unwrap_or_else(PoisonError::into_inner);
        let is_running = state.status == LoopStatus::Running;
        let liveness = is_running.then(|| lock(&self.observer).liveness(&self.save_path, state));
        let success =
            self.success.lock().unwrap_or_else(PoisonError::into_inner).of_save_path(&self.save_path);
        LoopSummary::new(state, &self.save_path, liveness, success)
    }
}

/// Returns the page of a loop at `/` and its data.
pub fn router(view: LoopView) -> Router {
    let health = Router::new().route("/healthz", get(async || Json(json!({"status": "ok"}))));
    page::router(Page::Loop).merge(api(Arc::new(view))).merge(health)
}

/// Returns the routes of the page's data.
pub(crate) fn api(view: Arc<LoopView>) -> Router {
    Router::new()
        .route("/api/loop", get(latest))
        .route("/api/loop/events", get(events))
        .with_state(LoopFeed::new(view))
}

async fn latest(State(feed): State<Arc<LoopFeed>>) -> Response {
    match feed.read().await {
        Some(snapshot) => ([(header::CACHE_CONTROL, "no-store")], Json(snapshot)).into_response(),
        None => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

async fn events(State(feed): State<Arc<LoopFeed>>) -> Response {
    let Some(stream) = feed.subscribe() else {
        let body = json!({"detail": "too many pages have this loop open; close some of them"});
        return (StatusCode::SERVICE_UNAVAILABLE, Json(body)).into_response();
    };
    page::event_stream(Body::from_stream(stream))
}
