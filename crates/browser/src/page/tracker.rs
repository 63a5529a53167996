//! Tracks the state of a page from the browser's events: navigations in progress, requests in flight, the current
//! document. Owns that state; [`super::settle`] waits on it.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use cdp::{SessionEnd, protocol as p};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::watch;

/// A requested navigation that does not start within this time is dropped; `javascript:` links never start one.
const NAVIGATION_START_TIMEOUT: Duration = Duration::from_millis(400);

/// The longest wait for the reply to a WebSocket message; many messages get none.
const SOCKET_REPLY_TIMEOUT: Duration = Duration::from_millis(300);

/// Bounds the memory of a page that creates frames without end.
const MAX_NEW_FRAMES: usize = 100;

#[derive(Debug, Default)]
pub(crate) struct PageState {
    pub(crate) main_frame: String,
    /// The number of the current document; changes with every commit.
    pub(crate) document: u64,
    pub(crate) url: String,
    /// When the page requested a navigation that the browser has not started yet.
    requested_navigation: Option<Instant>,
    /// The loader id of a main-frame navigation that has started and not ended.
    navigation_loader: Option<String>,
    /// Whether the document is committed but its load event has not fired.
    pub(crate) loading: bool,
    requests: HashMap<String, Instant>,
    /// WebSockets on which the page has sent a message that was not answered yet.
    awaited_sockets: HashMap<String, Instant>,
    /// The file chooser that the page has opened last.
    pub(crate) file_chooser: Option<FileChooser>,
    /// The data of a drag that the page has started and the browser has handed to us.
    pub(crate) drag: Option<Value>,
    /// Frames with a new document, which are not connected to the clipboard yet.
    new_frames: HashSet<String>,
    /// The document that has used up its settle budget.
    busy_document: Option<u64>,
    pub(crate) ended: Option<SessionEnd>,
}

pub(crate) struct Tracker {
    state: Mutex<PageState>,
    changed: watch::Sender<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FrameEvent {
    frame_id: String,
    #[serde(default)]
    loader_id: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    url: String,
    #[serde(default)]
    navigation_type: String,
    #[serde(default)]
    disposition: String,
}

#[derive(Deserialize)]
struct FrameNavigated {
    frame: Frame,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Frame {
    parent_id: Option<String>,
    id: String,
    url: String,
    #[serde(default)]
    url_fragment: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RequestEvent {
    request_id: String,
    #[serde(default, rename = "type")]
    kind: String,
}

/// A file chooser that a page has opened.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FileChooser {
    pub(crate) mode: String,
    /// The file input; a chooser that a script has opened by itself has none.
    pub(crate) backend_node_id: Option<i64>,
}

#[derive(Deserialize)]
struct InterceptedDrag {
    data: Value,
}

impl Tracker {
    pub(crate) fn new() -> Self {
        Self { state: Mutex::default(), changed: watch::Sender::new(0) }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, PageState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a receiver that is notified of every state change after this call.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        let mut changes = self.changed.subscribe();
        changes.mark_unchanged();
        changes
    }

    /// Waits until the predicate holds.
    pub(crate) async fn wait_until(&self, predicate: impl Fn(&PageState) -> bool) {
        let mut changes = self.changes();
        while !predicate(&self.state()) {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Notifies the waiters of a state change.
    pub(crate) fn notify(&self) {
        self.changed.send_modify(|version| *version += 1);
    }

    /// Records that the page's session has ended.
    pub(crate) fn set_ended(&self, end: &SessionEnd) {
        self.state().ended.get_or_insert_with(|| end.clone());
        self.notify();
    }

    /// Counts a download as an open request.
    pub(crate) fn begin_download(&self, id: String) {
        self.state().requests.insert(id, Instant::now());
        self.notify();
    }

    pub(crate) fn end_download(&self, id: &str) {
        self.state().requests.remove(id);
        self.notify();
    }

    /// Records that the page has opened a file chooser.
    pub(crate) fn set_file_chooser(&self, params: &[u8]) {
        if let Ok(chooser) = cdp::parse_params(params) {
            self.state().file_chooser = Some(chooser);
            self.notify();
        }
    }

    /// Records the data of a drag that the page has started.
    pub(crate) fn set_intercepted_drag(&self, params: &[u8]) {
        if let Ok(InterceptedDrag { data }) = cdp::parse_params(params) {
            self.state().drag = Some(data);
            self.notify();
        }
    }

    /// Updates the state from an event of the page's session.
    pub(crate) fn handle_event(&self, method: &str, params: &[u8]) {
        let changed = match method {
            p::NETWORK_REQUEST_WILL_BE_SENT
            | p::NETWORK_LOADING_FINISHED
            | p::NETWORK_LOADING_FAILED
            | p::NETWORK_RESPONSE_RECEIVED => self.on_request_event(method, params),
            p::NETWORK_WEB_SOCKET_FRAME_SENT
            | p::NETWORK_WEB_SOCKET_FRAME_RECEIVED
            | p::NETWORK_WEB_SOCKET_CLOSED => self.on_socket_event(method, params),
            p::PAGE_FRAME_NAVIGATED => self.on_commit(params),
            p::PAGE_FRAME_ATTACHED | p::PAGE_FRAME_DETACHED => self.on_subframe_event(method, params),
            p::PAGE_FRAME_REQUESTED_NAVIGATION
            | p::PAGE_FRAME_STARTED_NAVIGATING
            | p::PAGE_FRAME_STARTED_LOADING
            | p::PAGE_FRAME_STOPPED_LOADING
            | p::PAGE_NAVIGATED_WITHIN_DOCUMENT
            | p::PAGE_LIFECYCLE_EVENT => self.on_frame_event(method, params),
            _ => return,
        };
        match changed {
            Ok(true) => self.notify(),
            Ok(false) => {}
            Err(reason) => tracing::debug!(method, reason, "ignored an invalid event"),
        }
    }

    fn on_request_event(&self, method: &str, params: &[u8]) -> Result<bool, String> {
        let event: RequestEvent = cdp::parse_params(params)?;
        let mut state = self.state();
        match method {
            // Streams never end, and beacons do not change the page.
            p::NETWORK_REQUEST_WILL_BE_SENT if is_long_lived(&event.kind) => return Ok(false),
            p::NETWORK_REQUEST_WILL_BE_SENT => {
                state.requests.entry(event.request_id).or_insert_with(Instant::now);
            }
            p::NETWORK_RESPONSE_RECEIVED if is_long_lived(&event.kind) => {
                state.requests.remove(&event.request_id);
            }
            p::NETWORK_RESPONSE_RECEIVED => return Ok(false),
            _ => {
                state.requests.remove(&event.request_id);
                if method == p::NETWORK_LOADING_FAILED
                    && state.navigation_loader.as_ref() == Some(&event.request_id)
                {
                    state.navigation_loader = None;
                }
            }
        }
        Ok(true)
    }

    fn on_socket_event(&self, method: &str, params: &[u8]) -> Result<bool, String> {
        let event: RequestEvent = cdp::parse_params(params)?;
        let mut state = self.state();
        if method == p::NETWORK_WEB_SOCKET_FRAME_SENT {
            state.awaited_sockets.insert(event.request_id, Instant::now());
            return Ok(true);
        }
        Ok(state.awaited_sockets.remove(&event.request_id).is_some())
    }

    fn on_commit(&self, params: &[u8]) -> Result<bool, String> {
        let FrameNavigated { frame } = cdp::parse_params(params)?;
        let mut state = self.state();
        if frame.parent_id.is_some() {
            state.add_new_frame(frame.id);
            return Ok(false);
        }
        state.main_frame = frame.id;
        state.url = frame.url + frame.url_fragment.as_deref().unwrap_or_default();
        state.document += 1;
        state.requested_navigation = None;
        state.navigation_loader = None;
        state.loading = true;
        // The requests of the previous document were cancelled with it.
        state.requests.clear();
        state.awaited_sockets.clear();
        state.new_frames.clear();
        state.drag = None;
        state.file_chooser = None;
        Ok(true)
    }

    fn on_subframe_event(&self, method: &str, params: &[u8]) -> Result<bool, String> {
        let event: FrameEvent = cdp::parse_params(params)?;
        let mut state = self.state();
        if method == p::PAGE_FRAME_ATTACHED {
            state.add_new_frame(event.frame_id);
        } else {
            state.new_frames.remove(&event.frame_id);
        }
        Ok(false)
    }

    fn on_frame_event(&self, method: &str, params: &[u8]) -> Result<bool, String> {
        let event: FrameEvent = cdp::parse_params(params)?;
        let mut state = self.state();
        if !state.main_frame.is_empty() && event.frame_id != state.main_frame {
            return Ok(false);
        }
        match method {
            p::PAGE_FRAME_REQUESTED_NAVIGATION if event.disposition == "currentTab" => {
                state.requested_navigation = Some(Instant::now());
            }
            p::PAGE_FRAME_STARTED_NAVIGATING if !event.navigation_type.ends_with("ameDocument") => {
                state.requested_navigation = None;
                state.navigation_loader = Some(event.loader_id);
            }
            p::PAGE_NAVIGATED_WITHIN_DOCUMENT => {
                state.url = event.url;
                state.requested_navigation = None;
            }
            p::PAGE_FRAME_STOPPED_LOADING => {
                state.loading = false;
                state.navigation_loader = None;
            }
            p::PAGE_LIFECYCLE_EVENT if event.name == "load" => state.loading = false,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn is_long_lived(kind: &str) -> bool {
    matches!(kind, "WebSocket" | "EventSource" | "Ping" | "Media" | "CSPViolationReport" | "Preflight")
}

impl PageState {
    /// Whether a main-frame navigation is in progress or about to start.
    pub(crate) fn is_navigating(&self) -> bool {
        self.navigation_loader.is_some()
            || self.requested_navigation.is_some_and(|time| time.elapsed() < NAVIGATION_START_TIMEOUT)
    }

    fn add_new_frame(&mut self, frame: String) {
        if self.new_frames.len() < MAX_NEW_FRAMES {
            self.new_frames.insert(frame);
        }
    }

    /// Takes the frames that have got a new document since the last call.
    pub(crate) fn take_new_frames(&mut self) -> HashSet<String> {
        std::mem::take(&mut self.new_frames)
    }

    /// Records that we are about to start a navigation, before the browser reports it.
    pub(crate) fn expect_navigation(&mut self) {
        self.requested_navigation = Some(Instant::now());
    }

    /// The number of open requests that began after `since`. Earlier ones, such as long polls, do not count.
    pub(crate) fn requests_since(&self, since: Instant) -> usize {
        let is_recent = |sent: &&Instant| **sent >= since && sent.elapsed() < SOCKET_REPLY_TIMEOUT;
        self.requests.values().filter(|began| **began >= since).count()
            + self.awaited_sockets.values().filter(is_recent).count()
    }

    /// Whether the current document has used up its settle budget before.
    pub(crate) fn is_busy_page(&self) -> bool {
        self.busy_document == Some(self.document)
    }

    pub(crate) fn mark_busy_page(&mut self) {
        self.busy_document = Some(self.document);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn handle(tracker: &Tracker, method: &str, params: &Value) {
        tracker.handle_event(method, params.to_string().as_bytes());
    }

    fn loaded_page() -> Tracker {
        let tracker = Tracker::new();
        handle(&tracker, p::PAGE_FRAME_NAVIGATED, &json!({"frame": {"id": "F", "url": "http://a/"}}));
        handle(&tracker, p::PAGE_LIFECYCLE_EVENT, &json!({"frameId": "F", "name": "load"}));
        tracker
    }

    #[test]
    fn navigation_lasts_from_start_to_commit() {
        let tracker = loaded_page();
        let started = json!({"frameId": "F", "loaderId": "L", "navigationType": "differentDocument"});
        handle(&tracker, p::PAGE_FRAME_STARTED_NAVIGATING, &started);
        assert!(tracker.state().is_navigating());
        handle(&tracker, p::PAGE_FRAME_NAVIGATED, &json!({"frame": {"id": "F", "url": "http://b/"}}));
        let state = tracker.state();
        assert!(!state.is_navigating() && state.loading);
        assert_eq!((state.document, state.url.as_str()), (2, "http://b/"));
    }

    #[test]
    fn failed_navigation_ends() {
        let tracker = loaded_page();
        let started = json!({"frameId": "F", "loaderId": "L", "navigationType": "differentDocument"});
        handle(&tracker, p::PAGE_FRAME_STARTED_NAVIGATING, &started);
        handle(&tracker, p::NETWORK_LOADING_FAILED, &json!({"requestId": "L"}));
        assert!(!tracker.state().is_navigating());
    }

    #[test]
    fn subframe_navigation_is_ignored() {
        let tracker = loaded_page();
        let started = json!({"frameId": "INNER", "loaderId": "L", "navigationType": "differentDocument"});
        handle(&tracker, p::PAGE_FRAME_STARTED_NAVIGATING, &started);
        handle(
            &tracker,
            p::PAGE_FRAME_NAVIGATED,
            &json!({"frame": {"id": "INNER", "parentId": "F", "url": "x"}}),
        );
        let state = tracker.state();
        assert!(!state.is_navigating());
        assert_eq!(state.document, 1);
    }

    #[test]
    fn earlier_requests_and_streams_are_ignored() {
        let tracker = loaded_page();
        handle(&tracker, p::NETWORK_REQUEST_WILL_BE_SENT, &json!({"requestId": "old", "type": "Fetch"}));
        let since = Instant::now();
        handle(
            &tracker,
            p::NETWORK_REQUEST_WILL_BE_SENT,
            &json!({"requestId": "stream", "type": "EventSource"}),
        );
        assert_eq!(tracker.state().requests_since(since), 0);
        handle(&tracker, p::NETWORK_REQUEST_WILL_BE_SENT, &json!({"requestId": "new", "type": "Fetch"}));
        assert_eq!(tracker.state().requests_since(since), 1);
        handle(&tracker, p::NETWORK_LOADING_FINISHED, &json!({"requestId": "new"}));
        assert_eq!(tracker.state().requests_since(since), 0);
    }

    #[test]
    fn socket_message_awaits_reply_until_timeout() {
        let tracker = loaded_page();
        let since = Instant::now();
        handle(&tracker, p::NETWORK_WEB_SOCKET_FRAME_SENT, &json!({"requestId": "s", "response": {}}));
        assert_eq!(tracker.state().requests_since(since), 1);
        handle(&tracker, p::NETWORK_WEB_SOCKET_FRAME_RECEIVED, &json!({"requestId": "other"}));
        assert_eq!(tracker.state().requests_since(since), 1);
        handle(&tracker, p::NETWORK_WEB_SOCKET_FRAME_RECEIVED, &json!({"requestId": "s"}));
        assert_eq!(tracker.state().requests_since(since), 0);
        handle(&tracker, p::NETWORK_WEB_SOCKET_FRAME_SENT, &json!({"requestId": "s"}));
        let long_ago = Instant::now().checked_sub(SOCKET_REPLY_TIMEOUT).unwrap();
        tracker.state().awaited_sockets.insert("s".into(), long_ago);
        assert_eq!(tracker.state().requests_since(long_ago), 0, "no reply within the timeout");
    }

    #[test]
    fn unknown_events_and_fields_are_tolerated() {
        let tracker = loaded_page();
        handle(&tracker, "Page.somethingNew", &json!({"a": 1}));
        handle(&tracker, p::PAGE_LIFECYCLE_EVENT, &json!({"unexpected": true}));
        assert_eq!(tracker.state().document, 1);
    }
}
