//! The task API: which splits and tasks there are.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{ENVIRONMENT_NAME, environment::Environment, error::EnvError, server::Shared};

#[derive(Deserialize)]
pub(super) struct SplitRequest {
    split: String,
}

#[derive(Deserialize)]
pub(super) struct TaskRequest {
    split: String,
    index: i64,
}

#[derive(Deserialize)]
pub(super) struct RangeRequest {
    split: String,
    start: Option<i64>,
    stop: Option<i64>,
}

type Answer = Result<Json<Value>, Refusal>;

/// An error of the task API in FastAPI's form.
pub(super) struct Refusal(StatusCode, String);

impl From<EnvError> for Refusal {
    fn from(error: EnvError) -> Self {
        Self(StatusCode::BAD_REQUEST, error.to_string())
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.0, Json(json!({"detail": self.1}))).into_response()
    }
}

fn checked<'a>(name: &str, shared: &'a Shared) -> Result<&'a Environment, Refusal> {
    if name.eq_ignore_ascii_case(ENVIRONMENT_NAME) {
        return Ok(&shared.environment);
    }
    Err(Refusal(StatusCode::NOT_FOUND, format!("unknown environment {name:?}; this is {ENVIRONMENT_NAME:?}")))
}

pub(super) async fn splits(Path(name): Path<String>, State(shared): State<Arc<Shared>>) -> Answer {
    Ok(Json(checked(&name, &shared)?.tasks().splits()))
}

pub(super) async fn num_tasks(
    Path(name): Path<String>,
    State(shared): State<Arc<Shared>>,
    Json(request): Json<SplitRequest>,
) -> Answer {
    Ok(Json(json!({"num_tasks": checked(&name, &shared)?.tasks().count(&request.split)?})))
}

pub(super) async fn tasks(
    Path(name): Path<String>,
    State(shared): State<Arc<Shared>>,
    Json(request): Json<SplitRequest>,
) -> Answer {
    let tasks = checked(&name, &shared)?.tasks();
    let all = tasks.list(&request.split, 0..tasks.count(&request.split)?)?;
    Ok(Json(json!({"tasks": all, "env_name": ENVIRONMENT_NAME})))
}

pub(super) async fn task(
    Path(name): Path<String>,
    State(shared): State<Arc<Shared>>,
    Json(request): Json<TaskRequest>,
) -> Answer {
    let tasks = checked(&name, &shared)?.tasks();
    let count = tasks.count(&request.split)?;
    let index = position(request.index, count);
    let invalid =
        || Refusal(StatusCode::BAD_REQUEST, format!("there is no task {}; there are {count}", request.index));
    let index = index.filter(|index| *index < count).ok_or_else(invalid)?;
    let found = tasks.list(&request.split, index..index + 1)?;
    Ok(Json(json!({"task": found.first()})))
}

pub(super) async fn task_range(
    Path(name): Path<String>,
    State(shared): State<Arc<Shared>>,
    Json(request): Json<RangeRequest>,
) -> Answer {
    let tasks = checked(&name, &shared)?.tasks();
    let count = tasks.count(&request.split)?;
    let bound = |given: Option<i64>, default: usize| {
        given.map_or(default, |given| position(given, count).unwrap_or(0).min(count))
    };
    let (start, stop) = (bound(request.start, 0), bound(request.stop, count));
    Ok(Json(json!({"tasks": tasks.list(&request.split, start..stop.max(start))?})))
}

/// Returns the position of an index, which counts from the end if it is negative, as in Python.
fn position(index: i64, count: usize) -> Option<usize> {
    if index >= 0 { usize::try_from(index).ok() } else { count.checked_sub(usize::try_from(-index).ok()?) }
}
