//! The events of a page that is being shown.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use cdp::{EventHandler, Session, SessionEnd, protocol as p};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Notify;

use super::{ScreencastSink, console};

/// Console messages of one second that are reported; a page can write many more than anybody can read.
const MAX_MESSAGES_PER_SECOND: u32 = 100;
/// Larger console events are not parsed.
const MAX_EVENT_BYTES: usize = 256 << 10;

/// One frame of a screencast.
pub struct Frame {
    pub jpeg: Bytes,
    /// When it was drawn, in seconds since 1970.
    pub time: f64,
    pub next: NextFrame,
}

/// Lets the browser send further frames when it is dropped. The browser has only a few unacknowledged frames on their way, so
/// frames never queue.
pub struct NextFrame {
    session: Session,
    number: i64,
}

impl Drop for NextFrame {
    fn drop(&mut self) {
        self.session.send_no_reply(p::PAGE_SCREENCAST_FRAME_ACK, &json!({"sessionId": self.number}));
    }
}

pub(super) struct PageEvents {
    sink: Arc<dyn ScreencastSink>,
    ended: Arc<Notify>,
    messages: Mutex<MessageCount>,
}

/// The console messages of the current second.
struct MessageCount {
    since: Instant,
    count: u32,
}

#[derive(Deserialize)]
struct ScreencastFrame<'a> {
    data: &'a str,
    #[serde(default)]
    metadata: Metadata,
    #[serde(rename = "sessionId")]
    number: i64,
}

#[derive(Default, Deserialize)]
struct Metadata {
    #[serde(default)]
    timestamp: f64,
}

impl PageEvents {
    pub(super) fn new(sink: Arc<dyn ScreencastSink>, ended: Arc<Notify>) -> Self {
        let messages = Mutex::new(MessageCount { since: Instant::now(), count: 0 });
        Self { sink, ended, messages }
    }

    fn on_frame(&self, session: &Session, params: &[u8]) {
        let Ok(frame) = serde_json::from_slice::<ScreencastFrame<'_>>(params) else { return };
        let next = NextFrame { session: session.clone(), number: frame.number };
        if let Ok(jpeg) = STANDARD.decode(frame.data) {
            self.sink.on_frame(Frame::new(jpeg.into(), frame.metadata.timestamp, next));
        }
    }

    /// Counts a console message. Returns whether it is one of those that are reported.
    fn count_message(&self) -> bool {
        let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        if messages.since.elapsed() > Duration::from_secs(1) {
            *messages = MessageCount { since: Instant::now(), count: 0 };
        }
        messages.count += 1;
        messages.count <= MAX_MESSAGES_PER_SECOND
    }
}

impl EventHandler for PageEvents {
    fn on_event(&self, session: &Session, method: &str, params: &[u8]) {
        match method {
            p::PAGE_SCREENCAST_FRAME => self.on_frame(session, params),
            p::RUNTIME_CONSOLE_API_CALLED | p::RUNTIME_EXCEPTION_THROWN | p::LOG_ENTRY_ADDED => {
                let is_reported = params.len() <= MAX_EVENT_BYTES && self.count_message();
                if let Some(entry) = is_reported.then(|| console::parse(method, params)).flatten() {
                    self.sink.on_console(entry);
                }
            }
            _ if method.starts_with("Network.") => self.sink.on_network(method, params),
            _ => {}
        }
    }

    fn on_session_end(&self, _: &SessionEnd) {
        self.ended.notify_one();
    }
}
