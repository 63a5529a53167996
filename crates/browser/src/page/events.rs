//! Listens to a page's session: keeps the tracker informed, answers dialogs before anyone waits on them, and
//! catches failed visits before they replace the page that was there.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use cdp::{EventHandler, Session, SessionEnd, protocol as p};
use serde::Deserialize;
use serde_json::json;

use super::tracker::Tracker;
use crate::context::Context;

/// A `visit_page` under way: how often it was redirected, and why it failed.
#[derive(Default)]
pub(crate) struct Visit(Mutex<VisitState>);

#[derive(Default)]
struct VisitState {
    redirects: u32,
    failed: Option<Failed>,
}

/// Why the visit's request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failed {
    Because(&'static str),
    /// The browser says no more than that it failed.
    Unsaid,
}

/// Chromium follows as many and shows an error page for the next.
const MOST_REDIRECTS: u32 = 20;

impl Visit {
    fn state(&self) -> MutexGuard<'_, VisitState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn begin(&self) {
        *self.state() = VisitState::default();
    }

    pub(crate) fn failed(&self) -> Option<Failed> {
        self.state().failed
    }

    /// Takes note of an answer to the visit's request; tells whether the visit ends here.
    fn note(&self, paused: &Paused) -> bool {
        let mut state = self.state();
        state.failed = match &paused.response_error_reason {
            Some(reason) => Some(net_error(reason).map_or(Failed::Unsaid, Failed::Because)),
            None if matches!(paused.response_status_code, Some(300..=399)) => {
                state.redirects += 1;
                (state.redirects >= MOST_REDIRECTS).then_some(Failed::Because("net::ERR_TOO_MANY_REDIRECTS"))
            }
            None => None,
        };
        state.failed.is_some()
    }
}

pub(crate) struct PageEvents {
    tracker: Arc<Tracker>,
    visit: Arc<Visit>,
    context: Weak<Context>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Paused {
    request_id: String,
    frame_id: String,
    response_error_reason: Option<String>,
    response_status_code: Option<u16>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Dialog {
    #[serde(default)]
    default_prompt: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WindowOpen {
    #[serde(default)]
    user_gesture: bool,
}

impl PageEvents {
    pub(crate) fn new(tracker: Arc<Tracker>, visit: Arc<Visit>, context: &Arc<Context>) -> Self {
        Self { tracker, visit, context: Arc::downgrade(context) }
    }

    fn paused(&self, session: &Session, paused: &Paused) {
        let main = paused.frame_id == self.tracker.state().main_frame;
        if main && self.visit.note(paused) {
            // Failing as "aborted" keeps Chromium from putting its error page over the page we are on.
            let params = json!({"requestId": paused.request_id, "errorReason": "Aborted"});
            session.send_no_reply(p::FETCH_FAIL_REQUEST, &params);
        } else {
            session.send_no_reply(p::FETCH_CONTINUE_REQUEST, &json!({"requestId": paused.request_id}));
        }
    }
}

impl EventHandler for PageEvents {
    fn on_event(&self, session: &Session, method: &str, params: &[u8]) {
        match method {
            p::PAGE_JAVASCRIPT_DIALOG_OPENING => answer_dialog(session, params),
            p::FETCH_REQUEST_PAUSED => {
                if let Ok(paused) = cdp::parse_params::<Paused>(params) {
                    self.paused(session, &paused);
                }
            }
            p::PAGE_WINDOW_OPEN => {
                if let (Some(context), Ok(open)) =
                    (self.context.upgrade(), cdp::parse_params::<WindowOpen>(params))
                {
                    context.window_announced(open.user_gesture);
                }
            }
            _ => self.tracker.note(method, params),
        }
    }

    fn on_session_end(&self, gone: &SessionEnd) {
        self.tracker.lose(gone);
    }
}

/// Says yes and goes on, with the text the page proposed. Nobody is there to read it.
pub(crate) fn answer_dialog(session: &Session, params: &[u8]) {
    let text = cdp::parse_params::<Dialog>(params).map(|dialog| dialog.default_prompt).unwrap_or_default();
    session.send_no_reply(p::PAGE_HANDLE_JAVASCRIPT_DIALOG, &json!({"accept": true, "promptText": text}));
}

/// Chromium's name for a failure the interception reports. `Failed` covers too much to be worth telling.
fn net_error(reason: &str) -> Option<&'static str> {
    Some(match reason {
        "Aborted" => "net::ERR_ABORTED",
        "TimedOut" => "net::ERR_TIMED_OUT",
        "AccessDenied" => "net::ERR_ACCESS_DENIED",
        "ConnectionClosed" => "net::ERR_CONNECTION_CLOSED",
        "ConnectionReset" => "net::ERR_CONNECTION_RESET",
        "ConnectionRefused" => "net::ERR_CONNECTION_REFUSED",
        "ConnectionAborted" => "net::ERR_CONNECTION_ABORTED",
        "ConnectionFailed" => "net::ERR_CONNECTION_FAILED",
        "NameNotResolved" => "net::ERR_NAME_NOT_RESOLVED",
        "InternetDisconnected" => "net::ERR_INTERNET_DISCONNECTED",
        "AddressUnreachable" => "net::ERR_ADDRESS_UNREACHABLE",
        "BlockedByClient" => "net::ERR_BLOCKED_BY_CLIENT",
        "BlockedByResponse" => "net::ERR_BLOCKED_BY_RESPONSE",
        _ => return None,
    })
}
