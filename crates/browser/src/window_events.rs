//! The events of a window that is still empty: it is loaded in the page, replaces the page, or stays to be closed.

use std::sync::{Arc, Weak};

use cdp::{EventHandler, Session, SessionEnd, protocol as p};
use serde::Deserialize;
use serde_json::json;

use crate::{
    context::{AttachedTarget, Context},
    page::accept_dialog,
};

/// Handles the events of one window.
pub(crate) struct WindowEvents {
    context: Weak<Context>,
    attached: AttachedTarget,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PausedRequest {
    request_id: String,
    frame_id: String,
    request: Request,
}

#[derive(Deserialize)]
struct Request {
    url: String,
    method: String,
}

impl WindowEvents {
    pub(crate) fn new(context: &Arc<Context>, attached: AttachedTarget) -> Self {
        Self { context: Arc::downgrade(context), attached }
    }

    fn on_paused_request(&self, session: &Session, paused: &PausedRequest) {
        let Some(context) = self.context.upgrade() else { return };
        let is_main_frame = paused.frame_id == self.attached.target;
        // Only web URLs: the navigation runs with the browser's privileges, not with those of the page.
        if is_main_frame && paused.request.method == "GET" && paused.request.url.starts_with("http") {
            context.load_in_page(session.connection(), &self.attached, &paused.request.url);
            return;
        }
        if is_main_frame {
            // A posted form, or a document made by the opener, exists only in the window itself.
            context.set_successor(&self.attached);
            session.send_no_reply(p::FETCH_DISABLE, &json!({}));
        }
        session.send_no_reply(p::FETCH_CONTINUE_REQUEST, &json!({"requestId": paused.request_id}));
    }
}

impl EventHandler for WindowEvents {
    fn on_event(&self, session: &Session, method: &str, params: &[u8]) {
        match method {
            p::PAGE_JAVASCRIPT_DIALOG_OPENING => accept_dialog(session, params),
            p::RUNTIME_BINDING_CALLED => {
                if let Some(context) = self.context.upgrade() {
                    context.clipboard().handle_event(session, params);
                }
            }
            p::FETCH_REQUEST_PAUSED => {
                if let Ok(paused) = cdp::parse_params(params) {
                    self.on_paused_request(session, &paused);
                }
            }
            _ => {}
        }
    }

    fn on_session_end(&self, _: &SessionEnd) {
        if let Some(context) = self.context.upgrade() {
            context.remove_window(&self.attached);
        }
    }
}
