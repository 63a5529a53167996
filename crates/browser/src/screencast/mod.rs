//! A screencast of the page that commands act on: its frames, address, title, console and, if wanted, network events. It uses
//! sessions of its own, so it neither acts on the page nor disturbs commands, and it follows when another page takes its place.
//! Nothing is captured unless a [`Screencast`] runs.

mod console;
mod events;
mod input;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use cdp::{CallError, IgnoreEvents, Session, protocol as p};
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};

use crate::{
    error::BrowserError,
    tenant::{ClientSession, TenantBrowser},
};

pub use console::ConsoleEntry;
use events::PageEvents;
pub use events::{Frame, NextFrame};
pub use input::PersonInput;

/// How often the address and the title are read.
const INFO_INTERVAL: Duration = Duration::from_millis(250);
/// The longest wait for a call that the browser answers without the page.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// Longer addresses and titles are cut off.
const MAX_URL_CHARS: usize = 2000;
const MAX_TITLE_CHARS: usize = 500;

/// Receives what a screencast shows. Called on the reading task of the connection; must not block.
pub trait ScreencastSink: Send + Sync + 'static {
    /// The browser sends further frames when `frame.next` is dropped.
    fn on_frame(&self, frame: Frame);
    fn on_page(&self, page: PageInfo);
    fn on_console(&self, entry: ConsoleEntry);
    /// An event of the domain `Network`, if the options ask for them.
    fn on_network(&self, _method: &str, _params: &[u8]) {}
}

/// The address and the title of the page, as the page chose them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageInfo {
    pub url: String,
    pub title: String,
}

#[derive(Clone, Copy, Debug)]
pub struct ScreencastOptions {
    /// The quality of the JPEG frames, 1 to 100.
    pub quality: u8,
    /// Also reports the events of the domain `Network`.
    pub network: bool,
}

/// A screencast of one tenant. Dropping it stops the capture.
pub struct Screencast {
    tenant: TenantBrowser,
    client: ClientSession,
    sink: Arc<dyn ScreencastSink>,
    options: ScreencastOptions,
    /// The session with the page that is shown.
    page: Mutex<Option<Session>>,
    /// Whether a page has been captured.
    has_started: watch::Sender<bool>,
}

impl TenantBrowser {
    /// Prepares a screencast; [`Screencast::run`] captures.
    pub async fn open_screencast(
        &self,
        sink: Arc<dyn ScreencastSink>,
        options: ScreencastOptions,
    ) -> Result<Screencast, BrowserError> {
        let client = self.open_session(Arc::new(IgnoreEvents)).await?;
        let (page, has_started) = (Mutex::new(None), watch::Sender::new(false));
        Ok(Screencast { tenant: self.clone(), client, sink, options, page, has_started })
    }
}

impl Screencast {
    /// Shows the current page until the browser is gone.
    pub async fn run(&self) {
        let mut current = self.tenant.context().current_page();
        while self.tenant.connection().close_reason().is_none() {
            let target = current.borrow_and_update().clone();
            if let Some(target) = target {
                match self.follow(&target, &mut current).await {
                    Ok(FollowEnd::Replaced) => continue,
                    Ok(FollowEnd::Closed) => {}
                    Err(error) => tracing::debug!(%error, "cannot show a page; trying again"),
                }
            }
            // A page that is closing cannot be attached to: its successor, or the next attempt, can.
            let _ = tokio::time::timeout(INFO_INTERVAL, current.changed()).await;
        }
    }

    /// Returns a receiver that is true once a page is captured: everything that happens later is recorded.
    pub fn has_started(&self) -> watch::Receiver<bool> {
        self.has_started.subscribe()
    }

    /// Shows one page until it ends or another takes its place.
    async fn follow(
        &self,
        target: &str,
        current: &mut watch::Receiver<Option<Arc<str>>>,
    ) -> Result<FollowEnd, CallError> {
        let ended = Arc::new(Notify::new());
        let _page = self.attach(target, Arc::clone(&ended)).await?;
        self.has_started.send_replace(true);
        let mut tick = tokio::time::interval(INFO_INTERVAL);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut last = None;
        loop {
            tokio::select! {
                biased;
                _ = current.changed() => return Ok(FollowEnd::Replaced),
                () = ended.notified() => return Ok(FollowEnd::Closed),
                _ = tick.tick() => {
                    let info = self.page_info(target).await?;
                    if last.as_ref() != Some(&info) {
                        self.sink.on_page(info.clone());
                        last = Some(info);
                    }
                }
            }
        }
    }

    /// Attaches to a page and starts the capture. No reply of the page itself is awaited: it may hang.
    async fn attach(&self, target: &str, ended: Arc<Notify>) -> Result<ShownPage<'_>, CallError> {
        let events = Arc::new(PageEvents::new(Arc::clone(&self.sink), ended));
        let session = self.client.attach_page(target, events).await?;
        let shown = ShownPage { screencast: self, session: session.clone() };
        let (width, height) = self.tenant.viewport();
        let started = session.send(
            p::PAGE_START_SCREENCAST,
            &json!({"format": "jpeg", "quality": self.options.quality, "maxWidth": width, "maxHeight": height}),
        );
        session.send_no_reply(p::LOG_ENABLE, &json!({}));
        session.send_no_reply(p::RUNTIME_ENABLE, &json!({}));
        if self.options.network {
            let no_bodies =
                json!({"maxTotalBufferSize": 0, "maxResourceBufferSize": 0, "maxPostDataSize": 0});
            session.send_no_reply(p::NETWORK_ENABLE, &no_bodies);
        }
        *self.page() = Some(session);
        // The browser answers this itself, also for a page that hangs.
        started.within(CALL_TIMEOUT).await?;
        Ok(shown)
    }

    async fn page_info(&self, target: &str) -> Result<PageInfo, CallError> {
        let params = json!({"targetId": target});
        let client = self.client.session();
        let reply: Value = client.call_within(CALL_TIMEOUT, p::TARGET_GET_TARGET_INFO, &params).await?;
        let text = |field: &str, max: usize| {
            reply["targetInfo"][field].as_str().unwrap_or_default().chars().take(max).collect()
        };
        Ok(PageInfo { url: text("url", MAX_URL_CHARS), title: text("title", MAX_TITLE_CHARS) })
    }

    fn page(&self) -> std::sync::MutexGuard<'_, Option<Session>> {
        self.page.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a page is no longer shown.
enum FollowEnd {
    /// Another page has taken its place.
    Replaced,
    /// It closed itself or crashed.
    Closed,
}

/// A page that is being shown. Dropping it stops the capture and detaches from the page.
struct ShownPage<'a> {
    screencast: &'a Screencast,
    session: Session,
}

impl Drop for ShownPage<'_> {
    fn drop(&mut self) {
        *self.screencast.page() = None;
        self.session.send_no_reply(p::PAGE_STOP_SCREENCAST, &json!({}));
        self.screencast.client.detach_page(&self.session);
    }
}

impl Frame {
    fn new(jpeg: Bytes, time: f64, next: NextFrame) -> Self {
        Self { jpeg, time, next }
    }
}
