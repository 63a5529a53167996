//! The browser context of one tenant: one page, and the windows that it opens. Implements the single-tab rule. A window
//! with a URL is loaded in the page itself. A window that exists only as a window (written by script, or the target of a
//! posted form) replaces the page. A window without a user gesture is closed.

use std::{
    collections::{BTreeSet, VecDeque},
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use cdp::{Connection, Session, SessionEnd, protocol as p};
use proto::{
    StorageState,
    session_options::{Downloads, SessionOptions, Tabs},
};
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};

use crate::{
    clients::{Clients, MAX_CLIENT_PAGES, StartGuard},
    clipboard::Clipboard,
    determinism::SessionClock,
    emulation::{EmulationCall, document_pattern},
    error::BrowserError,
    files::SessionFiles,
    options::Options,
    page::{Page, SETUP_TIMEOUT, SetupCall, tracker::Tracker},
    window_events::WindowEvents,
};

/// A target that the browser has attached us to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AttachedTarget {
    pub(crate) session: String,
    pub(crate) target: String,
}

#[derive(Default)]
struct Windows {
    /// Receives the next attached target: a page that we are creating.
    new_page: Option<oneshot::Sender<AttachedTarget>>,
    /// The page that the agent sees. Windows with a URL are loaded in it.
    page: Option<MainPage>,
    /// For each announced window, oldest first: whether a user gesture opened it.
    announced: VecDeque<bool>,
    /// Whether the current action has already opened a window; one window per action is allowed.
    opened_by_action: bool,
    /// Windows that are still empty. Until the action has settled, their opener may navigate or fill them.
    undecided: Vec<AttachedTarget>,
    /// The window that is to replace the page.
    successor: Option<AttachedTarget>,
    /// With many tabs: windows that are to become tabs.
    new_tabs: VecDeque<Page>,
    /// With many tabs: how many there are, besides the new ones.
    tabs: usize,
}

struct MainPage {
    session: Session,
    tracker: Arc<Tracker>,
}

impl MainPage {
    fn navigate(&self, url: &str) {
        let mut state = self.tracker.state();
        state.expect_navigation();
        let referrer = state.url.clone();
        drop(state);
        self.tracker.notify();
        let params = json!({"url": url, "referrer": referrer, "transitionType": "link"});
        self.session.send_no_reply(p::PAGE_NAVIGATE, &params);
    }
}

pub(crate) struct Context {
    id: String,
    clipboard: Clipboard,
    files: Arc<SessionFiles>,
    /// The setup calls of every page and window, from the options of the session.
    emulation: Vec<EmulationCall>,
    options: Arc<Options>,
    /// The virtual clock of a deterministic session.
    clock: Option<SessionClock>,
    windows: Mutex<Windows>,
    origins: Mutex<BTreeSet<String>>,
    clients: Clients,
    /// The target of the page that commands act on.
    current_page: watch::Sender<Option<Arc<str>>>,
}

/// The most tabs of an instance; further windows are closed.
pub(crate) const MAX_TABS: usize = 20;
const MAX_UNDECIDED_WINDOWS: usize = 4;
/// Bounds the memory of a page that opens windows faster than they are attached.
const MAX_ANNOUNCED_WINDOWS: usize = 64;

impl Context {
    /// Creates the context. The files of the session lie in `folder`.
    pub(crate) fn new(
        id: String,
        emulation: Vec<EmulationCall>,
        options: Arc<Options>,
        folder: &Path,
    ) -> Arc<Self> {
        let keeps_downloads = options.session.downloads == Some(Downloads::Keep);
        let files =
            Arc::new(SessionFiles::new(folder.join(&id), keeps_downloads, Arc::clone(&options.files)));
        Arc::new(Self {
            clock: options.determinism.map(SessionClock::new),
            id,
            files,
            options,
            clipboard: Clipboard::new(),
            emulation,
            windows: Mutex::default(),
            origins: Mutex::default(),
            clients: Clients::default(),
            current_page: watch::Sender::new(None),
        })
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn emulation(&self) -> &[EmulationCall] {
        &self.emulation
    }

    pub(crate) fn files(&self) -> &Arc<SessionFiles> {
        &self.files
    }

    /// The virtual clock of a deterministic session.
    pub(crate) fn clock(&self) -> Option<&SessionClock> {
        self.clock.as_ref()
    }

    pub(crate) fn clipboard(&self) -> &Clipboard {
        &self.clipboard
    }

    pub(crate) fn clients(&self) -> &Clients {
        &self.clients
    }

    fn windows(&self) -> MutexGuard<'_, Windows> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens an empty target in this context. It waits for the debugger.
    pub(crate) async fn open_target(
        &self,
        connection: &Connection,
        (width, height): (u32, u32),
    ) -> Result<AttachedTarget, BrowserError> {
        let _creating = self.clients.lock_creation().await;
        let (sender, attached) = oneshot::channel();
        self.windows().new_page = Some(sender);
        // The full Chromium accepts a size only for a new window.
        let params = json!({
            "url": "about:blank", "browserContextId": self.id, "newWindow": true, "width": width, "height": height,
        });
        connection.root().call_within::<_, Value>(SETUP_TIMEOUT, p::TARGET_CREATE_TARGET, &params).await?;
        match tokio::time::timeout(SETUP_TIMEOUT, attached).await {
            Ok(Ok(attached)) => Ok(attached),
            _ => Err(BrowserError::Internal("the browser created a page but did not attach to it".into())),
        }
    }

    /// Remembers an origin that a frame of this context has shown.
    pub(crate) fn record_origin(&self, origin: &str) {
        let mut origins = self.origins.lock().unwrap_or_else(PoisonError::into_inner);
        if origins.len() < StorageState::MAX_ORIGINS && !origins.contains(origin) {
            origins.insert(origin.to_owned());
        }
    }

    /// The origins that this context may have stored data for.
    pub(crate) fn origins(&self) -> BTreeSet<String> {
        self.origins.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets the page in which windows of this context are loaded.
    pub(crate) fn set_page(&self, page: &Page) {
        let main = MainPage { session: page.session().clone(), tracker: Arc::clone(page.tracker()) };
        self.windows().page = Some(main);
        self.current_page.send_replace(Some(page.target().into()));
    }

    /// Returns the target of the page that commands act on, and is notified when another page takes its place.
    pub(crate) fn current_page(&self) -> watch::Receiver<Option<Arc<str>>> {
        self.current_page.subscribe()
    }

    /// Whether the page has closed itself, so that the next command replaces it.
    fn is_page_closed(&self) -> bool {
        let windows = self.windows();
        windows.page.as_ref().is_some_and(|page| page.tracker.state().ended == Some(SessionEnd::Detached))
    }

    /// Whether windows were opened or closed that only a command or [`crate::Instance::follow_windows`] applies.
    pub(crate) fn has_changed_windows(&self) -> bool {
        self.has_windows() || self.is_page_closed()
    }

    /// Starts a new action, which may open one window.
    pub(crate) fn begin_action(&self) {
        self.windows().opened_by_action = false;
    }

    pub(crate) fn window_announced(&self, user_gesture: bool) {
        let mut windows = self.windows();
        if windows.announced.len() < MAX_ANNOUNCED_WINDOWS {
            windows.announced.push_back(user_gesture);
        }
    }

    /// Handles a new target of this context.
    pub(crate) fn target_attached(self: &Arc<Self>, connection: &Connection, attached: AttachedTarget) {
        self.clipboard.install(&connection.session(&attached.session));
        if let Some(clock) = &self.clock {
            clock.install(&connection.session(&attached.session));
        }
        let mut windows = self.windows();
        if let Some(new_page) = windows.new_page.take() {
            let _ = new_page.send(attached);
            return;
        }
        if self.clients.own_windows() {
            self.leave_to_clients(&mut windows, connection, &attached);
            return;
        }
        if self.has_many_tabs() {
            self.open_as_tab(&mut windows, connection, &attached);
            return;
        }
        let allowed = windows.announced.pop_front().unwrap_or(true)
            && !windows.opened_by_action
            && windows.undecided.len() < MAX_UNDECIDED_WINDOWS;
        if allowed {
            windows.undecided.push(attached.clone());
        }
        drop(windows);
        let events = WindowEvents::new(self, attached.clone());
        let session = connection.attach(&attached.session, Arc::new(events));
        session.send_no_reply(p::PAGE_ENABLE, &json!({}));
        for call in &self.emulation {
            session.send_no_reply(call.method, &call.params);
        }
        if allowed {
            session.send_no_reply(p::FETCH_ENABLE, &json!({"patterns": [document_pattern("Request")]}));
        }
        // Must happen before the window is closed: otherwise its opener would wait for it for ever.
        session.send_no_reply(p::RUNTIME_RUN_IF_WAITING_FOR_DEBUGGER, &json!({}));
        if !allowed {
            close_target(connection, &attached.target);
        }
    }

    pub(crate) fn session_options(&self) -> &SessionOptions {
        &self.options.session
    }

    /// Whether windows become tabs.
    pub(crate) fn has_many_tabs(&self) -> bool {
        self.options.session.tabs == Some(Tabs::Many)
    }

    /// Makes a window a tab. The target is set up and runs at once, because its opener waits for it.
    fn open_as_tab(
        self: &Arc<Self>,
        windows: &mut Windows,
        connection: &Connection,
        attached: &AttachedTarget,
    ) {
        let by_user = windows.announced.pop_front().unwrap_or(true);
        let opener = windows.page.as_ref().map(|page| page.tracker.state().url.clone());
        let (page, setup) = Page::attach(connection, attached, self, Arc::clone(&self.options), opener);
        if by_user && windows.tabs + windows.new_tabs.len() < MAX_TABS {
            if let Some(opener) = windows.page.as_ref().filter(|_| self.clock.is_some()) {
                wait_for_stopped_clock(setup, &opener.tracker);
            }
            windows.new_tabs.push_back(page);
        } else {
            close_target(connection, &attached.target);
        }
    }

    /// Leaves a window to the CDP clients of the tenant. It runs once each of them has set it up.
    fn leave_to_clients(
        self: &Arc<Self>,
        windows: &mut Windows,
        connection: &Connection,
        attached: &AttachedTarget,
    ) {
        windows.announced.clear();
        let becomes_tab = self.has_many_tabs()
            && !self.clients.is_made_by_client()
            && windows.tabs + windows.new_tabs.len() < MAX_TABS;
        let options = Arc::clone(&self.options);
        let (page, _) = Page::set_up(connection, attached, self, options, None, becomes_tab);
        Clipboard::bind(page.session());
        let start = StartGuard::new(page.session().clone());
        if self.clients.page_count() > MAX_CLIENT_PAGES {
            drop(start);
            close_target(connection, &attached.target);
            return;
        }
        self.clients.announce(&attached.target, &start);
        if becomes_tab {
            windows.new_tabs.push_back(page);
        }
    }

    pub(crate) fn take_new_tab(&self) -> Option<Page> {
        self.windows().new_tabs.pop_front()
    }

    /// Records how many tabs the instance has.
    pub(crate) fn set_tab_count(&self, tabs: usize) {
        self.windows().tabs = tabs;
    }

    /// Loads the URL that an undecided window requested in the page instead, and closes the window.
    pub(crate) fn load_in_page(&self, connection: &Connection, window: &AttachedTarget, url: &str) {
        let mut windows = self.windows();
        windows.undecided.retain(|undecided| undecided != window);
        let already_opened = std::mem::replace(&mut windows.opened_by_action, true);
        if let Some(page) = windows.page.as_ref().filter(|_| !already_opened) {
            page.navigate(url);
        }
        drop(windows);
        close_target(connection, &window.target);
    }

    /// Closes the windows that are still empty when the action has settled.
    pub(crate) fn close_undecided(&self, connection: &Connection) {
        let undecided = std::mem::take(&mut self.windows().undecided);
        for window in undecided {
            close_target(connection, &window.target);
        }
    }

    /// Marks a window as the one that replaces the page; settling the instance does the replacement.
    pub(crate) fn set_successor(&self, window: &AttachedTarget) {
        let mut windows = self.windows();
        windows.undecided.retain(|undecided| undecided != window);
        windows.opened_by_action = true;
        windows.successor = Some(window.clone());
    }

    pub(crate) fn take_successor(&self) -> Option<AttachedTarget> {
        self.windows().successor.take()
    }

    /// Whether any window besides the page is open or about to replace it.
    pub(crate) fn has_windows(&self) -> bool {
        let windows = self.windows();
        windows.successor.is_some() || !windows.undecided.is_empty() || !windows.new_tabs.is_empty()
    }

    pub(crate) fn undecided_windows(&self) -> Vec<AttachedTarget> {
        self.windows().undecided.clone()
    }

    pub(crate) fn remove_window(&self, window: &AttachedTarget) {
        let mut windows = self.windows();
        windows.undecided.retain(|undecided| undecided != window);
        windows.successor.take_if(|successor| successor == window);
    }
}

/// Tells the opener when the clock of its window has stopped. They may share a process, and with it the clock.
fn wait_for_stopped_clock(setup: Vec<SetupCall>, opener: &Arc<Tracker>) {
    let opener = Arc::clone(opener);
    tokio::spawn(async move {
        for (_, call) in setup {
            if let Err(error) = call.within(SETUP_TIMEOUT).await {
                tracing::debug!(%error, "cannot set up a window");
            }
        }
        opener.set_clock_stopped();
    });
}

pub(crate) fn close_target(connection: &Connection, target: &str) {
    connection.root().send_no_reply(p::TARGET_CLOSE_TARGET, &json!({"targetId": target}));
}
