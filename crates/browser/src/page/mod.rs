//! One page of the browser: its session, its state, and the page script in its document. An instance uses its page only
//! through this module.

mod capture;
mod channels;
mod drag;
pub(crate) mod element_actions;
pub(crate) mod elements;
mod events;
mod frames;
mod navigate;
pub(crate) mod page_state;
mod read;
pub(crate) mod script;
pub(crate) mod settle;
pub(crate) mod tracker;
mod virtual_time;
mod workers;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use cdp::{CallError, Connection, Method, PendingCall, Reply, Session, protocol as p};
use serde_json::{Value, json};

use crate::{
    context::{AttachedTarget, Context},
    emulation::EmulationCall,
    error::BrowserError,
    input::{Held, Input},
    options::{INPUT_TIMEOUT, Options},
};

pub use capture::View;
pub use events::PROXY_ERROR_HEADER;
pub(crate) use events::accept_dialog;
use events::{PageEvents, Visit, VisitFailure};
use frames::Frames;
use script::Worlds;
use tracker::Tracker;
use workers::Workers;

/// The longest wait for each step of creating a page. No page content runs yet, so only the browser can be slow.
pub(crate) const SETUP_TIMEOUT: Duration = Duration::from_mins(1);

pub(crate) struct Page {
    session: Session,
    target: String,
    tracker: Arc<Tracker>,
    visit: Arc<Visit>,
    held: Held,
    worlds: Worlds,
    context: Arc<Context>,
    frames: Frames,
    workers: Arc<Workers>,
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
        let attached = context.open_target(connection, options.viewport).await?;
        Self::adopt(connection, &attached, context, options, None).await
    }

    /// Takes over an attached target as a page of `context`: sets its size and focus and disables what could block it. If
    /// the target waits for the debugger, it starts to run at the end.
    pub(crate) async fn adopt(
        connection: &Connection,
        attached: &AttachedTarget,
        context: &Arc<Context>,
        options: Arc<Options>,
        opener: Option<String>,
    ) -> Result<Self, BrowserError> {
        let (page, setup) = Self::attach(connection, attached, context, options, opener);
        for (option, pending) in setup {
            check_setup(option, pending.within(SETUP_TIMEOUT).await)?;
        }
        Ok(page)
    }

    /// Like [`Self::adopt`], without waiting. Returns the calls of the setup, each with the session option that it is for.
    pub(crate) fn attach(
        connection: &Connection,
        attached: &AttachedTarget,
        context: &Arc<Context>,
        options: Arc<Options>,
        opener: Option<String>,
    ) -> (Self, Vec<SetupCall>) {
        let (page, mut setup) = Self::set_up(connection, attached, context, options, opener, true);
        setup.push((None, page.session.send(p::RUNTIME_RUN_IF_WAITING_FOR_DEBUGGER, &json!({}))));
        (page, setup)
    }

    /// Like [`Self::attach`], without letting the target run. A page that no command acts on need not be `observed`: it then
    /// reports less.
    pub(crate) fn set_up(
        connection: &Connection,
        attached: &AttachedTarget,
        context: &Arc<Context>,
        options: Arc<Options>,
        opener: Option<String>,
        observed: bool,
    ) -> (Self, Vec<SetupCall>) {
        let tracker = Arc::new(Tracker::new());
        attached.target.clone_into(&mut tracker.state().main_frame);
        let visit = Arc::new(Visit::default());
        let workers = Arc::new(Workers::default());
        let events = PageEvents::new(
            Arc::clone(&tracker),
            Arc::clone(&visit),
            context,
            &attached.target,
            Arc::clone(&workers),
        );
        let session = connection.attach(&attached.session, Arc::new(events));
        context.clients().add_page(&attached.target, &session);
        let page = Self {
            session,
            target: attached.target.clone(),
            tracker,
            visit,
            held: Held::default(),
            worlds: Worlds::default(),
            context: Arc::clone(context),
            frames: Frames::default(),
            workers,
            options,
            opener,
        };
        let fixed: [(Method, Value); 6] = [
            (p::PAGE_ENABLE, json!({})),
            (
                p::NETWORK_ENABLE,
                json!({"maxTotalBufferSize": 0, "maxResourceBufferSize": 0, "maxPostDataSize": 0}),
            ),
            (p::INSPECTOR_ENABLE, json!({})),
            (p::PAGE_SET_INTERCEPT_FILE_CHOOSER_DIALOG, json!({"enabled": true})),
            (p::INPUT_SET_INTERCEPT_DRAGS, json!({"enabled": true})),
            (p::EMULATION_SET_FOCUS_EMULATION_ENABLED, json!({"enabled": true})),
        ];
        // Headers and blocked hosts are options of an enabled network domain.
        let needs_network = observed || context.emulation().iter().any(EmulationCall::concerns_network);
        let fixed = fixed.iter().filter(|(method, _)| *method != p::NETWORK_ENABLE || needs_network);
        let mut setup: Vec<SetupCall> =
            fixed.map(|(method, params)| (None, page.session.send(*method, params))).collect();
        let emulation = context.emulation().iter();
        setup.extend(emulation.map(|call| (Some(call.option), page.session.send(call.method, &call.params))));
        if let Some(clock) = context.clock().filter(|_| observed) {
            setup.extend(page.set_up_clock(clock).map(|call| (None, call)));
        }
        page.pause_requests(observed);
        (page, setup)
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

    /// Continues with the mouse where it is on the page that this one replaces.
    pub(crate) fn take_mouse_from(&mut self, other: &Self) {
        self.held = Held::with_mouse_of(&other.held);
    }

    /// The mouse and the keyboard of the page.
    pub(crate) fn input(&self) -> Input<'_> {
        Input::new(&self.session, &self.held, INPUT_TIMEOUT.min(self.options.operation_timeout))
    }

    /// Records that an action starts now.
    pub(crate) fn action_start(&self) -> ActionStart {
        ActionStart { time: Instant::now(), document: self.document(), min_drawn_frames: SETTLE_DRAWN_FRAMES }
    }
}

/// A call of a page's setup, and the session option that it is for.
pub(crate) type SetupCall = (Option<&'static str>, PendingCall);

/// Converts the refusal of an option into an error that names it.
fn check_setup(option: Option<&str>, reply: Result<Reply, CallError>) -> Result<(), BrowserError> {
    match (option, reply) {
        (_, Ok(_)) => Ok(()),
        // A window shares the process of its opener, where the override is already in effect.
        (Some(_), Err(CallError::Rejected { message, .. })) if message.contains("already in effect") => {
            Ok(())
        }
        (Some(option), Err(CallError::Rejected { message, .. })) => Err(BrowserError::BadArgument(format!(
            "the session option {option}: the browser refuses it: {message}"
        ))),
        (_, Err(error)) => Err(error.into()),
    }
}
