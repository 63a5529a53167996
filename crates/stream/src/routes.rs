//! The requests of a consumer: items, acknowledgments, pauses and the state of the stream.

use std::{sync::Arc, time::Duration};

use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::{DefaultBodyLimit, RawQuery, State},
    http::{HeaderMap, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::{
    error::RequestError,
    feed::{Feed, FeedOptions},
    item::Format,
    parameters::Parameters,
    shared::Shared,
};

const MAX_CONSUMERS: usize = 8;
const MAX_BODY_BYTES: usize = 64 << 10;
const MAX_WAIT_SECONDS: u64 = 3600;
const DEFAULT_PAUSE: Duration = Duration::from_secs(300);
const MAX_PAUSE_SECONDS: u64 = 3600;

/// The state of the routes.
#[derive(Clone)]
struct Routes {
    shared: Arc<Shared>,
    consumers: Arc<Semaphore>,
}

pub(crate) fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/stream", get(stream))
        .route("/ack", post(acknowledge))
        .route("/pause", post(pause))
        .route("/resume", post(resume))
        .route("/status", get(status))
        .route("/healthz", get(async || Json(json!({"status": "ok"}))))
        .fallback(async || RequestError::NotFound)
        .method_not_allowed_fallback(async || RequestError::Method)
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(Routes { shared, consumers: Arc::new(Semaphore::new(MAX_CONSUMERS)) })
}

fn parameters(query: Option<String>, body: &[u8], accepted: &[&str]) -> Result<Parameters, RequestError> {
    Parameters::read(&query.unwrap_or_default(), body, accepted).map_err(RequestError::Invalid)
}

async fn stream(
    State(routes): State<Routes>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, RequestError> {
    let given = parameters(query, b"", &["after", "limit", "wait", "images", "format"])?;
    let options = feed_options(&routes.shared, &given, &headers)?;
    let consumer = Arc::clone(&routes.consumers)
        .try_acquire_owned()
        .map_err(|_| RequestError::TooManyConsumers { max: MAX_CONSUMERS })?;
    let headers = [
        (header::CONTENT_TYPE, options.format.content_type()),
        (header::CACHE_CONTROL, "no-store"),
        // Keeps nginx from buffering the stream, which would delay every item.
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    let feed = Feed::start(routes.shared, options, consumer);
    Ok((headers, Body::from_stream(feed)).into_response())
}

fn feed_options(
    shared: &Shared,
    given: &Parameters,
    headers: &HeaderMap,
) -> Result<FeedOptions, RequestError> {
    let after = match given.text("after") {
        Some(cursor) => shared.position_of(cursor)?,
        None => shared.progress.borrow().acknowledged,
    };
    let invalid = RequestError::Invalid;
    let limit = given.parse::<u64>("limit", "a number of items from 1").map_err(invalid)?;
    if limit == Some(0) {
        return Err(invalid("limit is 0; it must be a number of items from 1".to_owned()));
    }
    Ok(FeedOptions {
        first: after + 1,
        limit,
        wait: given.seconds("wait", MAX_WAIT_SECONDS).map_err(invalid)?,
        format: format(given.text("format"), headers)?,
        with_images: given.flag("images").map_err(invalid)?,
    })
}

/// Returns the format that the query names, or else the one that the client accepts.
fn format(named: Option<&str>, headers: &HeaderMap) -> Result<Format, RequestError> {
    let accepts = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match named {
        Some("ndjson") => Ok(Format::Ndjson),
        Some("msgpack") => Ok(Format::Msgpack),
        Some(other) => {
            Err(RequestError::Invalid(format!("format is {other:?}; it must be ndjson or msgpack")))
        }
        None if accepts.contains("msgpack") => Ok(Format::Msgpack),
        None => Ok(Format::Ndjson),
    }
}

async fn acknowledge(
    State(routes): State<Routes>,
    RawQuery(query): RawQuery,
    body: Bytes,
) -> Result<Json<Value>, RequestError> {
    let given = parameters(query, &body, &["cursor"])?;
    let Some(cursor) = given.text("cursor") else {
        return Err(RequestError::Invalid(
            "cursor is missing: the cursor of the last item that you took".into(),
        ));
    };
    let shared = routes.shared;
    let position = shared.position_of(cursor)?;
    let acknowledging = Arc::clone(&shared);
    let stored = tokio::task::spawn_blocking(move || acknowledging.acknowledge(position)).await;
    stored.map_err(std::io::Error::other).flatten().map_err(RequestError::Disk)?;
    let progress = shared.progress.borrow().clone();
    Ok(Json(json!({
        "acknowledged": progress.acknowledged, "acknowledged_cursor": shared.cursor(progress.acknowledged),
        "available": progress.available, "is_over": progress.end.is_some() && progress.acknowledged == progress.available,
    })))
}

async fn pause(
    State(routes): State<Routes>,
    RawQuery(query): RawQuery,
    body: Bytes,
) -> Result<Json<Value>, RequestError> {
    let given = parameters(query, &body, &["deadline", "wait"])?;
    let limit = given.seconds("deadline", MAX_PAUSE_SECONDS).map_err(RequestError::Invalid)?;
    let wait = given.flag("wait").map_err(RequestError::Invalid)?;
    let pause = &routes.shared.pause;
    pause.pause(limit.unwrap_or(DEFAULT_PAUSE));
    if wait {
        pause.wait_until_idle().await;
    }
    Ok(Json(pause_status(&routes.shared)))
}

async fn resume(
    State(routes): State<Routes>,
    RawQuery(query): RawQuery,
    body: Bytes,
) -> Result<Json<Value>, RequestError> {
    parameters(query, &body, &[])?;
    let was_paused = routes.shared.pause.resume();
    let mut status = pause_status(&routes.shared);
    status["was_paused"] = was_paused.into();
    Ok(Json(status))
}

fn pause_status(shared: &Shared) -> Value {
    let status = shared.pause.status();
    json!({
        "is_paused": status.remaining.is_some(),
        "pause_seconds_left": status.remaining.as_ref().map(Duration::as_secs_f64),
        "policy_calls_in_flight": status.in_flight,
    })
}

async fn status(State(routes): State<Routes>) -> Json<Value> {
    Json(routes.shared.status())
}
