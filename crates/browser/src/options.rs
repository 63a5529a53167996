//! The options of an instance, and the fixed timeouts of the parts of an action.

use std::{sync::Arc, time::Duration};

use proto::SessionOptions;

use crate::{determinism::Determinism, files::FileBudget};

/// Viewport and timeouts of an instance.
#[derive(Clone, Debug)]
pub struct Options {
    pub viewport: (u32, u32),
    pub settle: SettleOptions,
    /// The longest wait of `visit_page` for the first byte of a page.
    pub navigation_timeout: Duration,
    /// The longest wait for the load event after the first byte; then the page is used as far as it has loaded.
    pub load_timeout: Duration,
    /// The longest wait for any single call to the page.
    pub operation_timeout: Duration,
    /// What the client of the lease asked for.
    pub session: SessionOptions,
    /// The proxy of this instance, `host:port`; `None` uses the browser's.
    pub proxy_server: Option<String>,
    /// Fixes clock and randomness of the session; `None` leaves them to the browser.
    pub determinism: Option<Determinism>,
    /// The space for files, shared by the instances of a node.
    pub files: Arc<FileBudget>,
}

impl Options {
    /// Returns these options with those of a session.
    #[must_use]
    pub fn with_session(&self, session: SessionOptions, proxy_server: Option<String>) -> Self {
        let viewport = session.viewport.map_or(self.viewport, |size| (size.width, size.height));
        Self { viewport, session, proxy_server, ..self.clone() }
    }
}

/// When a page counts as settled after an action.
#[derive(Clone, Debug)]
pub struct SettleOptions {
    /// How long nothing may change after the last change.
    pub quiet_period: Duration,
    /// The same for a page that is building itself: it has loaded parts of its code since the action, or used a WebSocket
    /// or an event stream.
    pub build_quiet_period: Duration,
    /// The longest wait for a page that does not become quiet.
    pub budget: Duration,
    /// The longest wait for a page that is still building itself when `budget` ends.
    pub build_budget: Duration,
    /// The longest wait while a navigation is in progress.
    pub navigation_budget: Duration,
    /// The budget for a document that has used up its budget before.
    pub busy_page_budget: Duration,
}

/// The longest wait for the page script to locate an element. A missing element is normally reported within a second.
pub(crate) const LOCATE_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest wait for the page to handle input events; bounded by the operation timeout too.
pub(crate) const INPUT_TIMEOUT: Duration = Duration::from_secs(10);
/// A page that does not report an open drop-down within this time counts as having none.
pub(crate) const DROPDOWN_TIMEOUT: Duration = Duration::from_secs(2);

impl Default for Options {
    fn default() -> Self {
        Self {
            viewport: (1280, 768),
            settle: SettleOptions::default(),
            navigation_timeout: Duration::from_secs(30),
            load_timeout: Duration::from_secs(10),
            operation_timeout: Duration::from_secs(30),
            session: SessionOptions::default(),
            proxy_server: None,
            determinism: None,
            files: Arc::default(),
        }
    }
}

impl Default for SettleOptions {
    fn default() -> Self {
        Self {
            quiet_period: Duration::from_millis(60),
            build_quiet_period: Duration::from_millis(500),
            budget: Duration::from_secs(3),
            build_budget: Duration::from_secs(10),
            navigation_budget: Duration::from_secs(10),
            busy_page_budget: Duration::from_millis(800),
        }
    }
}
