//! The WebSocket of one client: reads calls, writes the queued messages, and notices a client that is gone.

use std::sync::Arc;

use axum::extract::ws::{CloseFrame, Message, WebSocket};
use bytes::Bytes;
use futures_util::{SinkExt, StreamExt, stream::SplitSink, stream::SplitStream};
use tokio::time::{Duration, Instant, MissedTickBehavior, interval, timeout, timeout_at};

use super::{
    PING_INTERVAL, SILENCE_TIMEOUT,
    client::Client,
    outbox::{CloseReason, Outbox, OutboxReceiver},
};

const TICK: Duration = Duration::from_millis(500);
/// How long a client may take to read the close frame.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Serves the client until it disconnects or its connection is closed from our side.
pub(crate) async fn run(socket: WebSocket, client: Arc<Client>, outbox: Outbox, queue: OutboxReceiver) {
    let (sink, stream) = socket.split();
    let writing = write(sink, queue, outbox.clone());
    let reading = async {
        let reason = read(stream, &client).await;
        outbox.close(reason);
    };
    let ticking = async {
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            client.tick();
        }
    };
    tokio::select! {
        // Ends with the connection; reading ends when the outbox is closed and the close frame was sent.
        () = writing => {}
        () = async { tokio::join!(reading, ticking); } => {}
    }
}

async fn read(mut stream: SplitStream<WebSocket>, client: &Arc<Client>) -> CloseReason {
    loop {
        match timeout_at(Instant::now() + SILENCE_TIMEOUT, stream.next()).await {
            Err(_) => return CloseReason::SILENT,
            Ok(Some(Ok(Message::Text(text)))) => client.handle(&text),
            Ok(Some(Ok(Message::Binary(bytes)))) => match std::str::from_utf8(&bytes) {
                Ok(text) => client.handle(text),
                Err(_) => return CloseReason::NOT_TEXT,
            },
            Ok(Some(Ok(Message::Ping(_) | Message::Pong(_)))) => {}
            Ok(Some(Ok(Message::Close(_)) | Err(_)) | None) => return CloseReason::CLOSED_BY_CLIENT,
        }
    }
}

async fn write(mut sink: SplitSink<WebSocket, Message>, mut queue: OutboxReceiver, outbox: Outbox) {
    let mut ping = interval(PING_INTERVAL);
    ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ping.reset();
    let reason = loop {
        let message = tokio::select! {
            biased;
            reason = outbox.closing() => break reason,
            message = queue.next() => match message {
                Some(message) => Message::Text(message),
                None => return,
            },
            _ = ping.tick() => Message::Ping(Bytes::new()),
        };
        let sent = tokio::select! {
            sent = sink.send(message) => sent,
            reason = outbox.closing() => break reason,
        };
        if sent.is_err() {
            return;
        }
    };
    // Replies that are queued already, such as that to `Browser.close`, still reach the client.
    let farewell = async {
        if reason != CloseReason::TOO_SLOW {
            while let Some(message) = queue.try_next() {
                sink.send(Message::Text(message)).await?;
            }
        }
        let frame = CloseFrame { code: reason.code, reason: reason.text.into() };
        sink.send(Message::Close(Some(frame))).await
    };
    let _ = timeout(CLOSE_TIMEOUT, farewell).await;
}
