//! Calls on behalf of somebody else: method and parameters are text that is passed on unchanged, and the reply is passed to
//! a callback as the bytes that the browser sent. There is no deadline; a call ends with its reply or its session.

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::{
    connection::{RawReply, ReplyRecipient},
    error::SessionEnd,
    session::Session,
};

/// How a forwarded call ended.
#[derive(Debug)]
pub enum ForwardedReply {
    /// The JSON of the result.
    Result(Bytes),
    /// The JSON of the browser's error object.
    Error(Bytes),
    /// The session ended before the reply.
    Ended(SessionEnd),
}

impl From<RawReply> for ForwardedReply {
    fn from(reply: RawReply) -> Self {
        match reply {
            Ok((message, Ok(range))) => Self::Result(message.slice(range)),
            Ok((message, Err(range))) => Self::Error(message.slice(range)),
            Err(end) => Self::Ended(end),
        }
    }
}

/// Why a call could not be forwarded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ForwardError {
    #[error("{0}")]
    SessionEnded(SessionEnd),
    #[error("the browser does not read its messages")]
    Congested,
    #[error("the parameters are not valid: {0}")]
    InvalidParams(String),
}

#[derive(Serialize)]
struct ForwardedCall<'a> {
    id: u64,
    method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'a RawValue>,
    #[serde(rename = "sessionId", skip_serializing_if = "Option::is_none")]
    session: Option<&'a str>,
}

impl Session {
    /// Sends a call with raw parameters. `on_reply` runs on the reading task and must not block. It is not called if this
    /// returns an error.
    pub fn forward(
        &self,
        method: &str,
        params: Option<&RawValue>,
        on_reply: impl FnOnce(ForwardedReply) + Send + 'static,
    ) -> Result<(), ForwardError> {
        let connection = self.connection();
        let id = connection.next_id();
        let call = ForwardedCall { id, method, params, session: self.id() };
        let mut message =
            serde_json::to_vec(&call).map_err(|error| ForwardError::InvalidParams(error.to_string()))?;
        if memchr::memchr(0, &message).is_some() {
            return Err(ForwardError::InvalidParams("they contain a NUL".to_owned()));
        }
        message.push(0);
        let recipient = ReplyRecipient::Callback(Box::new(|reply| on_reply(reply.into())));
        connection.register_call(id, self.raw_id(), recipient).map_err(ForwardError::SessionEnded)?;
        if connection.write(Bytes::from(message)) {
            return Ok(());
        }
        connection.remove_call(id);
        Err(ForwardError::Congested)
    }
}
