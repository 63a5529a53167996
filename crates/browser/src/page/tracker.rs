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

use super::channels::Channels;

/// A requested navigation that does not start within this time is dropped; `javascript:` links never start one.
const NAVIGATION_START_TIMEOUT: Duration = Duration::from_millis(400);

/// Bounds the memory of a page that creates frames without end. More than Chromium allows at a time, which is 1,000: a
/// frame that is not connected would reach the clipboard of the browser.
const MAX_NEW_FRAMES: usize = 2000;

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
    requests: HashMap<String, Request>,
    /// Requests that a virtual clock would wait for without end: event streams, and requests that were not answered.
    streams: HashSet<String>,
    /// How often the virtual time that the page was given has run out, or its clock was stopped before that.
    pub(crate) clock_stops: u64,
    channels: Channels,
    /// When the page last requested a script after its load event: an application that loads its parts on demand.
    late_script: Option<Instant>,
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

/// A request in flight.
#[derive(Clone, Copy, Debug)]
struct Request {
    began: Instant,
    is_script: bool,
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
        self.state().requests.insert(id, Request { began: Instant::now(), is_script: false });
        self.notify();
    }

    pub(crate) fn end_download(&self, id: &str) {
        self.state().requests.remove(id);
        self.notify();
    }

    /// Records that the virtual clock of the page has stopped, or may have been stopped by another page of its process.
    pub(crate) fn set_clock_stopped(&self) {
        self.state().clock_stops += 1;
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
            p::EMULATION_VIRTUAL_TIME_BUDGET_EXPIRED => return self.set_clock_stopped(),
            p::NETWORK_REQUEST_WILL_BE_SENT
            | p::NETWORK_LOADING_FINISHED
            | p::NETWORK_LOADING_FAILED
            | p::NETWORK_RESPONSE_RECEIVED => self.on_request_event(method, params),
            p::NETWORK_WEB_SOCKET_CREATED
            | p::NETWORK_WEB_SOCKET_HANDSHAKE_RESPONSE_RECEIVED
            | p::NETWORK_WEB_SOCKET_FRAME_SENT
            | p::NETWORK_WEB_SOCKET_FRAME_RECEIVED
            | p::NETWORK_WEB_SOCKET_CLOSED
            | p::NETWORK_EVENT_SOURCE_MESSAGE_RECEIVED => self.on_channel_event(method, params),
            p::PAGE_FRAME_NAVIGATED => self.on_commit(params),
            p::PAGE_FRAME_ATTACHED | p::PAGE_FRAME_DETACHED => self.on_subframe_event(method, params),
            p::PAGE_FRAME_REQUESTED_NAVIGATION
            | p::PAGE_FRAME_STARTED_NAVIGATING
            | p::PAGE_FRAME_STARTED_LOADING
            | p::PAGE_FRAME_STOPPED_LOADING
            | p::PAGE_NAVIGATED_WITHIN_DOCUMENT => self.on_frame_event(method, params),
            p::PAGE_LOAD_EVENT_FIRED => {
                self.state().loading = false;
                Ok(true)
            }
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
            p::NETWORK_REQUEST_WILL_BE_SENT => return Ok(state.record_request(event)),
            p::NETWORK_RESPONSE_RECEIVED if event.kind == EVENT_SOURCE => {
                state.requests.remove(&event.request_id);
                state.channels.record_connected(&event.request_id);
            }
            p::NETWORK_RESPONSE_RECEIVED if is_long_lived(&event.kind) => {
                state.requests.remove(&event.request_id);
            }
            p::NETWORK_RESPONSE_RECEIVED => return Ok(false),
            _ => {
                state.requests.remove(&event.request_id);
                state.streams.remove(&event.request_id);
                state.channels.record_closed(&event.request_id);
                if method == p::NETWORK_LOADING_FAILED
                    && state.navigation_loader.as_ref() == Some(&event.request_id)
                {
                    state.navigation_loader = None;
                }
            }
        }
        Ok(true)
    }

    fn on_channel_event(&self, method: &str, params: &[u8]) -> Result<bool, String> {
        let event: RequestEvent = cdp::parse_params(params)?;
        let channels = &mut self.state().channels;
        match method {
            p::NETWORK_WEB_SOCKET_CREATED => channels.record_opened(event.request_id),
            p::NETWORK_WEB_SOCKET_HANDSHAKE_RESPONSE_RECEIVED => {
                channels.record_connected(&event.request_id);
            }
            p::NETWORK_WEB_SOCKET_FRAME_SENT => channels.record_sent(event.request_id),
            p::NETWORK_WEB_SOCKET_CLOSED => return Ok(channels.record_closed(&event.request_id)),
            _ => return Ok(channels.record_received(&event.request_id)),
        }
        Ok(true)
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
        state.streams.clear();
        state.channels.clear();
        state.late_script = None;
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
            _ => return Ok(false),
        }
        Ok(true)
    }
}

const EVENT_SOURCE: &str = "EventSource";

/// Whether a request never ends (streams), or does not change the page (beacons).
fn is_long_lived(kind: &str) -> bool {
    matches!(kind, "WebSocket" | EVENT_SOURCE | "Ping" | "Media" | "CSPViolationReport" | "Preflight")
}

impl PageState {
    /// Whether a main-frame navigation is in progress or about to start.
    pub(crate) fn is_navigating(&self) -> bool {
        self.navigation_loader.is_some()
            || self.requested_navigation.is_some_and(|time| time.elapsed() < NAVIGATION_START_TIMEOUT)
    }

    pub(crate) fn add_new_frame(&mut self, frame: String) {
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

    /// Records that the page has sent a request. Returns whether the state changed.
    fn record_request(&mut self, event: RequestEvent) -> bool {
        if event.kind == EVENT_SOURCE {
            self.streams.insert(event.request_id.clone());
            self.channels.record_opened(event.request_id);
            return true;
        }
        if is_long_lived(&event.kind) {
            return false;
        }
        let is_script = event.kind == "Script";
        if is_script && !self.loading {
            self.late_script = Some(Instant::now());
        }
        self.requests.entry(event.request_id).or_insert_with(|| Request { began: Instant::now(), is_script });
        true
    }

    /// Whether requests are open that will be answered, as far as we know.
    pub(crate) fn has_requests(&self) -> bool {
        !self.requests.is_empty()
    }

    /// Whether the virtual clock cannot wait for all requests.
    pub(crate) fn has_streams(&self) -> bool {
        !self.streams.is_empty()
    }

    /// Stops waiting for the open requests, and for those that are not known to us, with a virtual clock.
    pub(crate) fn give_up_requests(&mut self) {
        self.streams.extend(std::mem::take(&mut self.requests).into_keys());
        self.streams.insert(String::new());
    }

    /// Whether a WebSocket or event stream that was used after `since` is connecting or waits for an answer.
    pub(crate) fn has_waiting_channels(&self, since: Instant) -> bool {
        self.channels.waiting_since(since) > 0
    }

    /// The number of open requests and waiting channels that began after `since`. Earlier ones, such as long polls, do
    /// not count.
    pub(crate) fn requests_since(&self, since: Instant) -> usize {
        let requests = self.requests.values().filter(|request| request.began >= since).count();
        requests + self.channels.waiting_since(since)
    }

    /// Whether the page has done since `since` what applications do while they build themselves: loaded parts of their
    /// code, or opened or used a channel on which content can arrive at any time.
    pub(crate) fn is_building_since(&self, since: Instant) -> bool {
        self.late_script.is_some_and(|requested| requested >= since) || self.channels.is_used_since(since)
    }

    /// Whether the page waits for parts of its code or for a connection that it requested after `since`.
    pub(crate) fn awaits_parts_since(&self, since: Instant) -> bool {
        self.requests.values().any(|request| request.is_script && request.began >= since)
            || self.channels.is_connecting_since(since)
    }

    /// Whether the current document used up its settle budget the last time.
    pub(crate) fn is_busy_page(&self) -> bool {
        self.busy_document == Some(self.document)
    }

    pub(crate) fn set_busy_page(&mut self, is_busy: bool) {
        self.busy_document = is_busy.then_some(self.document);
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
        handle(&tracker, p::PAGE_LOAD_EVENT_FIRED, &json!({"timestamp": 1.0}));
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
        handle(&tracker, p::NETWORK_REQUEST_WILL_BE_SENT, &json!({"requestId": "video", "type": "Media"}));
        assert_eq!(tracker.state().requests_since(since), 0);
        handle(&tracker, p::NETWORK_REQUEST_WILL_BE_SENT, &json!({"requestId": "new", "type": "Fetch"}));
        assert_eq!(tracker.state().requests_since(since), 1);
        handle(&tracker, p::NETWORK_LOADING_FINISHED, &json!({"requestId": "new"}));
        assert_eq!(tracker.state().requests_since(since), 0);
    }

    #[test]
    fn socket_waits_from_creation_to_first_message() {
        let tracker = loaded_page();
        let since = Instant::now();
        for (method, waiting) in [
            (p::NETWORK_WEB_SOCKET_CREATED, 1),
            (p::NETWORK_WEB_SOCKET_HANDSHAKE_RESPONSE_RECEIVED, 1),
            (p::NETWORK_WEB_SOCKET_FRAME_RECEIVED, 0),
            (p::NETWORK_WEB_SOCKET_FRAME_SENT, 1),
            (p::NETWORK_WEB_SOCKET_CLOSED, 0),
        ] {
            handle(&tracker, method, &json!({"requestId": "s", "response": {}}));
            assert_eq!(tracker.state().requests_since(since), waiting, "{method}");
        }
    }

    #[test]
    fn event_stream_waits_from_request_to_first_message() {
        let tracker = loaded_page();
        let since = Instant::now();
        let event = json!({"requestId": "e", "type": "EventSource"});
        for (method, waiting) in [
            (p::NETWORK_REQUEST_WILL_BE_SENT, 1),
            (p::NETWORK_RESPONSE_RECEIVED, 1),
            (p::NETWORK_EVENT_SOURCE_MESSAGE_RECEIVED, 0),
        ] {
            handle(&tracker, method, &event);
            assert_eq!(tracker.state().requests_since(since), waiting, "{method}");
        }
        assert!(tracker.state().is_building_since(since));
    }

    #[test]
    fn only_scripts_requested_after_load_show_an_application() {
        let tracker = Tracker::new();
        let script = json!({"requestId": "a", "type": "Script"});
        handle(&tracker, p::PAGE_FRAME_NAVIGATED, &json!({"frame": {"id": "F", "url": "http://a/"}}));
        let since = Instant::now();
        handle(&tracker, p::NETWORK_REQUEST_WILL_BE_SENT, &script);
        assert!(!tracker.state().is_building_since(since), "every page may have scripts");
        assert!(tracker.state().awaits_parts_since(since));
        handle(&tracker, p::NETWORK_LOADING_FINISHED, &script);
        assert!(!tracker.state().awaits_parts_since(since));
        handle(&tracker, p::PAGE_LOAD_EVENT_FIRED, &json!({"timestamp": 1.0}));
        handle(&tracker, p::NETWORK_REQUEST_WILL_BE_SENT, &script);
        assert!(tracker.state().is_building_since(since));
        let next_action = Instant::now();
        assert!(!tracker.state().is_building_since(next_action), "an action is judged by its own effects");
        handle(&tracker, p::PAGE_FRAME_NAVIGATED, &json!({"frame": {"id": "F", "url": "http://b/"}}));
        assert!(!tracker.state().is_building_since(since), "the next document starts without evidence");
    }

    #[test]
    fn unknown_events_and_fields_are_tolerated() {
        let tracker = Tracker::new();
        handle(
            &tracker,
            p::PAGE_FRAME_NAVIGATED,
            &json!({"frame": {"id": "F", "url": "http://a/", "unknown": 1}}),
        );
        handle(&tracker, "Page.somethingNew", &json!({"a": 1}));
        handle(&tracker, p::PAGE_FRAME_STOPPED_LOADING, &json!({"unexpected": true}));
        let state = tracker.state();
        assert!(state.document == 1 && state.loading);
    }
}
