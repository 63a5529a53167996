//! The live monitor of a run: its page, the event stream of changes, single tasks in detail, and metrics for Prometheus.
//! Only reads the run's state; the run never waits for the monitor.

mod encoding;
mod feed;
mod metrics;
mod nodes;
mod relay;
mod status;
mod tasks;

use std::{net::SocketAddr, sync::Arc};

use axum::{
    Json, Router,
    body::Body,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use client::{chat::ModelClient, farm::FarmClient};
use rollout::run::state::RunState;
use serde::Serialize;
use serde_json::json;
use store::SavePath;

pub use relay::{RelayError, relay};

use crate::{
    page::{self, Page},
    server::{self, PageServer},
    training_loop::{self, LoopView},
};
use feed::Feed;

/// Names of a run and of its models, for the page's header.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RunInfo {
    pub name: String,
    pub split: String,
    /// Absent for a run whose splits have different iterations.
    pub iteration: Option<u64>,
    pub model: String,
    pub judge: String,
    pub version: String,
}

/// What a monitor reads: the state of a run and the clients whose load it shows.
pub struct MonitoredRun {
    pub run: Arc<RunState>,
    pub info: RunInfo,
    pub policy: Option<ModelClient>,
    /// Number of episodes that may be judged concurrently.
    pub judge_slots: usize,
    pub farm: Option<FarmClient>,
    /// Where the run saves. If a training loop works there, the monitor shows it, too.
    pub save_path: Option<SavePath>,
}

/// A running monitor; it stops when dropped.
pub struct Monitor {
    feed: Arc<Feed>,
    server: PageServer,
}

impl Monitor {
    /// Starts serving the monitor at `address` (port 0 picks a free one). Outside loopback a token is required: the given
    /// one, or a generated one that is part of [`Monitor::link`].
    pub async fn start(
        monitored: MonitoredRun,
        address: SocketAddr,
        token: Option<String>,
    ) -> std::io::Result<Self> {
        let loop_view = loop_of(&monitored);
        let feed = Feed::new(monitored, loop_view.is_some());
        let mut routes = routes(Arc::clone(&feed));
        if let Some(view) = loop_view {
            routes = routes.merge(training_loop::api(Arc::new(view))).merge(page::loop_page());
        }
        let server = server::serve(address, token, routes).await?;
        Ok(Self { feed, server })
    }

    /// Returns the link to open, with the token if one is required.
    pub fn link(&self) -> String {
        self.server.link()
    }

    /// Returns the link for logs, without a token that the user chose.
    pub fn shown_link(&self) -> String {
        self.server.shown_link()
    }

    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.feed.close();
    }
}

/// The loop that the run belongs to, if there is one.
fn loop_of(monitored: &MonitoredRun) -> Option<LoopView> {
    let view = LoopView::new(monitored.save_path.clone()?, true);
    view.has_loop().then_some(view)
}

fn routes(feed: Arc<Feed>) -> Router {
    Router::new()
        .route("/api/events", get(events))
        .route("/api/tasks", get(tasks::list))
        .route("/api/task/{position}", get(tasks::detail))
        .route("/api/task/{position}/screenshot", get(tasks::screenshot))
        .route("/metrics", get(run_metrics))
        .route("/status", get(run_status))
        .route("/healthz", get(async || Json(json!({"status": "ok"}))))
        .with_state(feed)
        .merge(page::router(Page::Monitor))
}

async fn events(State(feed): State<Arc<Feed>>, headers: HeaderMap) -> Response {
    let last_id = headers.get("last-event-id").and_then(|value| value.to_str().ok());
    let Some(stream) = feed.subscribe(last_id) else {
        let body = json!({"detail": "too many pages have this monitor open; close some of them"});
        return (StatusCode::SERVICE_UNAVAILABLE, Json(body)).into_response();
    };
    page::event_stream(Body::from_stream(stream))
}

async fn run_metrics(State(feed): State<Arc<Feed>>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], metrics::render(&feed.monitored().run))
}

async fn run_status(State(feed): State<Arc<Feed>>) -> impl IntoResponse {
    Json(status::summary(&feed.monitored().run))
}
