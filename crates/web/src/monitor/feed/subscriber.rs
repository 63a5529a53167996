//! One open page: receives the messages of the feed, and starts over from a snapshot if it falls too far behind.

use std::{collections::VecDeque, sync::Arc};

use bytes::Bytes;
use tokio::sync::broadcast::{Receiver, error::RecvError};

use super::{Feed, history::Message};

pub(super) struct Subscriber {
    pub(super) feed: Arc<Feed>,
    /// Messages to send before those of `receiver`.
    pub(super) pending: VecDeque<Bytes>,
    pub(super) receiver: Receiver<Message>,
    pub(super) has_ended: bool,
}

impl Subscriber {
    /// Waits for the next message; `None` after the last one.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        if let Some(pending) = self.pending.pop_front() {
            return Some(pending);
        }
        if self.has_ended {
            return None;
        }
        match self.receiver.recv().await {
            Ok(message) => {
                self.has_ended = message.is_last;
                Some(message.text)
            }
            Err(RecvError::Lagged(_)) => {
                (self.pending, self.receiver) = self.feed.join(None);
                self.pending.pop_front()
            }
            Err(RecvError::Closed) => None,
        }
    }
}
