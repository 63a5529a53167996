//! A protocol session with one target, or with the browser itself. Calls are written immediately and awaited later,
//! always with a deadline. Dropping a pending call removes it from the connection.

use std::{
    ops::Range,
    time::{Duration, Instant},
};

use bytes::Bytes;
use serde::{Serialize, de::DeserializeOwned};
use tokio::sync::oneshot;

use crate::{
    connection::{Connection, RawReply, ReplyRecipient, SessionId},
    envelope::{RemoteError, decode},
    error::{CallError, SessionEnd},
    protocol::Method,
};

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// A handle to one session. Cloning is cheap.
#[derive(Clone)]
pub struct Session {
    connection: Connection,
    id: SessionId,
}

#[derive(Serialize)]
struct Call<'a, P> {
    id: u64,
    method: &'static str,
    params: &'a P,
    #[serde(rename = "sessionId", skip_serializing_if = "Option::is_none")]
    session: Option<&'a str>,
}

impl Session {
    pub(crate) fn new(connection: Connection, id: SessionId) -> Self {
        Self { connection, id }
    }

    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The browser's id of the session; `None` for the root session.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Fails the pending calls of a session that has ended without an event of its own. Nothing else is heard of it.
    pub fn forget(&self) {
        if self.id.is_some() {
            self.connection.forget_session(&self.id);
        }
    }

    pub(crate) fn raw_id(&self) -> &SessionId {
        &self.id
    }

    /// Sends a call without waiting for its reply. Calls on one session are answered in order, so several can be sent
    /// before the first is awaited.
    pub fn send<P: Serialize>(&self, method: Method, params: &P) -> PendingCall {
        let id = self.connection.next_id();
        let receiver = self.register_and_write(id, method, params);
        PendingCall { connection: self.connection.clone(), id, method, receiver: Some(receiver) }
    }

    fn register_and_write<P: Serialize>(
        &self,
        id: u64,
        method: Method,
        params: &P,
    ) -> Result<oneshot::Receiver<RawReply>, CallError> {
        let (sender, receiver) = oneshot::channel();
        self.connection
            .register_call(id, &self.id, ReplyRecipient::Caller(sender))
            .map_err(|end| CallError::SessionEnded { method, end })?;
        let written = self.write(id, method, params);
        if written.is_err() {
            self.connection.remove_call(id);
        }
        written.map(|()| receiver)
    }

    fn write<P: Serialize>(&self, id: u64, method: Method, params: &P) -> Result<(), CallError> {
        let call = Call { id, method: method.name(), params, session: self.id.as_deref() };
        let mut message = serde_json::to_vec(&call)
            .map_err(|error| CallError::InvalidReply { method, reason: format!("parameters: {error}") })?;
        message.push(0);
        if self.connection.write(Bytes::from(message)) {
            Ok(())
        } else {
            Err(CallError::Congested { method })
        }
    }

    /// Sends a call and ignores its reply. Suitable inside [`crate::EventHandler::on_event`].
    pub fn send_no_reply<P: Serialize>(&self, method: Method, params: &P) {
        if let Err(error) = self.write(self.connection.next_id(), method, params) {
            tracing::debug!(%error, "cannot send a call to the browser");
        }
    }

    /// Sends a call and returns its decoded result, with the default timeout.
    pub async fn call<P: Serialize, R: DeserializeOwned>(
        &self,
        method: Method,
        params: &P,
    ) -> Result<R, CallError> {
        self.call_within(DEFAULT_TIMEOUT, method, params).await
    }

    pub async fn call_within<P: Serialize, R: DeserializeOwned>(
        &self,
        timeout: Duration,
        method: Method,
        params: &P,
    ) -> Result<R, CallError> {
        self.send(method, params).within(timeout).await?.decode()
    }

    /// Sends a call and waits for its success, discarding the result.
    pub async fn run<P: Serialize>(&self, method: Method, params: &P) -> Result<(), CallError> {
        self.send(method, params).within(DEFAULT_TIMEOUT).await.map(drop)
    }
}

/// A call that was sent and whose reply has not been awaited.
#[must_use = "an unawaited call may fail unseen; use Session::send_no_reply to ignore the reply"]
pub struct PendingCall {
    connection: Connection,
    id: u64,
    method: Method,
    receiver: Option<Result<oneshot::Receiver<RawReply>, CallError>>,
}

impl PendingCall {
    pub async fn within(self, timeout: Duration) -> Result<Reply, CallError> {
        self.until(Instant::now() + timeout).await
    }

    pub async fn until(mut self, deadline: Instant) -> Result<Reply, CallError> {
        let method = self.method;
        let started = Instant::now();
        let Some(receiver) = self.receiver.take() else {
            return Err(CallError::InvalidReply { method, reason: "awaited twice".to_owned() });
        };
        let reply = match tokio::time::timeout_at(deadline.into(), receiver?).await {
            Ok(Ok(reply)) => reply.map_err(|end| CallError::SessionEnded { method, end })?,
            Ok(Err(_)) => return Err(CallError::SessionEnded { method, end: SessionEnd::Detached }),
            Err(_) => return Err(CallError::Deadline { method, after: started.elapsed() }),
        };
        match reply {
            (message, Ok(payload)) => Ok(Reply { method, message, payload }),
            (message, Err(error)) => {
                let RemoteError { code, message } =
                    decode(&message[error]).map_err(|reason| CallError::InvalidReply { method, reason })?;
                Err(CallError::Rejected { method, code, message })
            }
        }
    }
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        self.connection.remove_call(self.id);
    }
}

/// A successful reply, not decoded yet.
#[derive(Debug)]
pub struct Reply {
    method: Method,
    message: Bytes,
    payload: Range<usize>,
}

impl Reply {
    pub fn raw(&self) -> &[u8] {
        &self.message[self.payload.clone()]
    }

    pub fn decode<R: DeserializeOwned>(&self) -> Result<R, CallError> {
        decode(self.raw()).map_err(|reason| CallError::InvalidReply { method: self.method, reason })
    }
}
