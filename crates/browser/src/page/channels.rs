//! Tracks the channels on which the server sends messages at any time: WebSockets and event streams. The protocol does not
//! tell which message answers which, so a channel that the page has used counts as waiting for a limited time.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

/// The longest wait for the answer to a message, on a channel whose messages are answered.
const REPLY_TIMEOUT: Duration = Duration::from_millis(600);
/// The same on a channel whose last message was not answered; many messages get no answer.
const SHORT_REPLY_TIMEOUT: Duration = Duration::from_millis(150);

/// The longest wait for a connection. Some servers accept it only when what it belongs to has started.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(6);

/// The channels of a document.
#[derive(Debug, Default)]
pub(crate) struct Channels {
    /// The open ones, by request id.
    by_id: HashMap<String, Channel>,
    /// When the page last opened a channel or sent a message, also on a channel that is closed now.
    last_used: Option<Instant>,
}

#[derive(Debug)]
struct Channel {
    state: ChannelState,
    /// When the page opened the channel or last sent a message on it.
    used: Instant,
    /// Whether the previous message was not answered in time.
    was_unanswered: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChannelState {
    /// The server has not accepted the connection yet.
    Connecting,
    /// The page has sent a message, or has just connected, and the server has not sent one since.
    Waiting,
    /// The last message came from the server.
    Answered,
}

impl Channels {
    pub(crate) fn record_opened(&mut self, id: String) {
        let used = Instant::now();
        self.last_used = Some(used);
        self.by_id.insert(id, Channel { state: ChannelState::Connecting, used, was_unanswered: false });
    }

    pub(crate) fn record_connected(&mut self, id: &str) {
        if let Some(channel) = self.by_id.get_mut(id)
            && channel.state == ChannelState::Connecting
        {
            (channel.state, channel.used) = (ChannelState::Waiting, Instant::now());
        }
    }

    pub(crate) fn record_sent(&mut self, id: String) {
        let used = Instant::now();
        self.last_used = Some(used);
        let unknown = Channel { state: ChannelState::Answered, used, was_unanswered: false };
        let channel = self.by_id.entry(id).or_insert(unknown);
        channel.was_unanswered = channel.has_timed_out();
        (channel.state, channel.used) = (ChannelState::Waiting, used);
    }

    /// Records a message of the server. Returns whether the channel was waiting for one.
    pub(crate) fn record_received(&mut self, id: &str) -> bool {
        let Some(channel) = self.by_id.get_mut(id) else { return false };
        let was_waiting = channel.state != ChannelState::Answered;
        (channel.state, channel.was_unanswered) = (ChannelState::Answered, false);
        was_waiting
    }

    pub(crate) fn record_closed(&mut self, id: &str) -> bool {
        self.by_id.remove(id).is_some()
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The number of channels used since `since` that are connecting or wait for an answer.
    pub(crate) fn waiting_since(&self, since: Instant) -> usize {
        self.by_id.values().filter(|channel| channel.used >= since && channel.is_waiting()).count()
    }

    /// Whether the page is connecting a channel that it opened after `since`.
    pub(crate) fn is_connecting_since(&self, since: Instant) -> bool {
        self.by_id.values().any(|channel| channel.used >= since && channel.is_connecting())
    }

    /// Whether the page has opened a channel or sent a message since `since`.
    pub(crate) fn is_used_since(&self, since: Instant) -> bool {
        self.last_used.is_some_and(|used| used >= since)
    }
}

impl Channel {
    fn is_waiting(&self) -> bool {
        match self.state {
            ChannelState::Connecting => self.is_connecting(),
            ChannelState::Waiting => self.used.elapsed() < self.reply_timeout(),
            ChannelState::Answered => false,
        }
    }

    fn is_connecting(&self) -> bool {
        self.state == ChannelState::Connecting && self.used.elapsed() < CONNECT_TIMEOUT
    }

    fn has_timed_out(&self) -> bool {
        self.state == ChannelState::Waiting && self.used.elapsed() >= self.reply_timeout()
    }

    fn reply_timeout(&self) -> Duration {
        if self.was_unanswered { SHORT_REPLY_TIMEOUT } else { REPLY_TIMEOUT }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets a channel look as if it had last been used this long ago.
    fn age(channels: &mut Channels, id: &str, age: Duration) -> Instant {
        let used = Instant::now().checked_sub(age).unwrap();
        channels.by_id.get_mut(id).unwrap().used = used;
        used
    }

    #[test]
    fn message_waits_for_answer_on_its_channel() {
        let mut channels = Channels::default();
        let since = Instant::now();
        channels.record_sent("s".into());
        assert_eq!(channels.waiting_since(since), 1);
        assert!(!channels.record_received("other"));
        assert_eq!(channels.waiting_since(since), 1);
        assert!(channels.record_received("s"));
        assert_eq!(channels.waiting_since(since), 0);
        assert!(channels.is_used_since(since));
    }

    #[test]
    fn unanswered_message_waits_until_timeout_and_the_next_one_for_less() {
        let mut channels = Channels::default();
        channels.record_sent("s".into());
        let since = age(&mut channels, "s", REPLY_TIMEOUT);
        assert_eq!(channels.waiting_since(since), 0, "no answer within the timeout");
        channels.record_sent("s".into());
        assert_eq!(channels.waiting_since(since), 1);
        assert_eq!(channels.by_id["s"].reply_timeout(), SHORT_REPLY_TIMEOUT);
        channels.record_received("s");
        channels.record_sent("s".into());
        assert_eq!(
            channels.by_id["s"].reply_timeout(),
            REPLY_TIMEOUT,
            "an answer restores the longer timeout"
        );
    }

    #[test]
    fn connecting_channel_waits_longer_than_a_message() {
        let mut channels = Channels::default();
        channels.record_opened("s".into());
        let since = age(&mut channels, "s", 2 * REPLY_TIMEOUT);
        assert!(channels.is_connecting_since(since));
        assert_eq!(channels.waiting_since(since), 1);
        channels.record_connected("s");
        assert!(!channels.is_connecting_since(since));
        assert_eq!(channels.waiting_since(since), 1, "a server often sends the first message");
        let opened = channels.last_used.unwrap();
        channels.record_closed("s");
        assert_eq!(channels.waiting_since(since), 0);
        assert!(channels.is_used_since(opened), "a closed channel was still used");
    }

    #[test]
    fn connection_that_is_never_accepted_times_out() {
        let mut channels = Channels::default();
        channels.record_opened("s".into());
        let since = age(&mut channels, "s", CONNECT_TIMEOUT);
        assert_eq!(channels.waiting_since(since), 0);
        assert!(!channels.is_connecting_since(since));
    }

    #[test]
    fn channel_used_before_is_ignored() {
        let mut channels = Channels::default();
        channels.record_opened("s".into());
        channels.record_sent("t".into());
        let since = Instant::now() + Duration::from_millis(1);
        assert_eq!(channels.waiting_since(since), 0);
        assert!(!channels.is_used_since(since) && !channels.is_connecting_since(since));
    }
}
