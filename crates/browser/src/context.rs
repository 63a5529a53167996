//! The tenant's side of the browser: one context, one page, and whatever windows that page tries to open. Holds
//! the single-tab rule: a window with an address loads in the page itself; one that only exists as a window
//! (written by script, or answering a form post) takes the page's place; anything unasked for is closed.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use cdp::{Connection, EventHandler, Session, protocol as p};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::oneshot;

use crate::page::{Page, answer_dialog, tracker::Tracker};

/// A target the browser has attached us to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attached {
    pub(crate) session: String,
    pub(crate) target: String,
}

#[derive(Default)]
struct Tabs {
    /// Somebody waits for the first page of this context.
    first: Option<oneshot::Sender<Attached>>,
    /// The page the agent sees: where windows with an address are loaded instead.
    page: Option<Opener>,
    /// Whether each announced window was asked for by the user, oldest first.
    announced: VecDeque<bool>,
    /// One window an action, like a browser with a popup blocker.
    honoured: bool,
    /// Open, still empty: their script may yet send them somewhere or write into them, for as long as an action
    /// takes to settle.
    held: Vec<Attached>,
    /// To become the page.
    heir: Option<Attached>,
}

struct Opener {
    session: Session,
    tracker: Arc<Tracker>,
}

impl Opener {
    fn follow(&self, url: &str) {
        let mut state = self.tracker.state();
        state.expect_navigation();
        let referrer = state.url.clone();
        drop(state);
        self.tracker.poke();
        let params = json!({"url": url, "referrer": referrer, "transitionType": "link"});
        self.session.send_no_reply(p::PAGE_NAVIGATE, &params);
    }
}

pub(crate) struct Context {
    id: String,
    tabs: Mutex<Tabs>,
}

const MOST_HELD: usize = 4;

impl Context {
    pub(crate) fn new(id: String) -> Arc<Self> {
        Arc::new(Self { id, tabs: Mutex::default() })
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    fn tabs(&self) -> MutexGuard<'_, Tabs> {
        self.tabs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next target of this context is the page we are about to create.
    pub(crate) fn expect_page(&self) -> oneshot::Receiver<Attached> {
        let (first, page) = oneshot::channel();
        self.tabs().first = Some(first);
        page
    }

    /// From now on windows of this context are loaded in `page`.
    pub(crate) fn set_page(&self, page: &Page) {
        let opener = Opener { session: page.session().clone(), tracker: Arc::clone(page.tracker()) };
        self.tabs().page = Some(opener);
    }

    /// A new action begins: it may open one window.
    pub(crate) fn begin_action(&self) {
        self.tabs().honoured = false;
    }

    pub(crate) fn window_announced(&self, user_gesture: bool) {
        let mut tabs = self.tabs();
        // A page that opens windows faster than they attach gains nothing by it.
        if tabs.announced.len() < 64 {
            tabs.announced.push_back(user_gesture);
        }
    }

    /// The browser attached us to a new target of this context.
    pub(crate) fn attached(self: &Arc<Self>, connection: &Connection, attached: Attached) {
        let mut tabs = self.tabs();
        if let Some(first) = tabs.first.take() {
            let _ = first.send(attached);
            return;
        }
        let wanted =
            tabs.announced.pop_front().unwrap_or(true) && !tabs.honoured && tabs.held.len() < MOST_HELD;
        if wanted {
            tabs.held.push(attached.clone());
        }
        drop(tabs);
        let events = PopupEvents { context: Arc::downgrade(self), attached: attached.clone() };
        let session = connection.attach(&attached.session, Arc::new(events));
        session.send_no_reply(p::PAGE_ENABLE, &json!({}));
        if wanted {
            let pattern = json!({"patterns": [{"urlPattern": "*", "resourceType": "Document", "requestStage": "Request"}]});
            session.send_no_reply(p::FETCH_ENABLE, &pattern);
        }
        // Closing a window that was never let run would leave its opener waiting for it for ever.
        session.send_no_reply(p::RUNTIME_RUN_IF_WAITING_FOR_DEBUGGER, &json!({}));
        if !wanted {
            close(connection, &attached.target);
        }
    }

    /// A held window asked for an address: take it there in the page instead.
    fn redirect(&self, connection: &Connection, attached: &Attached, url: &str) {
        let mut tabs = self.tabs();
        tabs.held.retain(|held| held != attached);
        let honoured = std::mem::replace(&mut tabs.honoured, true);
        if let Some(opener) = tabs.page.as_ref().filter(|_| !honoured) {
            opener.follow(url);
        }
        drop(tabs);
        close(connection, &attached.target);
    }

    /// The action is over: windows that are still empty stay so.
    pub(crate) fn close_held(&self, connection: &Connection) {
        let held = std::mem::take(&mut self.tabs().held);
        for window in held {
            close(connection, &window.target);
        }
    }

    /// Makes a window the page's successor; whoever settles the page will take it over.
    pub(crate) fn name_heir(&self, attached: &Attached) {
        let mut tabs = self.tabs();
        tabs.held.retain(|held| held != attached);
        tabs.honoured = true;
        tabs.heir = Some(attached.clone());
    }

    pub(crate) fn take_heir(&self) -> Option<Attached> {
        self.tabs().heir.take()
    }

    /// Whether a window waits to be decided on.
    pub(crate) fn has_windows(&self) -> bool {
        let tabs = self.tabs();
        tabs.heir.is_some() || !tabs.held.is_empty()
    }

    pub(crate) fn held(&self) -> Vec<Attached> {
        self.tabs().held.clone()
    }

    fn forget(&self, attached: &Attached) {
        let mut tabs = self.tabs();
        tabs.held.retain(|held| held != attached);
        tabs.heir.take_if(|heir| heir == attached);
    }
}

pub(crate) fn close(connection: &Connection, target: &str) {
    connection.root().send_no_reply(p::TARGET_CLOSE_TARGET, &json!({"targetId": target}));
}

/// Listens to a window until it is decided what becomes of it.
struct PopupEvents {
    context: Weak<Context>,
    attached: Attached,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Paused {
    request_id: String,
    frame_id: String,
    request: Request,
}

#[derive(Deserialize)]
struct Request {
    url: String,
    method: String,
}

impl EventHandler for PopupEvents {
    fn on_event(&self, session: &Session, method: &str, params: &[u8]) {
        match method {
            p::PAGE_JAVASCRIPT_DIALOG_OPENING => answer_dialog(session, params),
            p::FETCH_REQUEST_PAUSED => {
                let (Some(context), Ok(paused)) =
                    (self.context.upgrade(), cdp::parse_params::<Paused>(params))
                else {
                    return;
                };
                let own = paused.frame_id == self.attached.target;
                // We would go there with the browser's rights, not the page's: web addresses only.
                if own && paused.request.method == "GET" && paused.request.url.starts_with("http") {
                    context.redirect(session.connection(), &self.attached, &paused.request.url);
                    return;
                }
                if own {
                    // Only the window itself can carry the posted form, or what its opener made for it.
                    context.name_heir(&self.attached);
                    session.send_no_reply(p::FETCH_DISABLE, &json!({}));
                }
                session.send_no_reply(p::FETCH_CONTINUE_REQUEST, &json!({"requestId": paused.request_id}));
            }
            _ => {}
        }
    }

    fn on_session_end(&self, _: &cdp::SessionEnd) {
        if let Some(context) = self.context.upgrade() {
            context.forget(&self.attached);
        }
    }
}
