//! The queue of messages to one client. The reader of the browser's pipe fills it and must never wait, so a client that does
//! not read is disconnected when its queue is full.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicUsize, Ordering},
};

use axum::extract::ws::Utf8Bytes;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{MAX_QUEUED_BYTES, MAX_QUEUED_MESSAGES};

/// Why a connection is closed: the code and the text of its close frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CloseReason {
    pub(crate) code: u16,
    pub(crate) text: &'static str,
}

impl CloseReason {
    pub(crate) const LEASE_ENDED: Self = Self { code: 1001, text: "the lease has ended" };
    pub(crate) const BROWSER_GONE: Self = Self { code: 1001, text: "the browser is gone" };
    pub(crate) const TOO_SLOW: Self = Self { code: 1008, text: "messages are not read fast enough" };
    pub(crate) const SILENT: Self = Self { code: 1008, text: "no answer to pings" };
    pub(crate) const PAGE_CLOSED: Self = Self { code: 1001, text: "the page was closed" };
    pub(crate) const NOT_TEXT: Self = Self { code: 1007, text: "the message is not text" };
    pub(crate) const CLOSED_BY_CLIENT: Self = Self { code: 1000, text: "" };
}

/// The sending side. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct Outbox {
    sender: mpsc::Sender<Utf8Bytes>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    queued_bytes: AtomicUsize,
    closing: CancellationToken,
    reason: OnceLock<CloseReason>,
}

/// The receiving side.
pub(crate) struct OutboxReceiver {
    receiver: mpsc::Receiver<Utf8Bytes>,
    shared: Arc<Shared>,
}

pub(crate) fn outbox() -> (Outbox, OutboxReceiver) {
    let (sender, receiver) = mpsc::channel(MAX_QUEUED_MESSAGES);
    let shared = Arc::new(Shared::default());
    (Outbox { sender, shared: Arc::clone(&shared) }, OutboxReceiver { receiver, shared })
}

impl Outbox {
    /// Queues a message; closes the connection if the queue is full.
    pub(crate) fn push(&self, message: Utf8Bytes) {
        let length = message.len();
        let before = self.shared.queued_bytes.fetch_add(length, Ordering::Relaxed);
        let fits = before == 0 || before + length <= MAX_QUEUED_BYTES;
        if !fits || self.sender.try_send(message).is_err() {
            self.close(CloseReason::TOO_SLOW);
        }
    }

    /// Closes the connection; the first reason counts.
    pub(crate) fn close(&self, reason: CloseReason) {
        let _ = self.shared.reason.set(reason);
        self.shared.closing.cancel();
    }

    /// Completes when the connection is to be closed.
    pub(crate) async fn closing(&self) -> CloseReason {
        self.shared.closing.cancelled().await;
        self.shared.reason.get().copied().unwrap_or(CloseReason::CLOSED_BY_CLIENT)
    }
}

impl OutboxReceiver {
    /// Returns a message that is queued already.
    pub(crate) fn try_next(&mut self) -> Option<Utf8Bytes> {
        self.receiver.try_recv().ok()
    }

    pub(crate) async fn next(&mut self) -> Option<Utf8Bytes> {
        let message = self.receiver.recv().await?;
        self.shared.queued_bytes.fetch_sub(message.len(), Ordering::Relaxed);
        Some(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn full_queue_closes_the_connection() {
        let (outbox, mut receiver) = outbox();
        let large = Utf8Bytes::from("x".repeat(MAX_QUEUED_BYTES));
        outbox.push(large.clone());
        assert!(outbox.shared.reason.get().is_none(), "one message of any size fits");
        assert_eq!(receiver.next().await.map(|message| message.len()), Some(large.len()));
        outbox.push(large);
        outbox.push(Utf8Bytes::from_static("x"));
        assert_eq!(outbox.closing().await, CloseReason::TOO_SLOW);
    }
}
