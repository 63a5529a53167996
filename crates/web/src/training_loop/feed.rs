//! The event stream of the loop's page. The files are read once for all open pages, twice a second and only while a page is
//! open. A message is sent when something changed, and now and then to show that the connection is alive.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant, SystemTime},
};

use bytes::Bytes;
use futures_util::{Stream, stream};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::LoopView;

const POLL_INTERVAL: Duration = Duration::from_millis(500);
const IDLE_INTERVAL: Duration = Duration::from_secs(5);
const MAX_SUBSCRIBERS: usize = 256;

pub(super) struct LoopFeed {
    view: Arc<LoopView>,
    /// The latest message.
    sender: watch::Sender<Option<Bytes>>,
    /// Whether a task reads the files at the moment.
    is_polling: Mutex<bool>,
}

impl LoopFeed {
    pub(super) fn new(view: Arc<LoopView>) -> Arc<Self> {
        Arc::new(Self { view, sender: watch::channel(None).0, is_polling: Mutex::new(false) })
    }

    /// Reads the files on a thread where blocking is allowed.
    pub(super) async fn read(&self) -> Option<Value> {
        let view = Arc::clone(&self.view);
        let read = tokio::task::spawn_blocking(move || serde_json::to_value(view.snapshot()));
        read.await.ok()?.ok()
    }

    fn polling(&self) -> MutexGuard<'_, bool> {
        self.is_polling.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a stream of messages that begins with the current state; `None` if too many pages are open.
    pub(super) fn subscribe(
        self: &Arc<Self>,
    ) -> Option<impl Stream<Item = Result<Bytes, Infallible>> + use<>> {
        let mut is_polling = self.polling();
        if self.sender.receiver_count() >= MAX_SUBSCRIBERS {
            return None;
        }
        let mut receiver = self.sender.subscribe();
        receiver.mark_changed();
        if !std::mem::replace(&mut *is_polling, true) {
            // What was sent to earlier pages is old.
            self.sender.send_replace(None);
            tokio::spawn(poll(Arc::downgrade(self)));
        }
        Some(stream::unfold(receiver, |mut receiver| async move {
            loop {
                receiver.changed().await.ok()?;
                let message = receiver.borrow_and_update().clone();
                if let Some(message) = message {
                    return Some((Ok(message), receiver));
                }
            }
        }))
    }
}

async fn poll(feed: Weak<LoopFeed>) {
    let mut interval = tokio::time::interval(POLL_INTERVAL);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut last: Option<(Value, Instant)> = None;
    loop {
        interval.tick().await;
        let Some(feed) = feed.upgrade() else { return };
        {
            let mut is_polling = feed.polling();
            if feed.sender.receiver_count() == 0 {
                *is_polling = false;
                return;
            }
        }
        let Some(snapshot) = feed.read().await else { continue };
        let is_known =
            last.as_ref().is_some_and(|(known, sent)| *known == snapshot && sent.elapsed() < IDLE_INTERVAL);
        if !is_known {
            feed.sender.send_replace(Some(message(&snapshot)));
            last = Some((snapshot, Instant::now()));
        }
    }
}

/// The page computes durations with our clock, not its own.
fn message(snapshot: &Value) -> Bytes {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs_f64();
    let data = json!({"now": now, "snapshot": snapshot});
    format!("event: loop\ndata: {data}\n\n").into()
}
