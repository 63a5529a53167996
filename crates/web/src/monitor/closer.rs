//! Single tasks: the list of what they are, and one up close with its latest picture.

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
use proto::trajectory::Outcome;
use rollout::run::state::{Facts, Trace};
use serde_json::{Value, json};

use super::feed::Feed;

/// Of a task's words in the list; all of them are shown up close.
const NAME_IN_LIST: usize = 160;

pub(super) async fn tasks(State(feed): State<Arc<Feed>>) -> Response {
    let body = feed.tasks(|| list(&feed).to_string().into());
    ([(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")], body).into_response()
}

/// By column, and words that come again and again only once: ten thousand tasks are a short list this way.
fn list(feed: &Feed) -> Value {
    let watched = feed.watched();
    let facts = watched.board.facts();
    json!({
        "run": feed.run(), "about": watched.about,
        "index": facts.iter().map(|facts| facts.index).collect::<Vec<_>>(),
        "id": facts.iter().map(|facts| facts.task_id.as_str()).collect::<Vec<_>>(),
        "name": facts.iter().map(|facts| cut(&facts.name)).collect::<Vec<_>>(),
        "difficulty": facts.iter().map(|facts| facts.difficulty).collect::<Vec<_>>(),
        "domain": dictionary(facts, |facts| &facts.domain),
        "website": dictionary(facts, |facts| &facts.website),
    })
}

fn dictionary(facts: &[Facts], of: impl Fn(&Facts) -> &String) -> Value {
    let (mut names, mut known) = (Vec::new(), HashMap::new());
    let of: Vec<usize> = facts
        .iter()
        .map(|facts| {
            let name = of(facts).as_str();
            *known.entry(name).or_insert_with(|| {
                names.push(name);
                names.len() - 1
            })
        })
        .collect();
    json!({"names": names, "of": of})
}

fn cut(text: &str) -> &str {
    text.char_indices().nth(NAME_IN_LIST).map_or(text, |(end, _)| &text[..end])
}

pub(super) async fn task(State(feed): State<Arc<Feed>>, Path(place): Path<usize>) -> Response {
    let board = &feed.watched().board;
    let (Some(facts), Some((cell, trace))) = (board.facts().get(place), board.closer(place)) else {
        return missing("there is no such task");
    };
    let known = trace.is_some();
    let Trace { steps, forgotten, url, pictures, picture, trouble } = trace.unwrap_or_default();
    let steps: Vec<Value> = steps
        .iter()
        .map(|step| json!({"action": step.action, "thought": step.thought, "url": step.url}))
        .collect();
    let body = json!({
        "place": place, "index": facts.index, "id": facts.task_id, "name": facts.name, "domain": facts.domain,
        "website": facts.website, "difficulty": facts.difficulty, "max_steps": facts.max_steps,
        "stage": cell.stage.as_str(), "waits_for": cell.stage.waits_for(), "step": cell.step, "attempt": cell.attempt,
        "outcome": cell.outcome.map(Outcome::as_str), "known": known, "steps": steps, "forgotten": forgotten,
        "url": url, "trouble": trouble, "picture": picture.map(|_| pictures),
    });
    ([(header::CACHE_CONTROL, "no-store")], Json(body)).into_response()
}

/// The latest picture. Its path comes from the run itself, never from who asks.
pub(super) async fn picture(
    State(feed): State<Arc<Feed>>,
    Path(place): Path<usize>,
    headers: HeaderMap,
) -> Response {
    let Some(path) = feed.watched().board.picture(place) else {
        return missing("there is no picture of this task yet");
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
        Ok(bytes) => (caching, [(header::CONTENT_TYPE, "image/png")], bytes).into_response(),
        Err(_) => missing("the picture is gone: its attempt was lost"),
    }
}

fn missing(why: &str) -> Response {
    (StatusCode::NOT_FOUND, Json(json!({"status": "error", "detail": why}))).into_response()
}
