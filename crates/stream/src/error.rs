//! Why a request is refused: one status and one code each.

use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde_json::json;

#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    #[error("{0}")]
    Invalid(String),
    #[error("cursor {cursor} belongs to another run; the cursors of this run start with {run:08x}-")]
    OtherRun { cursor: String, run: u32 },
    #[error("cursor {cursor} is after the last item; this run has {available} items so far")]
    NotYet { cursor: String, available: u64 },
    #[error("{max} consumers read this stream already; close one of them")]
    TooManyConsumers { max: usize },
    #[error("the token is missing or wrong; send it as Authorization: Bearer TOKEN")]
    Unauthorized,
    #[error("web pages may not use this server")]
    Origin,
    #[error(
        "without a token, this server accepts only localhost and IP addresses as Host; start the run with --stream-token"
    )]
    Host,
    #[error("no such path; the paths are GET /stream, POST /ack, POST /pause, POST /resume and GET /status")]
    NotFound,
    #[error("wrong method; GET /stream and /status, POST /ack, /pause and /resume")]
    Method,
    #[error("cannot store the acknowledgment: {0}")]
    Disk(std::io::Error),
}

impl RequestError {
    const fn status_and_code(&self) -> (StatusCode, &'static str) {
        match self {
            Self::Invalid(_) => (StatusCode::BAD_REQUEST, "invalid_request"),
            Self::OtherRun { .. } => (StatusCode::CONFLICT, "other_run"),
            Self::NotYet { .. } => (StatusCode::CONFLICT, "no_such_item"),
            Self::TooManyConsumers { .. } => (StatusCode::SERVICE_UNAVAILABLE, "too_many_consumers"),
            Self::Unauthorized => (StatusCode::UNAUTHORIZED, "unauthorized"),
            Self::Origin | Self::Host => (StatusCode::FORBIDDEN, "forbidden"),
            Self::NotFound => (StatusCode::NOT_FOUND, "not_found"),
            Self::Method => (StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed"),
            Self::Disk(_) => (StatusCode::INTERNAL_SERVER_ERROR, "disk"),
        }
    }
}

impl IntoResponse for RequestError {
    fn into_response(self) -> Response {
        let (status, code) = self.status_and_code();
        (status, Json(json!({"status": "error", "code": code, "detail": self.to_string()}))).into_response()
    }
}
