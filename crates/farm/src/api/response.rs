//! Responses in their wire form. An error has a message for people and a code for programs; on the master's `/execute`
//! and `/screenshot` it also has the two fields that existing clients read.

use axum::{
    Json,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};

use crate::{access::LeaseAccess, error::ApiError, pool::DrainStatus, public_address::PublicAddress};

pub(crate) type ApiResult = Result<Response, ErrorResponse>;

pub(crate) struct ErrorResponse {
    error: ApiError,
    /// Adds `status` and `message`, as the Python master does for `/execute` and `/screenshot`.
    with_status: bool,
}

impl ErrorResponse {
    pub(crate) fn with_status(error: ApiError) -> Self {
        Self { error, with_status: true }
    }
}

impl From<ApiError> for ErrorResponse {
    fn from(error: ApiError) -> Self {
        Self { error, with_status: false }
    }
}

impl IntoResponse for ErrorResponse {
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

pub(crate) fn drain_status(status: DrainStatus) -> Response {
    let DrainStatus { draining, in_use } = status;
    Json(json!({"status": "success", "draining": draining, "in_use": in_use})).into_response()
}

/// Adds the addresses of a lease to the answer of `/get` or `/session`.
pub(crate) fn with_addresses(
    mut answer: Value,
    access: Option<&LeaseAccess>,
    headers: &HeaderMap,
) -> Response {
    if let (Some(access), Some(address)) = (access, PublicAddress::of(headers)) {
        access.add_urls(&mut answer, &address);
    }
    Json(answer).into_response()
}

pub(crate) fn success() -> Response {
    Json(json!({"status": "success"})).into_response()
}
