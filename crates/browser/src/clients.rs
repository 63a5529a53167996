//! The CDP clients of a tenant, as far as its pages are concerned: while there are any, new windows are left to them, a new
//! window runs only when they have set it up, and they answer the dialogs of the pages that they have claimed.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use cdp::{Session, protocol as p};
use serde_json::json;

/// The most pages of a context while CDP clients open them; further ones are closed.
pub(crate) const MAX_CLIENT_PAGES: usize = 50;

/// Is told of every new page of a tenant. Called on the reading task of the connection; must not block.
pub trait TargetWatcher: Send + Sync + 'static {
    /// The page starts to run when the last clone of `start` is dropped.
    fn on_new_page(&self, target: &str, start: Arc<StartGuard>);
}

/// Keeps a new page from running until it is dropped.
pub struct StartGuard(Session);

impl StartGuard {
    pub(crate) fn new(session: Session) -> Arc<Self> {
        Arc::new(Self(session))
    }
}

impl Drop for StartGuard {
    fn drop(&mut self) {
        self.0.send_no_reply(p::RUNTIME_RUN_IF_WAITING_FOR_DEBUGGER, &json!({}));
    }
}

#[derive(Default)]
pub(crate) struct Clients {
    state: Mutex<State>,
    next_id: AtomicU64,
    /// Held while a page is being created: the next attached target is then that page.
    creation: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    watchers: Vec<(u64, Weak<dyn TargetWatcher>)>,
    /// The context was made by a CDP client; its windows are never the agent's.
    made_by_client: bool,
    pages: HashMap<String, ClientPage>,
}

struct ClientPage {
    /// Our own session with the page.
    session: Session,
    claims: usize,
}

impl Clients {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_made_by_client(&self) {
        self.state().made_by_client = true;
    }

    pub(crate) fn is_made_by_client(&self) -> bool {
        self.state().made_by_client
    }

    /// Whether new windows belong to CDP clients.
    pub(crate) fn own_windows(&self) -> bool {
        let state = self.state();
        state.made_by_client || !state.watchers.is_empty()
    }

    pub(crate) async fn lock_creation(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.creation.lock().await
    }

    pub(crate) fn add_watcher(&self, watcher: Weak<dyn TargetWatcher>) -> u64 {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        self.state().watchers.push((id, watcher));
        id
    }

    pub(crate) fn remove_watcher(&self, id: u64) {
        self.state().watchers.retain(|(held, _)| *held != id);
    }

    /// Tells the clients of a new page that waits to be run.
    pub(crate) fn announce(&self, target: &str, start: &Arc<StartGuard>) {
        let watchers: Vec<_> =
            self.state().watchers.iter().filter_map(|(_, watcher)| watcher.upgrade()).collect();
        for watcher in watchers {
            watcher.on_new_page(target, Arc::clone(start));
        }
    }

    pub(crate) fn add_page(&self, target: &str, session: &Session) {
        self.state().pages.insert(target.to_owned(), ClientPage { session: session.clone(), claims: 0 });
    }

    pub(crate) fn remove_page(&self, target: &str) {
        self.state().pages.remove(target);
    }

    pub(crate) fn page_count(&self) -> usize {
        self.state().pages.len()
    }

    pub(crate) fn page_sessions(&self) -> Vec<Session> {
        self.state().pages.values().map(|page| page.session.clone()).collect()
    }

    /// Whether a CDP client answers the dialogs of the page.
    pub(crate) fn is_claimed(&self, target: &str) -> bool {
        self.state().pages.get(target).is_some_and(|page| page.claims > 0)
    }

    /// Leaves dialogs and drags of a page to CDP clients. Returns whether the page exists.
    pub(crate) fn claim(&self, target: &str) -> bool {
        let mut state = self.state();
        let Some(page) = state.pages.get_mut(target) else { return false };
        page.claims += 1;
        if page.claims == 1 {
            page.session.send_no_reply(p::INPUT_SET_INTERCEPT_DRAGS, &json!({"enabled": false}));
        }
        true
    }

    pub(crate) fn unclaim(&self, target: &str) {
        let mut state = self.state();
        let Some(page) = state.pages.get_mut(target) else { return };
        page.claims = page.claims.saturating_sub(1);
        if page.claims == 0 {
            page.session.send_no_reply(p::INPUT_SET_INTERCEPT_DRAGS, &json!({"enabled": true}));
            // A dialog that the client left open would block the page for ever. Without one, this call only fails.
            page.session.send_no_reply(p::PAGE_HANDLE_JAVASCRIPT_DIALOG, &json!({"accept": true}));
        }
    }
}
