//! The live monitor of a run: a page, a stream of what changes, single tasks up close, and the figures that Prometheus
//! reads. Only looks at the board; nothing in the run ever waits for whoever watches.

mod closer;
mod feed;
mod figures;
mod frame;
mod nodes;
mod relay;

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
use rollout::run::state::Board;
use serde::Serialize;
use serde_json::json;

pub use relay::{RelayError, relay};

use crate::page::{self, Entry, Place};
use feed::Feed;

/// What a run is, in words for the page's head.
#[derive(Clone, Debug, Default, Serialize)]
pub struct About {
    pub name: String,
    pub split: String,
    pub iteration: u64,
    pub model: String,
    pub judge: String,
    pub version: String,
}

/// What there is to watch.
pub struct Watched {
    pub board: Arc<Board>,
    pub about: About,
    pub policy: Option<ModelClient>,
    /// Episodes that may be judged at once.
    pub judge_places: usize,
    pub farm: Option<FarmClient>,
}

/// A monitor that is served until it is dropped.
pub struct Monitor {
    feed: Arc<Feed>,
    place: Place,
}

impl Monitor {
    pub async fn start(
        watched: Watched,
        address: SocketAddr,
        token: Option<String>,
    ) -> std::io::Result<Self> {
        let feed = Feed::new(watched);
        let place = page::serve(address, token, routes(Arc::clone(&feed))).await?;
        Ok(Self { feed, place })
    }

    pub fn link(&self) -> String {
        self.place.link()
    }

    /// For logs.
    pub fn shown_link(&self) -> String {
        self.place.shown_link()
    }

    pub fn address(&self) -> SocketAddr {
        self.place.address()
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.feed.close();
    }
}

fn routes(feed: Arc<Feed>) -> Router {
    Router::new()
        .route("/api/events", get(events))
        .route("/api/tasks", get(closer::tasks))
        .route("/api/task/{place}", get(closer::task))
        .route("/api/task/{place}/picture", get(closer::picture))
        .route("/metrics", get(metrics))
        .route("/status", get(status))
        .route("/healthz", get(async || Json(json!({"status": "ok"}))))
        .with_state(feed)
        .merge(page::router(Entry::Monitor))
}

async fn events(State(feed): State<Arc<Feed>>, headers: HeaderMap) -> Response {
    let last = headers.get("last-event-id").and_then(|value| value.to_str().ok());
    let Some(stream) = feed.subscribe(last) else {
        return (StatusCode::SERVICE_UNAVAILABLE, Json(json!({"detail": "too many are watching already"})))
            .into_response();
    };
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
        // A reverse proxy that collects an answer before it passes it on would show nothing at all.
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, Body::from_stream(stream)).into_response()
}

async fn metrics(State(feed): State<Arc<Feed>>) -> impl IntoResponse {
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], figures::prometheus(&feed.watched().board))
}

async fn status(State(feed): State<Arc<Feed>>) -> impl IntoResponse {
    Json(figures::status(&feed.watched().board))
}
