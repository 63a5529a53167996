//! The clipboard of one tenant. Chromium has a single clipboard per process, which all tenants of the process share. No page
//! ever reaches it: scripts in every frame ([`FRAME_SCRIPT`], [`API_SCRIPT`]) cancel what the browser would copy or paste
//! and ask this module instead. The content lives and ends with the tenant's context.

use std::{
    hash::{BuildHasher, RandomState},
    sync::{Mutex, MutexGuard, PoisonError},
};

use cdp::{Session, protocol as p};
use serde::Deserialize;
use serde_json::{Value, json};

/// Runs in the isolated world of every frame.
const FRAME_SCRIPT: &str = include_str!("frame.js");
/// Runs in the main world of every frame.
const API_SCRIPT: &str = include_str!("api.js");
/// The isolated world of all our scripts.
pub(crate) const WORLD: &str = "webgym";
/// The function by which a frame sends us messages.
const BINDING: &str = "__webgymSend";
/// The largest content, as JSON. Larger copies are refused.
const MAX_CHARACTERS: usize = 8 << 20;

pub(crate) struct Clipboard {
    frame_script: String,
    api_script: String,
    state: Mutex<State>,
}

struct State {
    /// The content in each of its types, as the frame script describes it.
    entries: Value,
    /// Whether a key of the agent is being handled. Only keys paste; Chromium pastes on a middle click, too.
    allow_paste: bool,
    /// Whether CDP clients, whose keys are not known, drive the pages.
    has_clients: bool,
}

/// A message of the frame script.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Message {
    /// Replaces the content.
    Write(Value),
    /// A script of the page reads the content, under this request number.
    Read(u64),
    /// The browser pastes, under this request number.
    Paste(u64),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BindingCalled {
    name: String,
    payload: String,
    execution_context_id: i64,
}

/// Permits pasting until it is dropped.
pub(crate) struct PasteGuard<'a>(&'a Clipboard);

impl Drop for PasteGuard<'_> {
    fn drop(&mut self) {
        self.0.state().allow_paste = false;
    }
}

impl Clipboard {
    pub(crate) fn new() -> Self {
        // Random, because a page that knew it could read the clipboard without a user action.
        let random = || RandomState::new().hash_one(0_u8);
        let secret = format!("webgym-{:016x}{:016x}", random(), random());
        let fill_in = |script: &str| {
            script.replace("%SECRET%", &secret).replace("%MAX_CHARACTERS%", &MAX_CHARACTERS.to_string())
        };
        Self {
            frame_script: fill_in(FRAME_SCRIPT),
            api_script: fill_in(API_SCRIPT),
            state: Mutex::new(State { entries: json!([]), allow_paste: false, has_clients: false }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Installs the scripts in a new target, before any script of the page runs.
    pub(crate) fn install(&self, session: &Session) {
        let frame = json!({"source": self.frame_script, "worldName": WORLD, "runImmediately": true});
        session.send_no_reply(p::PAGE_ADD_SCRIPT_TO_EVALUATE_ON_NEW_DOCUMENT, &frame);
        let api = json!({"source": self.api_script, "runImmediately": true});
        session.send_no_reply(p::PAGE_ADD_SCRIPT_TO_EVALUATE_ON_NEW_DOCUMENT, &api);
    }

    /// Connects the isolated world of a frame. A frame without scripts of its own gets the frame script only here.
    pub(crate) fn connect(&self, session: &Session, context: i64) {
        session
            .send_no_reply(p::RUNTIME_ADD_BINDING, &json!({"name": BINDING, "executionContextId": context}));
        session.send_no_reply(
            p::RUNTIME_EVALUATE,
            &json!({"expression": self.frame_script, "contextId": context}),
        );
    }

    /// Connects the isolated worlds of all frames of a target, also of those that are created later. CDP clients send input
    /// at any time, so that no world can be connected just before it. Chromium adds the binding to later worlds only while
    /// the domain is enabled, which the clients themselves do, too.
    pub(crate) fn bind(session: &Session) {
        session.send_no_reply(p::RUNTIME_ENABLE, &json!({}));
        session
            .send_no_reply(p::RUNTIME_ADD_BINDING, &json!({"name": BINDING, "executionContextName": WORLD}));
    }

    /// Records whether CDP clients drive the pages; then any paste is theirs.
    pub(crate) fn set_has_clients(&self, has_clients: bool) {
        self.state().has_clients = has_clients;
    }

    /// Lets the keys that follow paste.
    pub(crate) fn allow_paste(&self) -> PasteGuard<'_> {
        self.state().allow_paste = true;
        PasteGuard(self)
    }

    /// Handles `Runtime.bindingCalled`.
    pub(crate) fn handle_event(&self, session: &Session, params: &[u8]) {
        let Ok(called) = cdp::parse_params::<BindingCalled>(params) else { return };
        if called.name != BINDING {
            return;
        }
        let (request, entries) = match serde_json::from_str(&called.payload) {
            Ok(Message::Write(entries)) => {
                self.state().entries = entries;
                return;
            }
            Ok(Message::Read(request)) => (request, self.state().entries.to_string()),
            Ok(Message::Paste(request)) => (request, self.pasted_entries()),
            Err(error) => {
                tracing::debug!(%error, "ignored an invalid message of a frame");
                return;
            }
        };
        let expression = format!("__webgymClipboard.deliver({request}, {entries})");
        session.send_no_reply(
            p::RUNTIME_EVALUATE,
            &json!({"expression": expression, "contextId": called.execution_context_id}),
        );
    }

    fn pasted_entries(&self) -> String {
        let state = self.state();
        if state.allow_paste || state.has_clients { state.entries.to_string() } else { "[]".to_owned() }
    }
}
