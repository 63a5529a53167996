//! The most recent messages of the event stream, numbered and ready to send, so that a page that reconnects gets only what
//! it missed.

use std::collections::VecDeque;

use bytes::Bytes;

pub(super) const MAX_MESSAGES: usize = 120;
const MAX_BYTES: usize = 4 << 20;

/// One message of the stream, encoded once for all subscribers.
#[derive(Clone)]
pub(super) struct Message {
    pub(super) number: u64,
    pub(super) text: Bytes,
    /// Whether this is the last message: the run has ended.
    pub(super) is_last: bool,
}

/// Messages in the order they were sent, bounded in number and in bytes.
#[derive(Default)]
pub(super) struct History {
    messages: VecDeque<Message>,
    bytes: usize,
    last_number: u64,
}

impl History {
    pub(super) const fn last_number(&self) -> u64 {
        self.last_number
    }

    /// Appends the message with the next number and drops the oldest ones beyond the bounds.
    pub(super) fn push(&mut self, message: Message) {
        self.last_number = message.number;
        self.bytes += message.text.len();
        self.messages.push_back(message);
        while self.messages.len() > MAX_MESSAGES || self.bytes > MAX_BYTES {
            let Some(oldest) = self.messages.pop_front() else { break };
            self.bytes -= oldest.text.len();
        }
    }

    /// Returns the messages after number `seen`, or `None` if some of them are gone or `seen` was never sent.
    pub(super) fn after(&self, seen: u64) -> Option<VecDeque<Bytes>> {
        let oldest = self.messages.front().map_or(self.last_number + 1, |oldest| oldest.number);
        let is_complete = seen <= self.last_number && seen + 1 >= oldest;
        is_complete.then(|| {
            self.messages
                .iter()
                .filter(|message| message.number > seen)
                .map(|message| message.text.clone())
                .collect()
        })
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }
}
