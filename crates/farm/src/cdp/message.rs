//! Messages between a client and its virtual browser. Parameters, results and events stay raw JSON; only the envelope is read
//! and written here.

use std::borrow::Cow;

use axum::extract::ws::Utf8Bytes;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

/// A call of a client.
#[derive(Deserialize)]
pub(crate) struct ClientCall<'a> {
    pub(crate) id: i64,
    #[serde(borrow)]
    pub(crate) method: Cow<'a, str>,
    #[serde(borrow, default, rename = "sessionId")]
    pub(crate) session: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(crate) params: Option<&'a RawValue>,
}

/// Whom a reply goes to: the number of the call and the session it was sent in.
#[derive(Clone, Debug)]
pub(crate) struct ReplyTo {
    pub(crate) id: i64,
    pub(crate) session: Option<String>,
}

/// An error of the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProtocolError {
    code: i32,
    message: String,
}

impl ProtocolError {
    pub(crate) fn refused(method: &str, reason: &str) -> Self {
        Self { code: -32000, message: format!("{method} is refused by webgym: {reason}") }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self { code: -32602, message: message.into() }
    }

    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self { code: -32000, message: message.into() }
    }

    pub(crate) fn not_found(method: &str) -> Self {
        Self { code: -32601, message: format!("'{method}' wasn't found") }
    }

    pub(crate) fn no_session() -> Self {
        Self { code: -32001, message: "Session with given id not found.".to_owned() }
    }

    pub(crate) fn to_json(&self) -> Vec<u8> {
        json!({"code": self.code, "message": self.message}).to_string().into_bytes()
    }

    /// The reply to a message that cannot be parsed.
    pub(crate) fn invalid_message(reason: &str) -> Utf8Bytes {
        let error = json!({"code": -32700, "message": format!("the message is not a valid call: {reason}")});
        json!({ "error": error }).to_string().into()
    }
}

/// The kind of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Result,
    Error,
}

/// Builds the reply to a call. `payload` is JSON; an empty one is `{}`. Returns `None` if it is not UTF-8.
pub(crate) fn reply(to: &ReplyTo, outcome: Outcome, payload: &[u8]) -> Option<Utf8Bytes> {
    let name: &[u8] = if outcome == Outcome::Result { b",\"result\":" } else { b",\"error\":" };
    let mut message = Vec::with_capacity(payload.len() + 120);
    message.extend_from_slice(b"{\"id\":");
    message.extend_from_slice(to.id.to_string().as_bytes());
    message.extend_from_slice(name);
    message.extend_from_slice(if payload.is_empty() { b"{}" } else { payload });
    finish(message, to.session.as_deref())
}

/// Builds an event of a session.
pub(crate) fn event(session: Option<&str>, method: &str, params: &[u8]) -> Option<Utf8Bytes> {
    let mut message = Vec::with_capacity(params.len() + method.len() + 100);
    message.extend_from_slice(b"{\"method\":");
    message.extend_from_slice(Value::from(method).to_string().as_bytes());
    message.extend_from_slice(b",\"params\":");
    message.extend_from_slice(if params.is_empty() { b"{}" } else { params });
    finish(message, session)
}

fn finish(mut message: Vec<u8>, session: Option<&str>) -> Option<Utf8Bytes> {
    if let Some(session) = session {
        message.extend_from_slice(b",\"sessionId\":");
        message.extend_from_slice(Value::from(session).to_string().as_bytes());
    }
    message.push(b'}');
    Utf8Bytes::try_from(Bytes::from(message)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_are_not_changed() {
        let to = ReplyTo { id: 7, session: Some("S\"1".to_owned()) };
        let raw = br#"{"data":"\ud83c", "n": 1e400}"#;
        let text = reply(&to, Outcome::Result, raw).unwrap();
        assert_eq!(text.as_str(), r#"{"id":7,"result":{"data":"\ud83c", "n": 1e400},"sessionId":"S\"1"}"#);
        let text = event(None, "Page.x", b"").unwrap();
        assert_eq!(text.as_str(), r#"{"method":"Page.x","params":{}}"#);
    }

    #[test]
    fn repeated_fields_are_refused() {
        let parse =
            |text: &str| serde_json::from_str::<ClientCall<'_>>(text).map(|call| call.method.into_owned());
        assert_eq!(parse(r#"{"id":1,"method":"a","x":2}"#).unwrap(), "a");
        assert!(parse(r#"{"id":1,"method":"a","method":"b"}"#).is_err());
        assert!(parse(r#"{"id":1,"method":"a","\u006dethod":"b"}"#).is_err());
    }
}
