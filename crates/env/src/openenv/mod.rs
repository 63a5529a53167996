//! The OpenEnv protocol, version 0.10: messages over a WebSocket, pages that describe the environment, and the task API.

mod connection;
mod description;
mod messages;
mod socket;
mod task_api;

use std::sync::Arc;

use axum::{
    Json, Router,
    routing::{any, get, post},
};
pub(crate) use messages::{ClientMessage, RequestedScreenshot, ResetRequest, error_response};
use serde_json::json;

use crate::server::Shared;

/// The routes that need no key: they describe the environment, and `openenv validate` sends none.
pub(crate) fn public_routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/health", get(async || Json(json!({"status": "healthy"}))))
        .route("/metadata", get(async || Json(description::metadata())))
        .route("/schema", get(async || Json(description::schema())))
        .route("/openapi.json", get(async || Json(description::openapi())))
}

/// The routes that need the key.
pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/ws", any(socket::open))
        .route("/list_environments", get(async || Json(json!([crate::ENVIRONMENT_NAME]))))
        .route("/{environment}/splits", get(task_api::splits))
        .route("/{environment}/tasks", post(task_api::tasks))
        .route("/{environment}/num_tasks", post(task_api::num_tasks))
        .route("/{environment}/task", post(task_api::task))
        .route("/{environment}/task_range", post(task_api::task_range))
}
