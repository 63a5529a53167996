//! What is recorded: a request with its response or error, when and from where it came, and the messages of a stream.

use std::net::IpAddr;

use bytes::Bytes;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::Headers;

/// A request as the browser sent it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    pub method: String,
    /// The absolute URL. A fragment is ignored.
    pub url: String,
    pub headers: Headers,
    pub body: Bytes,
}

impl Request {
    pub fn get(url: impl Into<String>) -> Self {
        Self { method: "GET".into(), url: url.into(), ..Self::default() }
    }

    pub fn post(url: impl Into<String>, content_type: &str, body: impl Into<Bytes>) -> Self {
        let headers = [("Content-Type", content_type)].into_iter().collect();
        Self { method: "POST".into(), url: url.into(), headers, body: body.into() }
    }
}

/// A response. The body has no transfer encoding, but still the content encoding that its headers name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    pub reason: String,
    pub headers: Headers,
    pub body: Bytes,
}

/// How a request ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Response(Response),
    /// The network error, such as `net::ERR_CONNECTION_REFUSED`.
    Failed(String),
}

/// Times in milliseconds: until the first byte of the response, and from there to the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    pub wait_ms: f64,
    pub receive_ms: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    Sent,
    Received,
}

/// The content of a frame. `Chunk` is the next part of a streamed body (server-sent events, for example): its bytes
/// are in the response, only its length is here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrameData {
    Text(String),
    Binary(Vec<u8>),
    Close { code: u16, reason: String },
    Chunk(u64),
}

/// A WebSocket message, or a chunk of a streamed response, with its time since the request.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    pub at_ms: f64,
    pub direction: Direction,
    pub data: FrameData,
}

/// A recorded request with all that came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Exchange {
    pub started: Timestamp,
    pub request: Request,
    pub outcome: Outcome,
    pub timing: Option<Timing>,
    pub remote: Option<IpAddr>,
    /// `http/1.1`, `h2` or `h3`.
    pub protocol: Option<String>,
    /// The lease or other session that sent the request.
    pub session: Option<String>,
    /// CDP's name of the kind of resource in lower case: `document`, `script`, `fetch`, …
    pub resource_type: Option<String>,
    pub frames: Vec<Frame>,
}

impl Exchange {
    pub fn new(started: Timestamp, request: Request, outcome: Outcome) -> Self {
        Self {
            started,
            request,
            outcome,
            timing: None,
            remote: None,
            protocol: None,
            session: None,
            resource_type: None,
            frames: Vec::new(),
        }
    }

    pub fn response(&self) -> Option<&Response> {
        match &self.outcome {
            Outcome::Response(response) => Some(response),
            Outcome::Failed(_) => None,
        }
    }
}
