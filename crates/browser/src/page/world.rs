//! Our isolated world in the page's document: made on first use after each navigation, asked by function name.

use std::{
    sync::PoisonError,
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
    "globalThis.__webgym = { collect, openRows, clickRow, scrollRowsAt, locate, choose, focusOn, fillWhole, scrollId, \
     scrollAt, metadata, text, quiet, size };\n})();",
);

/// An execution context and the document it belongs to.
#[derive(Clone, Copy)]
pub(crate) struct World {
    document: u64,
    context: i64,
    ready: bool,
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
        self.ask_within(self.options.operation_limit, function, arguments).await
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
            match self.ask_once(deadline, function, arguments).await {
                Err(error) if tries < 8 && context_lost(&error) => self.forget_world(),
                Err(CallError::Deadline { .. }) => {
                    return Err(BrowserError::Timeout {
                        what: format!("it is too busy for {function:?}"),
                        after: limit,
                    });
                }
                Err(error) => return Err(error.into()),
                Ok(value) => {
                    return serde_json::from_value(value).map_err(|error| {
                        BrowserError::Internal(format!("{function} answered oddly: {error}"))
                    });
                }
            }
        }
    }

    async fn ask_once(
        &self,
        deadline: Instant,
        function: &str,
        arguments: &Value,
    ) -> Result<Value, CallError> {
        let world = self.world(deadline).await?;
        // The first question in a document brings the agent along.
        let agent = if world.ready { "" } else { AGENT };
        let expression = format!("{agent}\n__webgym.{function}(...{arguments})");
        let params = json!({
            "expression": expression, "contextId": world.context, "returnByValue": true, "awaitPromise": true,
            "userGesture": false,
        });
        let evaluated: Evaluated =
            self.session.send(p::RUNTIME_EVALUATE, &params).until(deadline).await?.decode()?;
        if let Some(exception) = evaluated.exception_details {
            let why = exception.exception.map_or(exception.text, |thrown| thrown.description);
            return Err(CallError::BadAnswer { method: p::RUNTIME_EVALUATE, why });
        }
        if !world.ready {
            self.remember_world(World { ready: true, ..world });
        }
        Ok(evaluated.result.value)
    }

    async fn world(&self, deadline: Instant) -> Result<World, CallError> {
        let document = self.document();
        let known = *self.world.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(world) = known.filter(|world| world.document == document) {
            return Ok(world);
        }
        let params = json!({"frameId": self.target, "worldName": "webgym"});
        let made = self.session.send(p::PAGE_CREATE_ISOLATED_WORLD, &params).until(deadline).await?;
        let Created { execution_context_id } = made.decode()?;
        let world = World { document, context: execution_context_id, ready: false };
        self.remember_world(world);
        Ok(world)
    }

    /// Names the agent that handed out element ids: they mean nothing to any other.
    pub(crate) fn agent(&self) -> Option<(u64, i64)> {
        let known = *self.world.lock().unwrap_or_else(PoisonError::into_inner);
        known.filter(|world| world.document == self.document()).map(|world| (world.document, world.context))
    }

    fn remember_world(&self, world: World) {
        *self.world.lock().unwrap_or_else(PoisonError::into_inner) = Some(world);
    }

    fn forget_world(&self) {
        *self.world.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// The document went away under the question. The protocol has one code for every refusal, so this is the one
/// place that must look at the words.
fn context_lost(error: &CallError) -> bool {
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
        CallError::BadAnswer { why, .. } => why.contains("__webgym is not defined"),
        _ => false,
    }
}
