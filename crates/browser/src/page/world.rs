//! Our isolated world in the page's document: made on first use after each navigation, asked by function name.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use cdp::{CallError, protocol as p};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::Page;
use crate::error::BrowserError;

/// Runs in an isolated world of the main frame: sees the page's DOM, is not seen by the page's scripts. One
/// closure in several files; the last piece names what can be asked.
const AGENT: &str = concat!(
    "(() => {\nif (globalThis.__webgym) return;\n",
    include_str!("agent/frames.js"),
    include_str!("agent/interactive.js"),
    include_str!("agent/lists.js"),
    include_str!("agent/collect.js"),
    include_str!("agent/act.js"),
    include_str!("agent/read.js"),
    include_str!("agent/settle.js"),
    "globalThis.__webgym = { byId, frameView, frameHits, collect, openRows, clickRow, scrollRowsAt, locate, choose, focusOn, fillWhole, scrollId, \
     scrollAt, metadata, text, quiet, stirred, size };\n})();",
);

/// The agents of the document on show: the page's own, and those of frames it cannot reach into.
#[derive(Default)]
pub(crate) struct Worlds(Mutex<Known>);

#[derive(Default)]
struct Known {
    document: u64,
    frames: HashMap<String, World>,
}

/// An execution context, and whether the agent is in it already.
#[derive(Clone, Copy)]
pub(crate) struct World {
    pub(crate) context: i64,
    ready: bool,
}

impl Worlds {
    fn known(&self, document: u64) -> MutexGuard<'_, Known> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.document != document {
            *known = Known { document, frames: HashMap::new() };
        }
        known
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Created {
    execution_context_id: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Evaluated {
    result: Remote,
    exception_details: Option<Exception>,
}

#[derive(Deserialize)]
struct Remote {
    #[serde(default)]
    value: Value,
    #[serde(default)]
    description: String,
}

#[derive(Deserialize)]
struct Exception {
    #[serde(default)]
    text: String,
    exception: Option<Remote>,
}

impl Page {
    /// Asks the page's agent, following the page when it navigates meanwhile.
    pub(crate) async fn ask<T: DeserializeOwned>(
        &self,
        function: &str,
        arguments: &Value,
    ) -> Result<T, BrowserError> {
        self.ask_within(self.options.operation_timeout, function, arguments).await
    }

    pub(crate) async fn ask_within<T: DeserializeOwned>(
        &self,
        limit: Duration,
        function: &str,
        arguments: &Value,
    ) -> Result<T, BrowserError> {
        let deadline = Instant::now() + limit;
        let mut tries = 0;
        loop {
            tries += 1;
            match self.ask_frame(&self.target, deadline, function, arguments).await {
                Err(error) if tries < 8 && context_lost(&error) => {}
                Err(CallError::Deadline { .. }) => {
                    return Err(BrowserError::Timeout {
                        what: format!("it is too busy for {function:?}"),
                        after: limit,
                    });
                }
                Err(error) => return Err(error.into()),
                Ok((answer, _)) => return Ok(answer),
            }
        }
    }

    /// Asks the agent of a frame; also tells which one that was. An agent that is gone is forgotten.
    pub(crate) async fn ask_frame<T: DeserializeOwned>(
        &self,
        frame: &str,
        deadline: Instant,
        function: &str,
        arguments: &Value,
    ) -> Result<(T, i64), CallError> {
        let document = self.document();
        let world = self.world(frame, deadline).await?;
        // The first question in a document brings the agent along.
        let agent = if world.ready { "" } else { AGENT };
        match self.evaluate(world.context, deadline, agent, function, arguments).await {
            Ok(answer) => {
                if !world.ready {
                    self.remember(document, frame, World { ready: true, ..world });
                }
                let odd = |error| format!("{function} answered oddly: {error}");
                let answer = serde_json::from_value(answer).map_err(|error| CallError::InvalidReply {
                    method: p::RUNTIME_EVALUATE,
                    reason: odd(error),
                })?;
                Ok((answer, world.context))
            }
            Err(error) => {
                if context_lost(&error) {
                    self.worlds.known(document).frames.remove(frame);
                }
                Err(error)
            }
        }
    }

    pub(crate) async fn evaluate(
        &self,
        context: i64,
        deadline: Instant,
        agent: &str,
        function: &str,
        arguments: &Value,
    ) -> Result<Value, CallError> {
        let params = json!({
            "expression": format!("{agent}\n__webgym.{function}(...{arguments})"),
            "contextId": context, "returnByValue": true, "awaitPromise": true, "userGesture": false,
        });
        let evaluated: Evaluated =
            self.session.send(p::RUNTIME_EVALUATE, &params).until(deadline).await?.decode()?;
        if let Some(exception) = evaluated.exception_details {
            let why = exception.exception.map_or(exception.text, |thrown| thrown.description);
            return Err(CallError::InvalidReply { method: p::RUNTIME_EVALUATE, reason: why });
        }
        Ok(evaluated.result.value)
    }

    pub(crate) async fn world(&self, frame: &str, deadline: Instant) -> Result<World, CallError> {
        let document = self.document();
        if let Some(world) = self.worlds.known(document).frames.get(frame) {
            return Ok(*world);
        }
        let params = json!({"frameId": frame, "worldName": "webgym"});
        let made = self.session.send(p::PAGE_CREATE_ISOLATED_WORLD, &params).until(deadline).await?;
        let Created { execution_context_id } = made.decode()?;
        let world = World { context: execution_context_id, ready: false };
        self.remember(document, frame, world);
        Ok(world)
    }

    /// Names the agent that handed out element ids: they mean nothing to any other.
    pub(crate) fn agent(&self) -> Option<(u64, i64)> {
        let document = self.document();
        let known = self.worlds.known(document);
        known.frames.get(&self.target).map(|world| (document, world.context))
    }

    /// The frame whose agent has this context, if it is still there.
    pub(crate) fn frame_of(&self, context: i64) -> Option<String> {
        let known = self.worlds.known(self.document());
        known.frames.iter().find(|(_, world)| world.context == context).map(|(frame, _)| frame.clone())
    }

    fn remember(&self, document: u64, frame: &str, world: World) {
        self.worlds.known(document).frames.insert(frame.to_owned(), world);
    }
}

/// The document went away under the question. The protocol has one code for every refusal, so this is the one
/// place that must look at the words.
pub(crate) fn context_lost(error: &CallError) -> bool {
    const SIGNS: &[&str] = &[
        "Cannot find context",
        "Execution context was destroyed",
        "navigated or closed",
        "Promise was collected",
        "No frame for given id",
        "Frame with the given",
        "Could not create isolated world",
    ];
    match error {
        CallError::Rejected { message, .. } => SIGNS.iter().any(|sign| message.contains(sign)),
        // The world exists but its agent does not: the document was replaced in place.
        CallError::InvalidReply { reason, .. } => reason.contains("__webgym is not defined"),
        _ => false,
    }
}
