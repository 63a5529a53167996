//! WebSockets: messages between page and site are recorded on their way, and later played to the page.

use std::{sync::Arc, time::Duration};

use futures_util::{SinkExt, StreamExt};
use hyper::{
    Response, StatusCode,
    body::Incoming,
    header::{CONNECTION, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_EXTENSIONS, UPGRADE},
    upgrade::{OnUpgrade, Upgraded},
};
use hyper_util::rt::TokioIo;
use replay::{
    Outcome,
    exchange::{Direction, Frame, FrameData},
    scan::StoredExchange,
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Error, Message,
        handshake::derive_accept_key,
        protocol::{CloseFrame, Role},
    },
};

use super::{
    Traffic,
    exchange::{Asked, head, to_http},
    live::Sent,
};
use crate::egress::{ProxyResponse, full_body};

type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// Messages and bytes of one WebSocket that are recorded. Later ones are passed on only.
const MAX_MESSAGES: usize = 100_000;
const MAX_BYTES: usize = 64 << 20;
/// How long an upgrade may take once both sides have agreed to it.
const UPGRADE_TIMEOUT: Duration = Duration::from_secs(30);

impl Traffic {
    /// Connects a page with its site and records what they say.
    pub(super) fn relay(
        self: &Arc<Self>,
        browser: OnUpgrade,
        response: Response<Incoming>,
        mut sent: Sent,
    ) -> ProxyResponse {
        let mut agreed = Response::new(full_body(""));
        *agreed.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        agreed.headers_mut().clone_from(response.headers());
        let (parts, body) = response.into_parts();
        sent.exchange.outcome = Outcome::Response(head(&parts));
        let site = hyper::upgrade::on(Response::from_parts(parts, body));
        let traffic = Arc::clone(self);
        self.writers.spawn(async move {
            let upgrades = async { tokio::try_join!(browser, site) };
            if let Ok(Ok((browser, site))) = tokio::time::timeout(UPGRADE_TIMEOUT, upgrades).await {
                let browser =
                    WebSocketStream::from_raw_socket(TokioIo::new(browser), Role::Server, None).await;
                let site = WebSocketStream::from_raw_socket(TokioIo::new(site), Role::Client, None).await;
                traffic.pass_messages(browser, site, &mut sent).await;
            }
            traffic.append(sent.exchange).await;
        });
        agreed
    }

    /// Passes messages on until one side closes or the lease ends.
    async fn pass_messages(&self, mut browser: Socket, mut site: Socket, sent: &mut Sent) {
        let mut bytes = 0;
        loop {
            let (direction, message) = tokio::select! {
                message = browser.next() => (Direction::Sent, message),
                message = site.next() => (Direction::Received, message),
                () = self.ended.cancelled() => return,
            };
            let Some(Ok(message)) = message else { return };
            let Some(data) = to_data(&message) else { continue };
            bytes += message.len();
            if sent.exchange.frames.len() < MAX_MESSAGES && bytes <= MAX_BYTES {
                let frame = Frame { at_ms: sent.elapsed_ms(), direction, data };
                sent.exchange.frames.push(frame);
            }
            let is_close = message.is_close();
            let passed = match direction {
                Direction::Sent => site.send(message).await,
                Direction::Received => browser.send(message).await,
            };
            if is_close || passed.is_err() {
                return;
            }
        }
    }

    /// Plays a recorded WebSocket: what the site sent, and after each message that the page sent then, its next message now.
    pub(super) fn play_websocket(
        self: &Arc<Self>,
        browser: OnUpgrade,
        asked: &Asked,
        recorded: &replay::Response,
        stored: &StoredExchange,
    ) -> ProxyResponse {
        let mut agreed = to_http(recorded, full_body(""));
        let headers = agreed.headers_mut();
        headers.remove(SEC_WEBSOCKET_EXTENSIONS);
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        let key = asked.request.headers.get("sec-websocket-key").unwrap_or_default();
        if let Ok(accept) = HeaderValue::from_str(&derive_accept_key(key)) {
            headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
        }
        let (traffic, frames) = (Arc::clone(self), stored.frames.clone());
        self.writers.spawn(async move {
            let Ok(Ok(browser)) = tokio::time::timeout(UPGRADE_TIMEOUT, browser).await else { return };
            let socket = WebSocketStream::from_raw_socket(TokioIo::new(browser), Role::Server, None).await;
            tokio::select! {
                _ = play(socket, frames) => {}
                () = traffic.ended.cancelled() => {}
            }
        });
        agreed
    }
}

/// Returns an error when the page closes the connection.
async fn play(mut socket: Socket, frames: Vec<Frame>) -> Result<(), Error> {
    for frame in frames {
        match frame.direction {
            Direction::Received => socket.send(to_message(frame.data)).await?,
            Direction::Sent => next_message(&mut socket).await?,
        }
    }
    // Nothing more was recorded: the connection stays open until the page closes it.
    loop {
        next_message(&mut socket).await?;
    }
}

/// Waits for a message of the page. What it says was matched with nothing: its position decides.
async fn next_message(socket: &mut Socket) -> Result<(), Error> {
    while let Some(message) = socket.next().await {
        if to_data(&message?).is_some() {
            return Ok(());
        }
    }
    Err(Error::ConnectionClosed)
}

/// What is recorded of a message; pings and pongs are answered here and are not recorded.
fn to_data(message: &Message) -> Option<FrameData> {
    Some(match message {
        Message::Text(text) => FrameData::Text(text.as_str().to_owned()),
        Message::Binary(bytes) => FrameData::Binary(bytes.to_vec()),
        Message::Close(frame) => {
            let (code, reason) = match frame {
                Some(frame) => (frame.code.into(), frame.reason.as_str().to_owned()),
                None => (1005, String::new()),
            };
            FrameData::Close { code, reason }
        }
        Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => return None,
    })
}

fn to_message(data: FrameData) -> Message {
    match data {
        FrameData::Text(text) => Message::text(text),
        FrameData::Binary(bytes) => Message::binary(bytes),
        // 1005 and 1006 stand for a missing code and must not be sent.
        FrameData::Close { code: 1005 | 1006, .. } => Message::Close(None),
        FrameData::Close { code, reason } => {
            Message::Close(Some(CloseFrame { code: code.into(), reason: reason.into() }))
        }
        FrameData::Chunk(_) => Message::binary(Vec::new()),
    }
}
