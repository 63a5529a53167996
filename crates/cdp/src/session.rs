//! A conversation with one target (or the browser itself): send a call now, collect its answer later, always
//! with a deadline. A caller that walks away leaves nothing behind.

use std::{
    ops::Range,
    time::{Duration, Instant},
};

use bytes::Bytes;
use serde::{Serialize, de::DeserializeOwned};
use tokio::sync::oneshot;

use crate::{
    connection::{Answer, Connection, SessionId},
    envelope::{RemoteError, decode},
    error::CallError,
    protocol::Method,
};

const DEFAULT_DEADLINE: Duration = Duration::from_secs(30);

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

    /// Writes the call now. Calls on one session are answered in order, so several may be sent before the
    /// first answer is awaited.
    pub fn send<P: Serialize>(&self, method: Method, params: &P) -> Pending {
        let id = self.connection.next_id();
        let receiver = self.register(id, method, params);
        Pending { connection: self.connection.clone(), id, method, receiver: Some(receiver) }
    }

    fn register<P: Serialize>(
        &self,
        id: u64,
        method: Method,
        params: &P,
    ) -> Result<oneshot::Receiver<Answer>, CallError> {
        let receiver =
            self.connection.expect(id, &self.id).map_err(|gone| CallError::Gone { method, gone })?;
        let written = self.write(id, method, params);
        if written.is_err() {
            self.connection.forget(id);
        }
        written.map(|()| receiver)
    }

    fn write<P: Serialize>(&self, id: u64, method: Method, params: &P) -> Result<(), CallError> {
        let call = Call { id, method: method.name(), params, session: self.id.as_deref() };
        let mut message = serde_json::to_vec(&call)
            .map_err(|e| CallError::BadAnswer { method, why: format!("parameters: {e}") })?;
        message.push(0);
        if self.connection.write(Bytes::from(message)) {
            Ok(())
        } else {
            Err(CallError::Congested { method })
        }
    }

    /// Writes the call and takes no interest in its answer. For use inside [`crate::Events::event`].
    pub fn tell<P: Serialize>(&self, method: Method, params: &P) {
        if let Err(error) = self.write(self.connection.next_id(), method, params) {
            tracing::debug!(%error, "could not tell the browser");
        }
    }

    /// Calls and waits for the decoded answer, for at most the default deadline.
    pub async fn call<P: Serialize, R: DeserializeOwned>(
        &self,
        method: Method,
        params: &P,
    ) -> Result<R, CallError> {
        self.call_within(DEFAULT_DEADLINE, method, params).await
    }

    pub async fn call_within<P: Serialize, R: DeserializeOwned>(
        &self,
        limit: Duration,
        method: Method,
        params: &P,
    ) -> Result<R, CallError> {
        self.send(method, params).within(limit).await?.decode()
    }

    /// Calls for effect only.
    pub async fn run<P: Serialize>(&self, method: Method, params: &P) -> Result<(), CallError> {
        self.send(method, params).within(DEFAULT_DEADLINE).await.map(drop)
    }
}

/// A call on its way.
#[must_use = "an unawaited call may fail unseen; use Session::tell to say that is fine"]
pub struct Pending {
    connection: Connection,
    id: u64,
    method: Method,
    receiver: Option<Result<oneshot::Receiver<Answer>, CallError>>,
}

impl Pending {
    pub async fn within(self, limit: Duration) -> Result<Reply, CallError> {
        self.until(Instant::now() + limit).await
    }

    pub async fn until(mut self, deadline: Instant) -> Result<Reply, CallError> {
        let method = self.method;
        let started = Instant::now();
        let Some(receiver) = self.receiver.take() else {
            return Err(CallError::BadAnswer { method, why: "awaited twice".to_owned() });
        };
        let answer = match tokio::time::timeout_at(deadline.into(), receiver?).await {
            Ok(Ok(answer)) => answer.map_err(|gone| CallError::Gone { method, gone })?,
            Ok(Err(_)) => return Err(CallError::Gone { method, gone: crate::Gone::Detached }),
            Err(_) => return Err(CallError::Deadline { method, after: started.elapsed() }),
        };
        match answer {
            (message, Ok(payload)) => Ok(Reply { method, message, payload }),
            (message, Err(error)) => {
                let RemoteError { code, message } =
                    decode(&message[error]).map_err(|why| CallError::BadAnswer { method, why })?;
                Err(CallError::Rejected { method, code, message })
            }
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.connection.forget(self.id);
    }
}

/// A successful answer, not decoded yet.
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
        decode(self.raw()).map_err(|why| CallError::BadAnswer { method: self.method, why })
    }
}
