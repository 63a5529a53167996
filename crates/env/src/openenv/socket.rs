//! One WebSocket is one session. Messages are handled in order; the socket is read meanwhile, so that pings are answered and a
//! client that disappears releases its browser at once, also in the middle of a step.

use std::{sync::Arc, time::Instant};

use axum::{
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::{
    Error, Message, Utf8Bytes,
    protocol::{CloseFrame, frame::coding::CloseCode},
};

use super::{
    connection::{self, Incoming, Outgoing, Socket},
    messages::{ClientMessage, error_response, response},
};
use crate::{
    catalog::TaskChoice,
    environment::Environment,
    episode::Episode,
    error::EnvError,
    mcp::{self, RpcError, RpcRequest, ToolContext},
    server::Shared,
};

/// Messages that may wait while one is handled.
const MAX_PENDING: usize = 16;

pub(super) async fn open(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (response, upgrade) = match connection::accept(request, shared.max_message_bytes) {
        Ok(accepted) => accepted,
        Err(refusal) => return refusal.into_response(),
    };
    tokio::spawn(async move {
        let Some(socket) = upgrade.await else { return };
        let serve = serve(socket, &shared);
        shared.sessions.track_future(serve).await;
    });
    response
}

/// Why the server closes a socket.
struct Closing {
    code: CloseCode,
    reason: String,
}

impl Closing {
    fn new(code: CloseCode, reason: impl Into<String>) -> Self {
        Self { code, reason: reason.into() }
    }
}

async fn serve(socket: Socket, shared: &Shared) {
    let (sink, mut stream) = socket.split();
    let mut sink = Outgoing(sink);
    let Ok(_permit) = shared.sockets.try_acquire() else {
        let environment = &shared.environment;
        let max_sessions = shared.max_connections;
        let error = EnvError::Capacity { active_sessions: environment.active_sessions(), max_sessions };
        let _ = sink.send(error_response(&error)).await;
        return close(sink, stream, Closing::new(CloseCode::Again, "too many connections")).await;
    };
    let _counted = shared.environment.metrics.count_connection();
    let (sender, receiver) = mpsc::channel(MAX_PENDING);
    let mut session = Session { environment: &shared.environment, episode: None };
    let closing = tokio::select! {
        closing = read(&mut stream, sender, shared.max_message_bytes) => closing,
        closing = session.handle_all(&mut sink, receiver) => closing,
        () = shared.stop.cancelled() => Some(Closing::new(CloseCode::Away, "the server is stopping")),
    };
    // Before the close frame: a client that is gone must not delay the release.
    drop(session);
    if let Some(closing) = closing {
        close(sink, stream, closing).await;
    }
}

async fn close(sink: Outgoing, stream: Incoming, closing: Closing) {
    sink.close(stream, CloseFrame { code: closing.code, reason: Utf8Bytes::from(closing.reason) }).await;
}

/// Passes messages on until the client closes the socket or breaks a limit.
async fn read(stream: &mut Incoming, messages: mpsc::Sender<Utf8Bytes>, max_bytes: usize) -> Option<Closing> {
    while let Some(message) = stream.next().await {
        let message = match message {
            Ok(message) => message,
            Err(Error::Capacity(_)) => {
                let reason = format!("the message is larger than {max_bytes} bytes");
                return Some(Closing::new(CloseCode::Size, reason));
            }
            Err(_) => return None,
        };
        match message {
            Message::Text(text) => {
                if messages.try_send(text).is_err() {
                    let reason = EnvError::TooManyPending(MAX_PENDING).to_string();
                    return Some(Closing::new(CloseCode::Policy, reason));
                }
            }
            Message::Binary(_) => {
                return Some(Closing::new(CloseCode::Unsupported, "messages must be text"));
            }
            Message::Close(_) => return None,
            Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
        }
    }
    None
}

/// The session of one socket.
struct Session<'a> {
    environment: &'a Environment,
    episode: Option<Episode>,
}

impl Session<'_> {
    /// Handles messages in order until the client asks to close.
    async fn handle_all(
        &mut self,
        sink: &mut Outgoing,
        mut messages: mpsc::Receiver<Utf8Bytes>,
    ) -> Option<Closing> {
        loop {
            let idle = self.environment.idle_timeout();
            let Ok(message) = tokio::time::timeout(idle, messages.recv()).await else {
                if self.episode.is_none() {
                    // A socket without an episode holds nothing.
                    continue;
                }
                let error = EnvError::Idle(idle.as_secs());
                let _ = sink.send(error_response(&error)).await;
                return Some(Closing::new(CloseCode::Policy, error.to_string()));
            };
            let message = message?;
            let reply = match ClientMessage::parse(&message) {
                Ok(ClientMessage::Close) => return Some(Closing::new(CloseCode::Normal, "")),
                Ok(message) => self.handle(message).await,
                Err(error) => Err(error),
            };
            let reply = reply.unwrap_or_else(|error| error_response(&error));
            if sink.send(reply).await.is_err() {
                return None;
            }
            if let Some(episode) = &mut self.episode {
                episode.put_screenshot_away().await;
            }
        }
    }

    async fn handle(&mut self, message: ClientMessage) -> Result<String, EnvError> {
        match message {
            ClientMessage::Reset(request) => {
                // Released first, so that a reset never needs two browsers.
                self.episode = None;
                let episode = self.environment.start_episode(request).await?;
                let reply = response("observation", &episode.observation());
                self.episode = Some(episode);
                Ok(reply)
            }
            ClientMessage::Step(data) => {
                let episode = self.episode.as_mut().ok_or(EnvError::NoEpisode)?;
                let since = Instant::now();
                episode.step(self.environment, &data).await?;
                self.environment.metrics.record_step(since.elapsed());
                Ok(response("observation", &episode.observation()))
            }
            ClientMessage::State => {
                let none = || json!({"episode_id": null, "step_count": 0});
                Ok(response("state", &self.episode.as_ref().map_or_else(none, Episode::state)))
            }
            ClientMessage::Mcp(request) => {
                let reply = self.handle_rpc(&request).await;
                Ok(response("mcp", &reply))
            }
            ClientMessage::Close => Ok(String::new()),
        }
    }

    /// Answers a request of MCP on the episode of this session.
    async fn handle_rpc(&mut self, message: &Value) -> Value {
        let request = match RpcRequest::parse(message) {
            Ok(request) => request,
            Err(error) => return mcp::response(None, Err(error)),
        };
        let outcome = match (request.method.as_str(), request.params.get("name").and_then(Value::as_str)) {
            ("tools/list", _) => {
                Ok(json!({"tools": mcp::list_tools(!self.environment.tasks().is_empty(), false)}))
            }
            ("tools/call", Some(name)) => {
                let arguments =
                    request.params.get("arguments").and_then(Value::as_object).cloned().unwrap_or_default();
                let task = &TaskChoice::default();
                let context = ToolContext { environment: self.environment, task, reads_local_files: false };
                mcp::call_tool(context, &mut self.episode, name, &arguments).await
            }
            ("tools/call", None) => Err(RpcError::new(mcp::SERVER_ERROR, "name is missing")),
            (other, _) => Err(RpcError::unknown_method(other)),
        };
        mcp::response(request.id.as_ref(), outcome)
    }
}
