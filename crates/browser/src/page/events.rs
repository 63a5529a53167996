//! Handles the events of a page's session: passes them to the tracker, accepts dialogs, and intercepts failed visits
//! before their error page replaces the current page.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use cdp::{EventHandler, Session, SessionEnd, protocol as p};
use serde::Deserialize;
use serde_json::json;
use url::Url;

use super::{tracker::Tracker, workers::Workers};
use crate::{context::Context, emulation::is_blocked_document, files::DownloadChange};

/// The progress of a `visit_page`: the number of redirects, and why it failed.
#[derive(Default)]
pub(crate) struct Visit(Mutex<VisitState>);

#[derive(Default)]
struct VisitState {
    /// Whether a visit is in progress. Responses to other navigations are continued.
    is_active: bool,
    redirects: u32,
    failure: Option<VisitFailure>,
    /// The URL of the request that failed: the last one of a chain of redirects.
    failed_url: Option<String>,
}

/// Ends the visit when it is dropped.
pub(crate) struct VisitGuard<'a>(&'a Visit);

impl Drop for VisitGuard<'_> {
    fn drop(&mut self) {
        self.0.state().is_active = false;
    }
}

/// Why the request of a visit failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VisitFailure {
    /// Chromium's name of the network error.
    NetError(&'static str),
    /// The browser reports only that the request failed.
    Unspecified,
    /// The site redirects to an address that pages may not have, such as `file:`.
    RefusedRedirect,
}

/// With this header a proxy says that the response is not the site's: its value is the error that a browser without a proxy
/// would have, such as `NameNotResolved`.
pub const PROXY_ERROR_HEADER: &str = "x-webgym-proxy-error";

/// Chromium's own limit; at the next redirect it shows an error page.
const MAX_REDIRECTS: u32 = 20;

impl Visit {
    fn state(&self) -> MutexGuard<'_, VisitState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a visit, which lasts until the guard is dropped. Its failure is kept until the next one.
    #[must_use]
    pub(crate) fn begin(&self) -> VisitGuard<'_> {
        *self.state() = VisitState { is_active: true, ..VisitState::default() };
        VisitGuard(self)
    }

    pub(crate) fn failure(&self) -> Option<VisitFailure> {
        self.state().failure
    }

    pub(crate) fn failed_url(&self) -> Option<String> {
        self.state().failed_url.clone()
    }

    /// Records a response to the visit's request. Returns whether a visit is in progress and has failed.
    fn record_response(&self, paused: &PausedResponse) -> bool {
        let mut state = self.state();
        if !state.is_active {
            return false;
        }
        state.failure = match &paused.response_error_reason {
            Some(reason) => Some(net_error(reason).map_or(VisitFailure::Unspecified, VisitFailure::NetError)),
            None if matches!(paused.response_status_code, Some(300..=399)) => {
                state.redirects += 1;
                if let Some(target) = paused.forbidden_redirect() {
                    (state.failure, state.failed_url) = (Some(VisitFailure::RefusedRedirect), Some(target));
                    return true;
                }
                (state.redirects >= MAX_REDIRECTS)
                    .then_some(VisitFailure::NetError("net::ERR_TOO_MANY_REDIRECTS"))
            }
            None => paused.proxy_error().map(VisitFailure::NetError),
        };
        state.failed_url = state.failure.is_some().then(|| paused.request.url.clone());
        state.failure.is_some()
    }
}

pub(crate) struct PageEvents {
    tracker: Arc<Tracker>,
    visit: Arc<Visit>,
    context: Weak<Context>,
    target: String,
    workers: Arc<Workers>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PausedResponse {
    request_id: String,
    frame_id: String,
    #[serde(default)]
    resource_type: String,
    response_error_reason: Option<String>,
    /// Websites can send any number.
    response_status_code: Option<i64>,
    #[serde(default)]
    response_headers: Vec<Header>,
    request: PausedRequest,
}

#[derive(Deserialize)]
struct Header {
    name: String,
    value: String,
}

#[derive(Deserialize)]
struct PausedRequest {
    url: String,
}

impl PausedResponse {
    /// Whether this is a request instead of a response.
    fn is_request(&self) -> bool {
        self.response_error_reason.is_none() && self.response_status_code.is_none()
    }

    fn is_document(&self) -> bool {
        self.resource_type == "Document"
    }

    fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.response_headers.iter();
        headers.find(|header| header.name.eq_ignore_ascii_case(name)).map(|header| header.value.as_str())
    }

    /// The error that the proxy reports in place of the site's response.
    fn proxy_error(&self) -> Option<&'static str> {
        let error = self.header(PROXY_ERROR_HEADER)?;
        Some(net_error(error).unwrap_or("net::ERR_FAILED"))
    }

    /// Where a redirect leads, if a website may not lead there.
    fn forbidden_redirect(&self) -> Option<String> {
        let target = Url::parse(&self.request.url).ok()?.join(self.header("location")?).ok()?;
        (!matches!(target.scheme(), "http" | "https")).then(|| target.to_string())
    }
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
    pub(crate) fn new(
        tracker: Arc<Tracker>,
        visit: Arc<Visit>,
        context: &Arc<Context>,
        target: &str,
        workers: Arc<Workers>,
    ) -> Self {
        Self { tracker, visit, context: Arc::downgrade(context), target: target.to_owned(), workers }
    }

    /// Accepts a dialog, unless a CDP client answers the dialogs of this page.
    fn on_dialog(&self, session: &Session, params: &[u8]) {
        let is_claimed =
            self.context.upgrade().is_some_and(|context| context.clients().is_claimed(&self.target));
        if !is_claimed {
            accept_dialog(session, params);
        }
    }

    /// Refuses what the options of the session refuse, and keeps the current page if a visit has failed.
    fn on_paused(&self, session: &Session, mut paused: PausedResponse) {
        let is_refused = paused.is_request() && self.is_refused(&paused);
        if is_refused {
            // As if the browser had refused it: from here on it is a failed response.
            paused.response_error_reason = Some("BlockedByClient".to_owned());
        }
        let is_page = paused.is_document() && paused.frame_id == self.tracker.state().main_frame;
        let has_failed = is_page && !paused.is_request() && self.visit.record_response(&paused);
        // With the reason "Aborted" Chromium keeps the current page instead of showing its error page.
        let reason = if has_failed || (is_page && is_refused) {
            Some("Aborted")
        } else {
            is_refused.then_some("BlockedByClient")
        };
        let (method, params) = match reason {
            Some(reason) => {
                (p::FETCH_FAIL_REQUEST, json!({"requestId": paused.request_id, "errorReason": reason}))
            }
            None => (p::FETCH_CONTINUE_REQUEST, json!({"requestId": paused.request_id})),
        };
        session.send_no_reply(method, &params);
    }

    /// Whether the options of the session refuse a request that is paused for them.
    fn is_refused(&self, paused: &PausedResponse) -> bool {
        let Some(context) = self.context.upgrade() else { return false };
        !paused.is_document() || is_blocked_document(context.session_options(), &paused.request.url)
    }
}

#[derive(Deserialize)]
struct Navigated {
    frame: NavigatedFrame,
}

#[derive(Deserialize)]
struct NavigatedFrame {
    url: String,
}

impl PageEvents {
    /// Records a download. Its page settles when the download has ended.
    fn on_download(&self, session: &Session, method: &str, params: &[u8]) {
        let Some(context) = self.context.upgrade().filter(|context| context.files().keeps_downloads()) else {
            return;
        };
        match context.files().handle_event(session, context.id(), method, params) {
            Some(DownloadChange::Begun(id)) => self.tracker.begin_download(id),
            Some(DownloadChange::Ended(id)) => self.tracker.end_download(&id),
            None => {}
        }
    }

    /// Remembers the origin of a frame, whose storage is then part of the storage state.
    fn record_origin(&self, params: &[u8]) {
        let Ok(Navigated { frame }) = cdp::parse_params(params) else { return };
        let origin = Url::parse(&frame.url)
            .ok()
            .filter(|url| url.scheme().starts_with("http"))
            .map(|url| url.origin());
        if let (Some(origin), Some(context)) = (origin, self.context.upgrade()) {
            context.record_origin(&origin.ascii_serialization());
        }
    }
}

impl EventHandler for PageEvents {
    fn on_event(&self, session: &Session, method: &str, params: &[u8]) {
        match method {
            p::PAGE_JAVASCRIPT_DIALOG_OPENING => self.on_dialog(session, params),
            p::FETCH_REQUEST_PAUSED => match cdp::parse_params(params) {
                Ok(paused) => self.on_paused(session, paused),
                Err(reason) => continue_unknown(session, params, &reason),
            },
            p::RUNTIME_BINDING_CALLED => {
                if let Some(context) = self.context.upgrade() {
                    context.clipboard().handle_event(session, params);
                }
            }
            p::PAGE_DOWNLOAD_WILL_BEGIN | p::PAGE_DOWNLOAD_PROGRESS => {
                self.on_download(session, method, params);
            }
            p::PAGE_FILE_CHOOSER_OPENED => self.tracker.set_file_chooser(params),
            p::INPUT_DRAG_INTERCEPTED => self.tracker.set_intercepted_drag(params),
            p::PAGE_WINDOW_OPEN => {
                if let (Some(context), Ok(open)) =
                    (self.context.upgrade(), cdp::parse_params::<WindowOpen>(params))
                {
                    context.window_announced(open.user_gesture);
                }
            }
            p::TARGET_ATTACHED_TO_TARGET => {
                if let Some(context) = self.context.upgrade() {
                    self.workers.attach(session, params, &context, &self.tracker);
                }
            }
            p::PAGE_FRAME_NAVIGATED => {
                self.record_origin(params);
                self.tracker.handle_event(method, params);
            }
            _ => self.tracker.handle_event(method, params),
        }
    }

    fn on_session_end(&self, end: &SessionEnd) {
        self.tracker.set_ended(end);
        if let Some(context) = self.context.upgrade() {
            context.clients().remove_page(&self.target);
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct UnknownPaused {
    request_id: String,
}

/// Continues a paused request whose event has an unexpected form: it would stay paused for ever.
fn continue_unknown(session: &Session, params: &[u8], reason: &str) {
    tracing::warn!(reason, "a paused request has an unexpected form; continuing it");
    if let Ok(UnknownPaused { request_id }) = cdp::parse_params(params) {
        session.send_no_reply(p::FETCH_CONTINUE_REQUEST, &json!({"requestId": request_id}));
    }
}

/// Accepts a JavaScript dialog, with the default text that the page proposed.
pub(crate) fn accept_dialog(session: &Session, params: &[u8]) {
    let text = cdp::parse_params::<Dialog>(params).map(|dialog| dialog.default_prompt).unwrap_or_default();
    session.send_no_reply(p::PAGE_HANDLE_JAVASCRIPT_DIALOG, &json!({"accept": true, "promptText": text}));
}

/// Returns Chromium's error name for an `errorReason` of the interception. `Failed` is too general to name an error.
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
        "ProxyConnectionFailed" => "net::ERR_PROXY_CONNECTION_FAILED",
        "CertDateInvalid" => "net::ERR_CERT_DATE_INVALID",
        "CertCommonNameInvalid" => "net::ERR_CERT_COMMON_NAME_INVALID",
        "CertAuthorityInvalid" => "net::ERR_CERT_AUTHORITY_INVALID",
        "SslProtocolError" => "net::ERR_SSL_PROTOCOL_ERROR",
        "BlockedByClient" => "net::ERR_BLOCKED_BY_CLIENT",
        "BlockedByResponse" => "net::ERR_BLOCKED_BY_RESPONSE",
        _ => return None,
    })
}
