//! The WebSocket connection of a session. Thousands of them wait for their models most of the time, so a connection keeps no
//! large buffer: long messages are sent in fragments.

use std::time::Duration;

use axum::{
    Json,
    body::Body,
    extract::Request,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use futures_util::{
    SinkExt,
    stream::{SplitSink, SplitStream},
};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Bytes, Error, Message,
        handshake::server::create_response_with_body,
        protocol::{
            CloseFrame, Role, WebSocketConfig,
            frame::{
                Frame,
                coding::{Data, OpCode},
            },
        },
    },
};

/// Longest fragment of a message. The library keeps a buffer of the longest frame for as long as the connection lives.
const FRAGMENT_BYTES: usize = 16 << 10;
/// Messages of clients are short; longer ones grow the buffer.
const READ_BUFFER_BYTES: usize = 4 << 10;

pub(super) type Socket = WebSocketStream<TokioIo<Upgraded>>;
pub(super) type Incoming = SplitStream<Socket>;

/// Answers a request for a WebSocket. The future resolves once the response is sent; to nothing if the client is gone.
pub(super) fn accept(
    mut request: Request,
    max_message_bytes: usize,
) -> Result<(Response, impl Future<Output = Option<Socket>>), Refusal> {
    let response = create_response_with_body(&request, Body::empty).map_err(Refusal)?;
    let upgrade = hyper::upgrade::on(&mut request);
    let config = WebSocketConfig::default()
        .max_message_size(Some(max_message_bytes))
        .max_frame_size(Some(max_message_bytes))
        .read_buffer_size(READ_BUFFER_BYTES)
        .write_buffer_size(0);
    let connected = async move {
        let stream = TokioIo::new(upgrade.await.ok()?);
        Some(WebSocketStream::from_raw_socket(stream, Role::Server, Some(config)).await)
    };
    Ok((response, connected))
}

/// Why a request is not one for a WebSocket.
#[derive(Debug)]
pub(super) struct Refusal(Error);

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let detail = format!("this path expects a WebSocket: {}", self.0);
        (StatusCode::BAD_REQUEST, Json(json!({ "detail": detail }))).into_response()
    }
}

/// How long input is still read after the close frame. A connection that is dropped with unread input is reset, and the client
/// may lose the close frame.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// The sending half of a connection.
pub(super) struct Outgoing(pub(super) SplitSink<Socket, Message>);

impl Outgoing {
    /// Sends a text message.
    pub(super) async fn send(&mut self, text: String) -> Result<(), Error> {
        for fragment in fragments(text.into()) {
            self.0.send(Message::Frame(fragment)).await?;
        }
        Ok(())
    }

    /// Sends the close frame and discards further input until the client closes the connection.
    pub(super) async fn close(mut self, incoming: Incoming, frame: CloseFrame) {
        let _ = self.0.send(Message::Close(Some(frame))).await;
        let Ok(mut socket) = self.0.reunite(incoming) else { return };
        let stream = socket.get_mut();
        let _ = stream.shutdown().await;
        let mut discarded = [0; 1024];
        let drained = async { while matches!(stream.read(&mut discarded).await, Ok(1..)) {} };
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, drained).await;
    }
}

/// Splits a text message into frames. An empty message is one empty frame.
fn fragments(mut rest: Bytes) -> impl Iterator<Item = Frame> {
    let mut next = Some(Data::Text);
    std::iter::from_fn(move || {
        let kind = next?;
        let fragment = rest.split_to(rest.len().min(FRAGMENT_BYTES));
        next = (!rest.is_empty()).then_some(Data::Continue);
        Some(Frame::message(fragment, OpCode::Data(kind), rest.is_empty()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(message: &str) -> Vec<(usize, OpCode, bool)> {
        let described =
            |frame: Frame| (frame.payload().len(), frame.header().opcode, frame.header().is_final);
        fragments(message.to_owned().into()).map(described).collect()
    }

    #[test]
    fn long_messages_are_sent_in_fragments() {
        let (text, more) = (OpCode::Data(Data::Text), OpCode::Data(Data::Continue));
        assert_eq!(lengths(""), [(0, text, true)]);
        assert_eq!(lengths("short"), [(5, text, true)]);
        let full = FRAGMENT_BYTES;
        assert_eq!(lengths(&"x".repeat(full)), [(full, text, true)]);
        let expected = [(full, text, false), (full, more, false), (1, more, true)];
        assert_eq!(lengths(&"x".repeat(2 * full + 1)), expected);
    }
}
