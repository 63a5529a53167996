//! One WebSocket is one session. Messages are handled in order; the socket is read meanwhile, so that pings are answered and a
//! client that disappears releases its browser at once, also in the middle of a step.

use std::{sync::Arc, time::Instant};

use axum::{
    extract::{
        State, WebSocketUpgrade,
        ws::{CloseFrame, Message, Utf8Bytes, WebSocket, close_code},
    },
    response::Response,
};
use futures_util::{
    SinkExt, StreamExt,
    stream::{SplitSink, SplitStream},
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::messages::{ClientMessage, error_response, response};
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

pub(super) async fn open(State(shared): State<Arc<Shared>>, upgrade: WebSocketUpgrade) -> Response {
    let max = shared.max_message_bytes;
    let upgrade =
        upgrade.max_message_size(max).max_frame_size(max).read_buffer_size(4 << 10).write_buffer_size(0);
    upgrade.on_upgrade(move |socket| async move {
        let serve = serve(socket, &shared);
        shared.sessions.track_future(serve).await;
    })
}

/// Why the server closes a socket.
struct Closing {
    code: u16,
    reason: String,
}

impl Closing {
    fn new(code: u16, reason: impl Into<String>) -> Self {
        Self { code, reason: reason.into() }
    }
}

async fn serve(socket: WebSocket, shared: &Shared) {
    let (mut sink, stream) = socket.split();
    let Ok(_permit) = shared.sockets.try_acquire() else {
        let environment = &shared.environment;
        let max_sessions = shared.max_connections;
        let error = EnvError::Capacity { active_sessions: environment.active_sessions(), max_sessions };
        let _ = sink.send(text(error_response(&error))).await;
        return close(&mut sink, Closing::new(close_code::AGAIN, "too many connections")).await;
    };
    let _counted = shared.environment.metrics.count_connection();
    let (sender, receiver) = mpsc::channel(MAX_PENDING);
    let mut session = Session { environment: &shared.environment, episode: None };
    let closing = tokio::select! {
        closing = read(stream, sender, shared.max_message_bytes) => closing,
        closing = session.handle_all(&mut sink, receiver) => closing,
        () = shared.stop.cancelled() => Some(Closing::new(close_code::AWAY, "the server is stopping")),
    };
    // Before the goodbye: a client that is gone must not delay the release.
    drop(session);
    if let Some(closing) = closing {
        close(&mut sink, closing).await;
    }
}

fn text(message: String) -> Message {
    Message::Text(message.into())
}

async fn close(sink: &mut SplitSink<WebSocket, Message>, closing: Closing) {
    let frame = CloseFrame { code: closing.code, reason: Utf8Bytes::from(closing.reason) };
    let _ = sink.send(Message::Close(Some(frame))).await;
    let _ = sink.close().await;
}

/// Passes messages on until the client closes the socket or breaks a limit.
async fn read(
    mut stream: SplitStream<WebSocket>,
    messages: mpsc::Sender<Utf8Bytes>,
    max_bytes: usize,
) -> Option<Closing> {
    while let Some(message) = stream.next().await {
        let message = match message {
            Ok(message) => message,
            Err(error) if is_too_large(&error) => {
                let reason = format!("the message is larger than {max_bytes} bytes");
                return Some(Closing::new(close_code::SIZE, reason));
            }
            Err(_) => return None,
        };
        match message {
            Message::Text(text) => {
                if messages.try_send(text).is_err() {
                    let reason = EnvError::TooManyPending(MAX_PENDING).to_string();
                    return Some(Closing::new(close_code::POLICY, reason));
                }
            }
            Message::Binary(_) => {
                return Some(Closing::new(close_code::UNSUPPORTED, "messages must be text"));
            }
            Message::Close(_) => return None,
            Message::Ping(_) | Message::Pong(_) => {}
        }
    }
    None
}

/// Returns whether a message was larger than the limit. axum offers only the text of the error.
fn is_too_large(error: &axum::Error) -> bool {
    let text = error.to_string();
    text.contains("too long") || text.contains("too big")
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
        sink: &mut SplitSink<WebSocket, Message>,
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
                let _ = sink.send(text(error_response(&error))).await;
                return Some(Closing::new(close_code::POLICY, error.to_string()));
            };
            let message = message?;
            let reply = match ClientMessage::parse(&message) {
                Ok(ClientMessage::Close) => return Some(Closing::new(close_code::NORMAL, "")),
                Ok(message) => self.handle(message).await,
                Err(error) => Err(error),
            };
            let reply = reply.unwrap_or_else(|error| error_response(&error));
            if sink.send(text(reply)).await.is_err() {
                return None;
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
