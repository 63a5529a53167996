//! A viewer of a lease's live view that is not a browser: it sends any message and need not read or acknowledge frames.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::{WebSocketStream, client_async, tungstenite::Message};

/// No message takes longer than this unless it hangs.
const TIMEOUT: Duration = Duration::from_secs(60);

pub struct LiveClient {
    socket: WebSocketStream<TcpStream>,
    /// The number of frames so far.
    pub frames: usize,
    /// Messages that were received while another was awaited.
    messages: VecDeque<Value>,
}

/// What a viewer receives.
#[derive(Debug)]
pub enum LiveMessage {
    Frame(Vec<u8>),
    Json(Value),
    /// The connection was closed, with the code and text of its close frame.
    Closed(Option<(u16, String)>),
}

impl LiveClient {
    /// Connects to a `live_url` or `live_control_url`. The error is the status of the response.
    pub async fn try_connect(url: &str) -> Result<Self, u16> {
        let address = url.split_once("://").expect("a URL").1;
        let host = address.split('/').next().expect("a host");
        let stream = TcpStream::connect(host).await.expect("the farm accepts connections");
        match client_async(format!("ws://{address}/socket"), stream).await {
            Ok((socket, _)) => Ok(Self { socket, frames: 0, messages: VecDeque::new() }),
            Err(tokio_tungstenite::tungstenite::Error::Http(response)) => Err(response.status().as_u16()),
            Err(error) => panic!("{error}"),
        }
    }

    pub async fn connect(url: &str) -> Self {
        Self::try_connect(url).await.unwrap_or_else(|status| panic!("the live view answers {status}"))
    }

    pub async fn send(&mut self, message: &Value) {
        self.send_text(&message.to_string()).await;
    }

    pub async fn send_text(&mut self, text: &str) {
        let _ = self.socket.send(Message::text(text)).await;
    }

    /// Returns the next message. Frames are counted and not acknowledged.
    pub async fn next(&mut self) -> LiveMessage {
        loop {
            let next = tokio::time::timeout(TIMEOUT, self.socket.next()).await;
            return match next.expect("a message in time") {
                Some(Ok(Message::Binary(frame))) => {
                    self.frames += 1;
                    LiveMessage::Frame(frame.to_vec())
                }
                Some(Ok(Message::Text(text))) => {
                    LiveMessage::Json(serde_json::from_str(&text).expect("JSON"))
                }
                Some(Ok(Message::Close(frame))) => {
                    LiveMessage::Closed(frame.map(|frame| (frame.code.into(), frame.reason.to_string())))
                }
                Some(Ok(_)) => continue,
                Some(Err(_)) | None => LiveMessage::Closed(None),
            };
        }
    }

    /// Returns the next message of this type that matches. Frames on the way are acknowledged.
    pub async fn wait_for(&mut self, kind: &str, matches: impl Fn(&Value) -> bool) -> Value {
        let is_wanted = |message: &Value| message["type"] == kind && matches(message);
        let end = Instant::now() + TIMEOUT;
        while Instant::now() < end {
            if let Some(index) = self.messages.iter().position(is_wanted) {
                return self.messages.remove(index).expect("it is there");
            }
            match self.next().await {
                LiveMessage::Json(message) => self.messages.push_back(message),
                LiveMessage::Frame(_) => self.send(&json!({"type": "ack"})).await,
                LiveMessage::Closed(reason) => panic!("closed while waiting for {kind}: {reason:?}"),
            }
        }
        panic!("no such {kind} message in time; {} frames and {:?}", self.frames, self.messages)
    }

    /// Returns the next frame and acknowledges it.
    pub async fn frame(&mut self) -> Vec<u8> {
        let end = Instant::now() + TIMEOUT;
        while Instant::now() < end {
            match self.next().await {
                LiveMessage::Frame(frame) => {
                    self.send(&json!({"type": "ack"})).await;
                    return frame;
                }
                LiveMessage::Json(message) => self.messages.push_back(message),
                LiveMessage::Closed(reason) => panic!("closed while waiting for a frame: {reason:?}"),
            }
        }
        panic!("no further frame in time; {} frames so far", self.frames)
    }

    /// Waits until the farm closes the connection. Returns the code and text of its close frame.
    pub async fn closed(&mut self) -> Option<(u16, String)> {
        loop {
            if let LiveMessage::Closed(reason) = self.next().await {
                return reason;
            }
        }
    }
}
