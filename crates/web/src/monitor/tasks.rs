//! Single tasks: the list of all tasks of the run, and one task in detail with its latest screenshot.

use std::{
    collections::HashMap,
    fmt::Write as _,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use axum::{
    Json,
    extract::{Path, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use client::farm::LiveUrl;
use proto::{ImageFormat, trajectory::Outcome};
use rollout::run::state::{TaskInfo, Trace};
use serde_json::{Value, json};

use super::feed::Feed;

/// Characters of a task's name in the list; the detail view shows all of them.
const MAX_LISTED_NAME: usize = 160;

/// Serves the list of tasks.
pub(super) async fn list(State(feed): State<Arc<Feed>>) -> Response {
    let body = feed.task_list(|revision| encode_list(&feed, revision).to_string().into());
    ([(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")], body).into_response()
}

/// Encodes the list by column, with repeated names written once, so that ten thousand tasks stay small.
fn encode_list(feed: &Feed, revision: u64) -> Value {
    let monitored = feed.monitored();
    let tasks = monitored.run.tasks();
    json!({
        "run": feed.run_id(), "revision": revision, "about": monitored.info, "has_loop": feed.has_loop,
        "index": tasks.iter().map(|task| task.index).collect::<Vec<_>>(),
        "id": tasks.iter().map(|task| task.task_id.as_str()).collect::<Vec<_>>(),
        "name": tasks.iter().map(|task| truncate(&task.name)).collect::<Vec<_>>(),
        "difficulty": tasks.iter().map(|task| task.difficulty).collect::<Vec<_>>(),
        "domain": dictionary(&tasks, |task| &task.domain),
        "website": dictionary(&tasks, |task| &task.website),
    })
}

/// Encodes a column as its distinct names and, for each task, the number of its name.
fn dictionary(tasks: &[TaskInfo], column: impl Fn(&TaskInfo) -> &String) -> Value {
    let (mut names, mut known) = (Vec::new(), HashMap::new());
    let of: Vec<usize> = tasks
        .iter()
        .map(|task| {
            let name = column(task).as_str();
            *known.entry(name).or_insert_with(|| {
                names.push(name);
                names.len() - 1
            })
        })
        .collect();
    json!({"names": names, "of": of})
}

fn truncate(text: &str) -> &str {
    text.char_indices().nth(MAX_LISTED_NAME).map_or(text, |(end, _)| &text[..end])
}

/// Serves one task in detail: what it is, its state, and the steps of its current attempt.
pub(super) async fn detail(State(feed): State<Arc<Feed>>, Path(position): Path<usize>) -> Response {
    let run = &feed.monitored().run;
    let (Some(task), Some((cell, trace))) = (run.task(position), run.task_detail(position)) else {
        return not_found("there is no such task");
    };
    let known = trace.is_some();
    let Trace { steps, dropped_steps, url, screenshot_count, screenshot, failure, live_url, network } =
        trace.unwrap_or_default();
    let steps: Vec<Value> = steps
        .iter()
        .map(|step| json!({"action": step.action, "thought": step.thought, "url": step.url}))
        .collect();
    let body = json!({
        "position": position, "index": task.index, "id": task.task_id, "name": task.name, "domain": task.domain,
        "website": task.website, "difficulty": task.difficulty, "max_steps": task.max_steps,
        "stage": cell.stage.as_str(), "waits_for": cell.stage.waits_for(), "step": cell.step, "attempt": cell.attempt,
        "outcome": cell.outcome.map(Outcome::as_str), "known": known, "steps": steps, "dropped_steps": dropped_steps,
        "url": url, "failure": failure, "screenshot": screenshot.map(|_| screenshot_count),
        "live_url": live_url.as_ref().map(LiveUrl::as_str), "network": network,
    });
    ([(header::CACHE_CONTROL, "no-store")], Json(body)).into_response()
}

/// Serves the latest screenshot of a task. The run provides the file's path; the request only selects a task.
pub(super) async fn screenshot(
    State(feed): State<Arc<Feed>>,
    Path(position): Path<usize>,
    headers: HeaderMap,
) -> Response {
    let Some(path) = feed.monitored().run.latest_screenshot(position) else {
        return not_found("this task has no screenshot yet");
    };
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    let mut tag = String::new();
    let _ = write!(tag, "\"{:016x}\"", hasher.finish());
    let caching = [(header::ETAG, tag.clone()), (header::CACHE_CONTROL, "no-cache".to_owned())];
    if headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes()) {
        return (StatusCode::NOT_MODIFIED, caching).into_response();
    }
    match tokio::fs::read(path).await {
        Ok(bytes) => {
            let media_type = ImageFormat::of(&bytes).unwrap_or_default().mime();
            (caching, [(header::CONTENT_TYPE, media_type)], bytes).into_response()
        }
        Err(_) => not_found("the screenshot was deleted because its attempt was lost"),
    }
}

fn not_found(detail: &str) -> Response {
    (StatusCode::NOT_FOUND, Json(json!({"status": "error", "detail": detail}))).into_response()
}
