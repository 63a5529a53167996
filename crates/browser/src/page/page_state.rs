//! The state of a page: navigations in progress, requests in flight, the current document. Changes by events of the
//! browser, without I/O; [`super::tracker`] receives them and notifies those who wait.

use std::{
    collections::{HashMap, HashSet},
    time::{Duration, Instant},
};

use cdp::{SessionEnd, protocol as p};
use serde::Deserialize;
use serde_json::Value;

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

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FrameEvent {
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
pub(super) struct FrameNavigated {
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
pub(super) struct RequestEvent {
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

const EVENT_SOURCE: &str = "EventSource";

/// Whether a request never ends (streams), or does not change the page (beacons).
fn is_long_lived(kind: &str) -> bool {
    matches!(kind, "WebSocket" | EVENT_SOURCE | "Ping" | "Media" | "CSPViolationReport" | "Preflight")
}

impl PageState {
    /// Records an event of a request. Returns whether the state changed.
    pub(super) fn record_request_event(&mut self, method: &str, event: RequestEvent) -> bool {
        match method {
            p::NETWORK_REQUEST_WILL_BE_SENT => return self.record_request(event),
            p::NETWORK_RESPONSE_RECEIVED if event.kind == EVENT_SOURCE => {
                self.requests.remove(&event.request_id);
                self.channels.record_connected(&event.request_id);
            }
            p::NETWORK_RESPONSE_RECEIVED if is_long_lived(&event.kind) => {
                self.requests.remove(&event.request_id);
            }
            p::NETWORK_RESPONSE_RECEIVED => return false,
            _ => {
                self.requests.remove(&event.request_id);
                self.streams.remove(&event.request_id);
                self.channels.record_closed(&event.request_id);
                if method == p::NETWORK_LOADING_FAILED
                    && self.navigation_loader.as_ref() == Some(&event.request_id)
                {
                    self.navigation_loader = None;
                }
            }
        }
        true
    }

    /// Records an event of a WebSocket or event stream. Returns whether the state changed.
    pub(super) fn record_channel_event(&mut self, method: &str, event: RequestEvent) -> bool {
        let channels = &mut self.channels;
        match method {
            p::NETWORK_WEB_SOCKET_CREATED => channels.record_opened(event.request_id),
            p::NETWORK_WEB_SOCKET_HANDSHAKE_RESPONSE_RECEIVED => {
                channels.record_connected(&event.request_id);
            }
            p::NETWORK_WEB_SOCKET_FRAME_SENT => channels.record_sent(event.request_id),
            p::NETWORK_WEB_SOCKET_CLOSED => return channels.record_closed(&event.request_id),
            _ => return channels.record_received(&event.request_id),
        }
        true
    }

    /// Records that a frame has a new document. Returns whether the state changed.
    pub(super) fn record_commit(&mut self, _: &str, FrameNavigated { frame }: FrameNavigated) -> bool {
        if frame.parent_id.is_some() {
            self.add_new_frame(frame.id);
            return false;
        }
        self.main_frame = frame.id;
        self.url = frame.url + frame.url_fragment.as_deref().unwrap_or_default();
        self.document += 1;
        self.requested_navigation = None;
        self.navigation_loader = None;
        self.loading = true;
        // The requests of the previous document were cancelled with it.
        self.requests.clear();
        self.streams.clear();
        self.channels.clear();
        self.late_script = None;
        self.new_frames.clear();
        self.drag = None;
        self.file_chooser = None;
        true
    }

    /// Records that a frame was attached or detached. Does not change what anyone waits for.
    pub(super) fn record_subframe_event(&mut self, method: &str, event: FrameEvent) -> bool {
        if method == p::PAGE_FRAME_ATTACHED {
            self.add_new_frame(event.frame_id);
        } else {
            self.new_frames.remove(&event.frame_id);
        }
        false
    }

    /// Records how the navigation of a frame goes on. Returns whether the state changed.
    pub(super) fn record_frame_event(&mut self, method: &str, event: FrameEvent) -> bool {
        if !self.main_frame.is_empty() && event.frame_id != self.main_frame {
            return false;
        }
        match method {
            p::PAGE_FRAME_REQUESTED_NAVIGATION if event.disposition == "currentTab" => {
                self.requested_navigation = Some(Instant::now());
            }
            p::PAGE_FRAME_STARTED_NAVIGATING if !event.navigation_type.ends_with("ameDocument") => {
                self.requested_navigation = None;
                self.navigation_loader = Some(event.loader_id);
            }
            p::PAGE_NAVIGATED_WITHIN_DOCUMENT => {
                self.url = event.url;
                self.requested_navigation = None;
            }
            p::PAGE_FRAME_STOPPED_LOADING => {
                self.loading = false;
                self.navigation_loader = None;
            }
            _ => return false,
        }
        true
    }

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

    /// Counts a download as an open request.
    pub(super) fn begin_download(&mut self, id: String) {
        self.requests.insert(id, Request { began: Instant::now(), is_script: false });
    }

    pub(super) fn end_download(&mut self, id: &str) {
        self.requests.remove(id);
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
