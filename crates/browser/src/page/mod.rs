//! One page of the browser: its session, what it is doing, and our isolated world inside its document.
//! Everything an instance does to its page goes through here.

mod capture;
pub(crate) mod elements;
mod events;
pub(crate) mod frames;
mod navigate;
mod read;
pub(crate) mod settle;
pub(crate) mod tracker;
mod world;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use cdp::{Connection, Method, PendingCall, Session, protocol as p};
use serde_json::{Value, json};

use crate::{
    context::{Attached, Context},
    error::BrowserError,
    options::Options,
};

pub(crate) use events::answer_dialog;
use events::{Failed, PageEvents, Visit};
use frames::Frames;
use tracker::Tracker;
use world::Worlds;

/// How long each step of making a page may take; no page has a say in it yet.
pub(crate) const SETUP_LIMIT: Duration = Duration::from_mins(1);

pub(crate) struct Page {
    session: Session,
    target: String,
    tracker: Arc<Tracker>,
    visit: Arc<Visit>,
    worlds: Worlds,
    frames: Frames,
    options: Arc<Options>,
    /// Where "back" leads from the first entry of the history: the page that opened this one.
    opener: Option<String>,
}

/// The moment an action begins: what the page does after it is the action's doing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    pub(crate) at: Instant,
    pub(crate) document: u64,
    /// How many frames the page must have drawn since before it can count as settled.
    pub(crate) frames: u8,
}

/// What a page does in the frame after next is still its answer to the action.
pub(crate) const FRAMES: u8 = 2;

impl Page {
    /// Opens a new page in `context`.
    pub(crate) async fn open(
        connection: &Connection,
        context: &Arc<Context>,
        options: Arc<Options>,
    ) -> Result<Self, BrowserError> {
        let announced = context.expect_page();
        let (width, height) = options.viewport;
        let target =
            json!({"url": "about:blank", "browserContextId": context.id(), "width": width, "height": height});
        connection.root().call_within::<_, Value>(SETUP_LIMIT, p::TARGET_CREATE_TARGET, &target).await?;
        let Ok(Ok(attached)) = tokio::time::timeout(SETUP_LIMIT, announced).await else {
            return Err(BrowserError::Internal("the browser made a page but did not announce it".into()));
        };
        Self::adopt(connection, &attached, context, options, None).await
    }

    /// Takes over an attached target as the page of `context` and makes it ours: size, focus, nothing that
    /// could block. The target may still be waiting to run; it is let go at the end.
    pub(crate) async fn adopt(
        connection: &Connection,
        attached: &Attached,
        context: &Arc<Context>,
        options: Arc<Options>,
        opener: Option<String>,
    ) -> Result<Self, BrowserError> {
        let tracker = Arc::new(Tracker::new());
        attached.target.clone_into(&mut tracker.state().main_frame);
        let visit = Arc::new(Visit::default());
        let events = PageEvents::new(Arc::clone(&tracker), Arc::clone(&visit), context);
        let session = connection.attach(&attached.session, Arc::new(events));
        let page = Self {
            session,
            target: attached.target.clone(),
            tracker,
            visit,
            worlds: Worlds::default(),
            frames: Frames::default(),
            options,
            opener,
        };
        let (width, height) = page.options.viewport;
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        let setup: Vec<PendingCall> = [
            (p::PAGE_ENABLE, json!({})),
            (
                p::NETWORK_ENABLE,
                json!({"maxTotalBufferSize": 0, "maxResourceBufferSize": 0, "maxPostDataSize": 0}),
            ),
            (p::INSPECTOR_ENABLE, json!({})),
            (p::PAGE_SET_LIFECYCLE_EVENTS_ENABLED, json!({"enabled": true})),
            (p::PAGE_SET_INTERCEPT_FILE_CHOOSER_DIALOG, json!({"enabled": true})),
            (p::EMULATION_SET_DEVICE_METRICS_OVERRIDE, metrics),
            (p::EMULATION_SET_FOCUS_EMULATION_ENABLED, json!({"enabled": true})),
            (p::RUNTIME_RUN_IF_WAITING_FOR_DEBUGGER, json!({})),
        ]
        .iter()
        .map(|(method, params): &(Method, Value)| page.session.send(*method, params))
        .collect();
        for pending in setup {
            pending.within(SETUP_LIMIT).await?;
        }
        Ok(page)
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    pub(crate) fn target(&self) -> &str {
        &self.target
    }

    pub(crate) fn tracker(&self) -> &Arc<Tracker> {
        &self.tracker
    }

    pub(crate) fn url(&self) -> String {
        self.tracker.state().url.clone()
    }

    /// The page that opened this one.
    pub(crate) fn opener(&self) -> Option<&str> {
        self.opener.as_deref()
    }

    pub(crate) fn document(&self) -> u64 {
        self.tracker.state().document
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark { at: Instant::now(), document: self.document(), frames: FRAMES }
    }
}
