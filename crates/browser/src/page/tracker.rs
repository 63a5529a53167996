//! Tracks the state of a page from the browser's events, and notifies those who wait for a change, such as
//! [`super::settle`]. [`super::page_state`] has the state.

use std::sync::{Mutex, MutexGuard, PoisonError};

use cdp::{SessionEnd, protocol as p};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use tokio::sync::watch;

use super::page_state::PageState;

pub(crate) struct Tracker {
    state: Mutex<PageState>,
    changed: watch::Sender<u64>,
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
        self.state().begin_download(id);
        self.notify();
    }

    pub(crate) fn end_download(&self, id: &str) {
        self.state().end_download(id);
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
        match method {
            p::EMULATION_VIRTUAL_TIME_BUDGET_EXPIRED => self.set_clock_stopped(),
            p::NETWORK_REQUEST_WILL_BE_SENT
            | p::NETWORK_LOADING_FINISHED
            | p::NETWORK_LOADING_FAILED
            | p::NETWORK_RESPONSE_RECEIVED => self.record(method, params, PageState::record_request_event),
            p::NETWORK_WEB_SOCKET_CREATED
            | p::NETWORK_WEB_SOCKET_HANDSHAKE_RESPONSE_RECEIVED
            | p::NETWORK_WEB_SOCKET_FRAME_SENT
            | p::NETWORK_WEB_SOCKET_FRAME_RECEIVED
            | p::NETWORK_WEB_SOCKET_CLOSED
            | p::NETWORK_EVENT_SOURCE_MESSAGE_RECEIVED => {
                self.record(method, params, PageState::record_channel_event);
            }
            p::PAGE_FRAME_NAVIGATED => self.record(method, params, PageState::record_commit),
            p::PAGE_FRAME_ATTACHED | p::PAGE_FRAME_DETACHED => {
                self.record(method, params, PageState::record_subframe_event);
            }
            p::PAGE_FRAME_REQUESTED_NAVIGATION
            | p::PAGE_FRAME_STARTED_NAVIGATING
            | p::PAGE_FRAME_STARTED_LOADING
            | p::PAGE_FRAME_STOPPED_LOADING
            | p::PAGE_NAVIGATED_WITHIN_DOCUMENT => self.record(method, params, PageState::record_frame_event),
            p::PAGE_LOAD_EVENT_FIRED => {
                self.state().loading = false;
                self.notify();
            }
            _ => {}
        }
    }

    /// Records an event with a function that returns whether the state changed, and notifies the waiters if it did. The
    /// event, which can be large, is parsed before the state is locked.
    fn record<Event: DeserializeOwned>(
        &self,
        method: &str,
        params: &[u8],
        record: fn(&mut PageState, &str, Event) -> bool,
    ) {
        match cdp::parse_params(params) {
            Ok(event) => {
                let changed = record(&mut self.state(), method, event);
                if changed {
                    self.notify();
                }
            }
            Err(reason) => tracing::debug!(method, reason, "ignored an invalid event"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use serde_json::json;

    use super::*;

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
