//! One page of the browser: its session, its state, and the page script in its document. An instance uses its page only
//! through this module.

mod capture;
mod channels;
pub(crate) mod element_actions;
pub(crate) mod elements;
mod events;
mod frames;
mod navigate;
mod read;
pub(crate) mod script;
pub(crate) mod settle;
pub(crate) mod tracker;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use cdp::{Connection, Method, PendingCall, Session, protocol as p};
use serde_json::{Value, json};

use crate::{
    context::{AttachedTarget, Context},
    error::BrowserError,
    input::Input,
    options::{INPUT_TIMEOUT, Options},
};

pub(crate) use events::accept_dialog;
use events::{PageEvents, Visit, VisitFailure};
use frames::Frames;
use script::Worlds;
use tracker::Tracker;

/// The longest wait for each step of creating a page. No page content runs yet, so only the browser can be slow.
pub(crate) const SETUP_TIMEOUT: Duration = Duration::from_mins(1);

pub(crate) struct Page {
    session: Session,
    target: String,
    tracker: Arc<Tracker>,
    visit: Arc<Visit>,
    worlds: Worlds,
    frames: Frames,
    options: Arc<Options>,
    /// The URL of the page that opened this one. Going back from the first history entry leads there.
    opener: Option<String>,
}

/// When an action started. What the page does from then on counts as the effect of the action.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ActionStart {
    pub(crate) time: Instant,
    pub(crate) document: u64,
    /// How many frames the page must draw before it can count as quiet; at most [`SETTLE_DRAWN_FRAMES`].
    pub(crate) min_drawn_frames: u8,
}

/// The number of frames in which a page may still react to an action: changes in the second frame belong to it.
pub(crate) const SETTLE_DRAWN_FRAMES: u8 = 2;

impl Page {
    /// Opens a new page in `context`.
    pub(crate) async fn open(
        connection: &Connection,
        context: &Arc<Context>,
        options: Arc<Options>,
    ) -> Result<Self, BrowserError> {
        let attached = context.expect_page();
        let (width, height) = options.viewport;
        let target =
            json!({"url": "about:blank", "browserContextId": context.id(), "width": width, "height": height});
        connection.root().call_within::<_, Value>(SETUP_TIMEOUT, p::TARGET_CREATE_TARGET, &target).await?;
        let Ok(Ok(attached)) = tokio::time::timeout(SETUP_TIMEOUT, attached).await else {
            return Err(BrowserError::Internal("the browser created a page but did not attach to it".into()));
        };
        Self::adopt(connection, &attached, context, options, None).await
    }

    /// Takes over an attached target as the page of `context`: sets its size and focus and disables what could block it. If
    /// the target waits for the debugger, it starts to run at the end.
    pub(crate) async fn adopt(
        connection: &Connection,
        attached: &AttachedTarget,
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
            pending.within(SETUP_TIMEOUT).await?;
        }
        Ok(page)
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
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

    /// The URL of the page that opened this one.
    pub(crate) fn opener(&self) -> Option<&str> {
        self.opener.as_deref()
    }

    /// The number of the current document; it changes with every committed navigation.
    pub(crate) fn document(&self) -> u64 {
        self.tracker.state().document
    }

    /// The mouse and the keyboard of the page.
    pub(crate) fn input(&self) -> Input<'_> {
        Input::new(&self.session, INPUT_TIMEOUT.min(self.options.operation_timeout))
    }

    /// Records that an action starts now.
    pub(crate) fn action_start(&self) -> ActionStart {
        ActionStart { time: Instant::now(), document: self.document(), min_drawn_frames: SETTLE_DRAWN_FRAMES }
    }
}
