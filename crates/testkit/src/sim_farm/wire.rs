//! The response formats of the simulated farm; see "Tiers and HTTP API" in `docs/contract.md`.

use axum::{
    body::Body,
    http::{Response, StatusCode},
};
use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};

pub(super) type HttpResponse = Response<Body>;

pub(super) fn ok(body: &Value) -> HttpResponse {
    respond(StatusCode::OK, "application/json", body.to_string().into())
}

pub(super) fn respond(status: StatusCode, kind: &str, body: Bytes) -> HttpResponse {
    Response::builder().status(status).header("content-type", kind).body(Body::from(body)).unwrap()
}

pub(super) fn error(status: u16, code: &str, detail: &str) -> HttpResponse {
    let body = json!({"status": "error", "detail": detail, "message": detail, "code": code});
    respond(StatusCode::from_u16(status).unwrap(), "application/json", body.to_string().into())
}

/// A response with fewer bytes than its `content-length`.
pub(super) fn truncated() -> HttpResponse {
    Response::builder().header("content-length", "1000").body(Body::from("{\"half\":")).unwrap()
}

#[derive(Serialize)]
pub(super) struct Observed {
    pub(super) result: Option<Value>,
    pub(super) error: Option<Value>,
    pub(super) settled: bool,
    pub(super) settle_ms: u64,
    pub(super) screenshot: Screenshot,
    pub(super) metadata: Value,
    pub(super) ac_tree: Option<String>,
    pub(super) unchanged: bool,
}

#[derive(Serialize)]
pub(super) struct Screenshot {
    pub(super) format: &'static str,
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) data: Raw,
}

pub(super) struct Raw(pub(super) Bytes);

impl Serialize for Raw {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl Observed {
    pub(super) fn to_response(&self) -> HttpResponse {
        respond(StatusCode::OK, "application/msgpack", rmp_serde::to_vec_named(self).unwrap().into())
    }
}
