//! Listens to a page's session: keeps the tracker informed, answers dialogs before anyone waits on them, and
//! catches failed visits before they replace the page that was there.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use cdp::{Events, Gone, Session, protocol as p};
use serde::Deserialize;
use serde_json::json;

use super::tracker::Tracker;
use crate::context::Context;

/// A `visit_page` under way.
#[derive(Default)]
pub(crate) struct Visit(Mutex<Option<String>>);

impl Visit {
    pub(crate) fn take_error(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn set_error(&self, error: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
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
        let request = json!({"requestId": paused.request_id});
        let main = paused.frame_id == self.tracker.state().main_frame;
        match paused.response_error_reason.as_deref().and_then(net_error) {
            // Failing as "aborted" keeps Chromium from putting its error page over the page we are on.
            Some(error) if main => {
                self.visit.set_error(error.to_owned());
                session.tell(
                    p::FETCH_FAIL_REQUEST,
                    &json!({"requestId": paused.request_id, "errorReason": "Aborted"}),
                );
            }
            _ => session.tell(p::FETCH_CONTINUE_REQUEST, &request),
        }
    }
}

impl Events for PageEvents {
    fn event(&self, session: &Session, method: &str, params: &[u8]) {
        match method {
            p::PAGE_JAVASCRIPT_DIALOG_OPENING => answer_dialog(session, params),
            p::FETCH_REQUEST_PAUSED => {
                if let Ok(paused) = cdp::params::<Paused>(params) {
                    self.paused(session, &paused);
                }
            }
            p::PAGE_WINDOW_OPEN => {
                if let (Some(context), Ok(open)) = (self.context.upgrade(), cdp::params::<WindowOpen>(params))
                {
                    context.window_announced(open.user_gesture);
                }
            }
            _ => self.tracker.note(method, params),
        }
    }

    fn gone(&self, gone: &Gone) {
        self.tracker.lose(gone);
    }
}

/// Says yes and goes on, with the text the page proposed. Nobody is there to read it.
pub(crate) fn answer_dialog(session: &Session, params: &[u8]) {
    let text = cdp::params::<Dialog>(params).map(|dialog| dialog.default_prompt).unwrap_or_default();
    session.tell(p::PAGE_HANDLE_JAVASCRIPT_DIALOG, &json!({"accept": true, "promptText": text}));
}

/// Chromium's name for a failure the interception reports. `Failed` covers too much to be worth telling: for
/// those the error page is let through and asked.
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
