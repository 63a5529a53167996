//! What the simulated farm answers, in the shapes of REFERENCE §1 and of `/observe`.

use axum::{
    body::Body,
    http::{Response, StatusCode},
};
use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};

pub(super) type Answer = Response<Body>;

pub(super) fn ok(body: &Value) -> Answer {
    answer(StatusCode::OK, "application/json", body.to_string().into())
}

pub(super) fn answer(status: StatusCode, kind: &str, body: Bytes) -> Answer {
    Response::builder().status(status).header("content-type", kind).body(Body::from(body)).unwrap()
}

pub(super) fn error(status: u16, code: &str, detail: &str) -> Answer {
    let body = json!({"status": "error", "detail": detail, "message": detail, "code": code});
    answer(StatusCode::from_u16(status).unwrap(), "application/json", body.to_string().into())
}

/// Promises more than it sends.
pub(super) fn broken_off() -> Answer {
    Response::builder().header("content-length", "1000").body(Body::from("{\"half\":")).unwrap()
}

#[derive(Serialize)]
pub(super) struct Observed {
    pub(super) result: Option<Value>,
    pub(super) error: Option<Value>,
    pub(super) settled: bool,
    pub(super) settle_ms: u64,
    pub(super) screenshot: Picture,
    pub(super) metadata: Value,
    pub(super) ac_tree: Option<String>,
    pub(super) unchanged: bool,
}

#[derive(Serialize)]
pub(super) struct Picture {
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
    pub(super) fn answer(&self) -> Answer {
        answer(StatusCode::OK, "application/msgpack", rmp_serde::to_vec_named(self).unwrap().into())
    }
}
