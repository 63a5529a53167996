//! Errors in their wire form: a sentence for people, a code for programs, and on the master's `/execute` and
//! `/screenshot` the two further fields that existing clients read.

use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde_json::json;

use crate::{error::FarmError, pool::Drained};

pub(crate) struct Failed {
    error: FarmError,
    /// Answer as the Python master does for a failed `/execute` or `/screenshot`.
    with_status: bool,
}

impl Failed {
    pub(crate) fn as_master(error: FarmError) -> Self {
        Self { error, with_status: true }
    }
}

impl From<FarmError> for Failed {
    fn from(error: FarmError) -> Self {
        Self { error, with_status: false }
    }
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        let detail = self.error.to_string();
        let mut body = json!({"detail": detail, "code": self.error.code().as_str()});
        if self.with_status {
            body["status"] = "error".into();
            body["message"] = detail.into();
        }
        let status = StatusCode::from_u16(self.error.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        (status, Json(body)).into_response()
    }
}

pub(crate) type Answer = Result<Response, Failed>;

/// How far a node's draining is.
pub(crate) fn drained(drained: Drained) -> Response {
    let Drained { draining, in_use } = drained;
    Json(json!({"status": "success", "draining": draining, "in_use": in_use})).into_response()
}

pub(crate) fn success() -> Response {
    Json(json!({"status": "success"})).into_response()
}
