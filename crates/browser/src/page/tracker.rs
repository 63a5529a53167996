//! What the page is doing right now, kept up to date from the browser's events: navigations under way, requests
//! in flight, the document on show. Owns that state; waiting on it is [`super::settle`]'s business.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use cdp::{SessionEnd, protocol as p};
use serde::Deserialize;
use tokio::sync::watch;

/// A navigation the page asked for must start within this, else it came to nothing (`javascript:` links do).
const ASKED_LIMIT: Duration = Duration::from_millis(400);

/// How long an answer on a socket is worth waiting for: most of what is said on one wants none.
const SOCKET_PATIENCE: Duration = Duration::from_millis(300);

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) main_frame: String,
    /// The document on show. Changes with every commit.
    pub(crate) document: u64,
    pub(crate) url: String,
    /// The page asked to go somewhere; the browser has not started yet.
    asked: Option<Instant>,
    /// The loader of a main-frame navigation that has started and not ended.
    under_way: Option<String>,
    /// Committed, but its load event has not fired.
    pub(crate) loading: bool,
    requests: HashMap<String, Instant>,
    /// Sockets on which the page has said something that was not answered yet.
    asked_sockets: HashMap<String, Instant>,
    /// The document that was seen never to come to rest.
    restless: Option<u64>,
    pub(crate) gone: Option<SessionEnd>,
}

pub(crate) struct Tracker {
    state: Mutex<State>,
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

impl Tracker {
    pub(crate) fn new() -> Self {
        Self { state: Mutex::default(), changed: watch::Sender::new(0) }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes whenever the state changes after the call.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        let mut changes = self.changed.subscribe();
        changes.mark_unchanged();
        changes
    }

    /// Waits until the state is such.
    pub(crate) async fn until(&self, such: impl Fn(&State) -> bool) {
        let mut changes = self.changes();
        while !such(&self.state()) {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    pub(crate) fn poke(&self) {
        self.changed.send_modify(|version| *version += 1);
    }

    pub(crate) fn lose(&self, gone: &SessionEnd) {
        self.state().gone.get_or_insert_with(|| gone.clone());
        self.poke();
    }

    /// Takes note of an event of the page's session.
    pub(crate) fn note(&self, method: &str, params: &[u8]) {
        let noted = match method {
            p::NETWORK_REQUEST_WILL_BE_SENT
            | p::NETWORK_LOADING_FINISHED
            | p::NETWORK_LOADING_FAILED
            | p::NETWORK_RESPONSE_RECEIVED => self.note_request(method, params),
            p::NETWORK_WEB_SOCKET_FRAME_SENT
            | p::NETWORK_WEB_SOCKET_FRAME_RECEIVED
            | p::NETWORK_WEB_SOCKET_CLOSED => self.note_socket(method, params),
            p::PAGE_FRAME_NAVIGATED => self.note_commit(params),
            p::PAGE_FRAME_REQUESTED_NAVIGATION
            | p::PAGE_FRAME_STARTED_NAVIGATING
            | p::PAGE_FRAME_STARTED_LOADING
            | p::PAGE_FRAME_STOPPED_LOADING
            | p::PAGE_NAVIGATED_WITHIN_DOCUMENT
            | p::PAGE_LIFECYCLE_EVENT => self.note_frame(method, params),
            _ => return,
        };
        match noted {
            Ok(true) => self.poke(),
            Ok(false) => {}
            Err(why) => tracing::debug!(method, why, "an event was not understood"),
        }
    }

    fn note_request(&self, method: &str, params: &[u8]) -> Result<bool, String> {
        let event: RequestEvent = cdp::parse_params(params)?;
        let mut state = self.state();
        match method {
            // Streams and beacons never end or matter to nobody who looks at the page.
            p::NETWORK_REQUEST_WILL_BE_SENT if lasting(&event.kind) => return Ok(false),
            p::NETWORK_REQUEST_WILL_BE_SENT => {
                state.requests.entry(event.request_id).or_insert_with(Instant::now);
            }
            p::NETWORK_RESPONSE_RECEIVED if lasting(&event.kind) => {
                state.requests.remove(&event.request_id);
            }
            p::NETWORK_RESPONSE_RECEIVED => return Ok(false),
            _ => {
                state.requests.remove(&event.request_id);
                if method == p::NETWORK_LOADING_FAILED && state.under_way.as_ref() == Some(&event.request_id)
                {
                    state.under_way = None;
                }
            }
        }
        Ok(true)
    }

    fn note_socket(&self, method: &str, params: &[u8]) -> Result<bool, String> {
        let event: RequestEvent = cdp::parse_params(params)?;
        let mut state = self.state();
        if method == p::NETWORK_WEB_SOCKET_FRAME_SENT {
            state.asked_sockets.insert(event.request_id, Instant::now());
            return Ok(true);
        }
        Ok(state.asked_sockets.remove(&event.request_id).is_some())
    }

    fn note_commit(&self, params: &[u8]) -> Result<bool, String> {
        let FrameNavigated { frame } = cdp::parse_params(params)?;
        if frame.parent_id.is_some() {
            return Ok(false);
        }
        let mut state = self.state();
        state.main_frame = frame.id;
        state.url = frame.url + frame.url_fragment.as_deref().unwrap_or_default();
        state.document += 1;
        state.asked = None;
        state.under_way = None;
        state.loading = true;
        // Whatever the last document was waiting for died with it.
        state.requests.clear();
        state.asked_sockets.clear();
        Ok(true)
    }

    fn note_frame(&self, method: &str, params: &[u8]) -> Result<bool, String> {
        let event: FrameEvent = cdp::parse_params(params)?;
        let mut state = self.state();
        if !state.main_frame.is_empty() && event.frame_id != state.main_frame {
            return Ok(false);
        }
        match method {
            p::PAGE_FRAME_REQUESTED_NAVIGATION if event.disposition == "currentTab" => {
                state.asked = Some(Instant::now());
            }
            p::PAGE_FRAME_STARTED_NAVIGATING if !event.navigation_type.ends_with("ameDocument") => {
                state.asked = None;
                state.under_way = Some(event.loader_id);
            }
            p::PAGE_NAVIGATED_WITHIN_DOCUMENT => {
                state.url = event.url;
                state.asked = None;
            }
            p::PAGE_FRAME_STOPPED_LOADING => {
                state.loading = false;
                state.under_way = None;
            }
            p::PAGE_LIFECYCLE_EVENT if event.name == "load" => state.loading = false,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn lasting(kind: &str) -> bool {
    matches!(kind, "WebSocket" | "EventSource" | "Ping" | "Media" | "CSPViolationReport" | "Preflight")
}

impl State {
    /// A main-frame navigation is on its way.
    pub(crate) fn navigating(&self) -> bool {
        self.under_way.is_some() || self.asked.is_some_and(|at| at.elapsed() < ASKED_LIMIT)
    }

    /// We are about to make the page navigate: count it as on its way before the browser says so.
    pub(crate) fn expect_navigation(&mut self) {
        self.asked = Some(Instant::now());
    }

    /// Requests that began after `since`: the action's own, not a long poll that was there before.
    pub(crate) fn requests_since(&self, since: Instant) -> usize {
        let fresh = |asked: &&Instant| **asked >= since && asked.elapsed() < SOCKET_PATIENCE;
        self.requests.values().filter(|began| **began >= since).count()
            + self.asked_sockets.values().filter(fresh).count()
    }

    pub(crate) fn restless(&self) -> bool {
        self.restless == Some(self.document)
    }

    pub(crate) fn mark_restless(&mut self) {
        self.restless = Some(self.document);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn note(tracker: &Tracker, method: &str, params: &Value) {
        tracker.note(method, params.to_string().as_bytes());
    }

    fn on_page() -> Tracker {
        let tracker = Tracker::new();
        note(&tracker, p::PAGE_FRAME_NAVIGATED, &json!({"frame": {"id": "F", "url": "http://a/"}}));
        note(&tracker, p::PAGE_LIFECYCLE_EVENT, &json!({"frameId": "F", "name": "load"}));
        tracker
    }

    #[test]
    fn a_navigation_is_under_way_from_start_to_commit() {
        let tracker = on_page();
        let started = json!({"frameId": "F", "loaderId": "L", "navigationType": "differentDocument"});
        note(&tracker, p::PAGE_FRAME_STARTED_NAVIGATING, &started);
        assert!(tracker.state().navigating());
        note(&tracker, p::PAGE_FRAME_NAVIGATED, &json!({"frame": {"id": "F", "url": "http://b/"}}));
        let state = tracker.state();
        assert!(!state.navigating() && state.loading);
        assert_eq!((state.document, state.url.as_str()), (2, "http://b/"));
    }

    #[test]
    fn a_navigation_that_fails_is_over() {
        let tracker = on_page();
        let started = json!({"frameId": "F", "loaderId": "L", "navigationType": "differentDocument"});
        note(&tracker, p::PAGE_FRAME_STARTED_NAVIGATING, &started);
        note(&tracker, p::NETWORK_LOADING_FAILED, &json!({"requestId": "L"}));
        assert!(!tracker.state().navigating());
    }

    #[test]
    fn frames_inside_the_page_do_not_count_as_navigation() {
        let tracker = on_page();
        let started = json!({"frameId": "INNER", "loaderId": "L", "navigationType": "differentDocument"});
        note(&tracker, p::PAGE_FRAME_STARTED_NAVIGATING, &started);
        note(
            &tracker,
            p::PAGE_FRAME_NAVIGATED,
            &json!({"frame": {"id": "INNER", "parentId": "F", "url": "x"}}),
        );
        let state = tracker.state();
        assert!(!state.navigating());
        assert_eq!(state.document, 1);
    }

    #[test]
    fn long_polls_from_before_and_streams_do_not_count() {
        let tracker = on_page();
        note(&tracker, p::NETWORK_REQUEST_WILL_BE_SENT, &json!({"requestId": "old", "type": "Fetch"}));
        let since = Instant::now();
        note(
            &tracker,
            p::NETWORK_REQUEST_WILL_BE_SENT,
            &json!({"requestId": "stream", "type": "EventSource"}),
        );
        assert_eq!(tracker.state().requests_since(since), 0);
        note(&tracker, p::NETWORK_REQUEST_WILL_BE_SENT, &json!({"requestId": "new", "type": "Fetch"}));
        assert_eq!(tracker.state().requests_since(since), 1);
        note(&tracker, p::NETWORK_LOADING_FINISHED, &json!({"requestId": "new"}));
        assert_eq!(tracker.state().requests_since(since), 0);
    }

    #[test]
    fn a_word_on_a_socket_waits_a_while_for_its_answer() {
        let tracker = on_page();
        let since = Instant::now();
        note(&tracker, p::NETWORK_WEB_SOCKET_FRAME_SENT, &json!({"requestId": "s", "response": {}}));
        assert_eq!(tracker.state().requests_since(since), 1);
        note(&tracker, p::NETWORK_WEB_SOCKET_FRAME_RECEIVED, &json!({"requestId": "other"}));
        assert_eq!(tracker.state().requests_since(since), 1);
        note(&tracker, p::NETWORK_WEB_SOCKET_FRAME_RECEIVED, &json!({"requestId": "s"}));
        assert_eq!(tracker.state().requests_since(since), 0);
        note(&tracker, p::NETWORK_WEB_SOCKET_FRAME_SENT, &json!({"requestId": "s"}));
        let long_ago = Instant::now().checked_sub(SOCKET_PATIENCE).unwrap();
        tracker.state().asked_sockets.insert("s".into(), long_ago);
        assert_eq!(tracker.state().requests_since(long_ago), 0, "nobody answers");
    }

    #[test]
    fn unknown_events_and_fields_are_tolerated() {
        let tracker = on_page();
        note(&tracker, "Page.somethingNew", &json!({"a": 1}));
        note(&tracker, p::PAGE_LIFECYCLE_EVENT, &json!({"unexpected": true}));
        assert_eq!(tracker.state().document, 1);
    }
}
