//! The page script: our JavaScript in an isolated world of each document, called by function name. Owns the execution
//! contexts; they are created on first use after each navigation.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use cdp::{CallError, PendingCall, protocol as p};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::Page;
use crate::{clipboard, error::BrowserError, options::LOCATE_TIMEOUT};

/// Runs in an isolated world: it sees the DOM of the page, and the scripts of the page cannot see it. The files form one
/// closure; the last line lists the functions that Rust can call.
const PAGE_SCRIPT: &str = concat!(
    "(() => {\nif (globalThis.__webgym) return;\n",
    include_str!("script/frames.js"),
    include_str!("script/interactive.js"),
    include_str!("script/dropdown.js"),
    include_str!("script/nested.js"),
    include_str!("script/collect.js"),
    include_str!("script/act.js"),
    include_str!("script/pickers.js"),
    include_str!("script/read.js"),
    include_str!("script/building.js"),
    include_str!("script/settle.js"),
    include_str!("script/virtual_time.js"),
    "globalThis.__webgym = { elementById, frameTransform, isFrameTopmostAt, collectElements, openDropdownRows, clickDropdownRow, \
     scrollDropdownAt, locate, chooseOption, focusElement, setFocusedValue, finishPicker, scrollElement, scrollAt, hasDragStarted, metadata, text, waitUntilQuiet, \
     describeQuiet, isIncomplete, viewportSize, clockTime, drawStoppedFrame, finishAnimations };\n})();",
);

/// How often a call is repeated because the page navigated while it ran.
const MAX_ATTEMPTS: usize = 8;

/// The execution contexts of the page script in the current document: one for the page, and one for each cross-origin
/// frame.
#[derive(Default)]
pub(crate) struct Worlds(Mutex<DocumentWorlds>);

#[derive(Default)]
struct DocumentWorlds {
    document: u64,
    by_frame: HashMap<String, World>,
}

/// An execution context, and whether the page script has been loaded into it.
#[derive(Clone, Copy)]
pub(crate) struct World {
    pub(crate) context: i64,
    loaded: bool,
}

/// Identifies one run of the page script. Element ids are valid only in the run that assigned them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScriptRun {
    document: u64,
    context: i64,
}

impl Worlds {
    /// Returns the worlds of `document`, dropping those of an earlier document.
    fn of_document(&self, document: u64) -> MutexGuard<'_, DocumentWorlds> {
        let mut worlds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if worlds.document != document {
            *worlds = DocumentWorlds { document, by_frame: HashMap::new() };
        }
        worlds
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CreatedWorld {
    execution_context_id: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Evaluated {
    result: RemoteValue,
    exception_details: Option<Exception>,
}

#[derive(Deserialize)]
struct RemoteValue {
    #[serde(default)]
    value: Value,
    #[serde(default)]
    description: String,
}

#[derive(Deserialize)]
struct Exception {
    #[serde(default)]
    text: String,
    exception: Option<RemoteValue>,
}

impl Page {
    /// Calls a function of the page script. If the page navigates meanwhile, the call is repeated in the new document.
    pub(crate) async fn call_script<T: DeserializeOwned>(
        &self,
        function: &str,
        arguments: &Value,
    ) -> Result<T, BrowserError> {
        self.call_script_within(self.options.operation_timeout, function, arguments).await
    }

    pub(crate) async fn call_script_within<T: DeserializeOwned>(
        &self,
        timeout: Duration,
        function: &str,
        arguments: &Value,
    ) -> Result<T, BrowserError> {
        let deadline = Instant::now() + timeout;
        let mut attempts = 0;
        loop {
            attempts += 1;
            match self.call_script_in_frame(&self.target, deadline, function, arguments).await {
                Err(error) if attempts < MAX_ATTEMPTS && is_context_lost(&error) => {}
                Err(CallError::Deadline { .. }) => {
                    return Err(BrowserError::Timeout {
                        operation: format!("it is too busy for {function:?}"),
                        after: timeout,
                    });
                }
                Err(error) => return Err(error.into()),
                Ok((result, _)) => return Ok(result),
            }
        }
    }

    /// Calls a function of the page script with an element's local id and further arguments, in the context that the
    /// element belongs to.
    pub(crate) async fn call_script_on_element<T: DeserializeOwned>(
        &self,
        timeout: Duration,
        function: &str,
        element: &str,
        further_arguments: &[Value],
    ) -> Result<T, BrowserError> {
        let (context, local_id) = split_element_id(element);
        let mut arguments = vec![Value::from(local_id)];
        arguments.extend_from_slice(further_arguments);
        self.call_script_in_context(timeout, function, context, &arguments.into()).await
    }

    /// Calls a function of the page script in a context, or in the page's own if `context` is `None`. If the context is
    /// gone with its frame, the result is that the element is missing.
    pub(crate) async fn call_script_in_context<T: DeserializeOwned>(
        &self,
        timeout: Duration,
        function: &str,
        context: Option<i64>,
        arguments: &Value,
    ) -> Result<T, BrowserError> {
        let Some(context) = context else {
            return self.call_script_within(timeout, function, arguments).await;
        };
        let deadline = Instant::now() + timeout;
        let result = match self.evaluate(context, deadline, "", function, arguments).await {
            Err(error) if is_context_lost(&error) => json!({"missing": "its frame has changed"}),
            Err(CallError::Deadline { .. }) => {
                return Err(BrowserError::Timeout {
                    operation: format!("a frame is too busy for {function:?}"),
                    after: timeout,
                });
            }
            result => result?,
        };
        serde_json::from_value(result).map_err(|error| {
            BrowserError::Internal(format!("{function} returned an unexpected value: {error}"))
        })
    }

    /// Calls a function of the page script in a frame and returns the frame's context too. A context that is gone is
    /// forgotten.
    pub(crate) async fn call_script_in_frame<T: DeserializeOwned>(
        &self,
        frame: &str,
        deadline: Instant,
        function: &str,
        arguments: &Value,
    ) -> Result<(T, i64), CallError> {
        let document = self.document();
        let world = self.world(frame, deadline).await?;
        // The first call in a document loads the script.
        let script = if world.loaded { "" } else { PAGE_SCRIPT };
        match self.evaluate(world.context, deadline, script, function, arguments).await {
            Ok(result) => {
                if !world.loaded {
                    self.set_world(document, frame, World { loaded: true, ..world });
                }
                let result = serde_json::from_value(result).map_err(|error| CallError::InvalidReply {
                    method: p::RUNTIME_EVALUATE,
                    reason: format!("{function} returned an unexpected value: {error}"),
                })?;
                Ok((result, world.context))
            }
            Err(error) => {
                if is_context_lost(&error) {
                    self.worlds.of_document(document).by_frame.remove(frame);
                }
                Err(error)
            }
        }
    }

    async fn evaluate(
        &self,
        context: i64,
        deadline: Instant,
        script: &str,
        function: &str,
        arguments: &Value,
    ) -> Result<Value, CallError> {
        let params = json!({
            "expression": format!("{script}\n__webgym.{function}(...{arguments})"),
            "contextId": context, "returnByValue": true, "awaitPromise": true, "userGesture": false,
        });
        let evaluated: Evaluated =
            self.session.send(p::RUNTIME_EVALUATE, &params).until(deadline).await?.decode()?;
        if let Some(exception) = evaluated.exception_details {
            let reason = exception.exception.map_or(exception.text, |thrown| thrown.description);
            return Err(CallError::InvalidReply { method: p::RUNTIME_EVALUATE, reason });
        }
        Ok(evaluated.result.value)
    }

    /// Returns the isolated world of a frame, creating it if needed.
    pub(crate) async fn world(&self, frame: &str, deadline: Instant) -> Result<World, CallError> {
        let document = self.document();
        if let Some(world) = self.worlds.of_document(document).by_frame.get(frame) {
            return Ok(*world);
        }
        self.add_world(document, frame, self.request_world(frame), deadline).await
    }

    fn request_world(&self, frame: &str) -> PendingCall {
        let params = json!({"frameId": frame, "worldName": clipboard::WORLD});
        self.session.send(p::PAGE_CREATE_ISOLATED_WORLD, &params)
    }

    async fn add_world(
        &self,
        document: u64,
        frame: &str,
        request: PendingCall,
        deadline: Instant,
    ) -> Result<World, CallError> {
        let CreatedWorld { execution_context_id } = request.until(deadline).await?.decode()?;
        self.context.clipboard().connect(&self.session, execution_context_id);
        let world = World { context: execution_context_id, loaded: false };
        self.set_world(document, frame, world);
        Ok(world)
    }

    /// Connects every frame to the tenant's clipboard. Must happen before input: a key may copy or paste in any frame.
    pub(crate) async fn connect_frames(&self) -> Result<(), BrowserError> {
        let deadline = Instant::now() + LOCATE_TIMEOUT;
        let document = self.document();
        let new_frames = self.tracker.state().take_new_frames();
        // All requests are sent before the first is awaited.
        let requests: Vec<(String, PendingCall)> = new_frames
            .into_iter()
            .map(|frame| {
                let request = self.request_world(&frame);
                (frame, request)
            })
            .collect();
        for (frame, request) in requests {
            match self.add_world(document, &frame, request, deadline).await {
                Err(error) if error.session_end().is_some() => return Err(error.into()),
                // The page is busy. Its frame is connected before the next input.
                Err(CallError::Deadline { .. }) => self.tracker.state().add_new_frame(frame),
                Err(error) => tracing::debug!(%error, "cannot connect a frame to the clipboard"),
                Ok(_) => {}
            }
        }
        if self.script_run().is_none() {
            self.world(&self.target, deadline).await?;
        }
        Ok(())
    }

    /// Waits until a paste that a key has caused is complete. The frame's request for the content arrives before the reply
    /// to the first call, and the frame handles our answer before the second.
    pub(crate) async fn finish_paste(&self) -> Result<(), BrowserError> {
        for _ in 0..2 {
            let ping = self.session.send(p::RUNTIME_EVALUATE, &json!({"expression": "0"}));
            if let Err(error @ CallError::SessionEnded { .. }) = ping.within(LOCATE_TIMEOUT).await {
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// The current run of the page script in the page's own document.
    pub(crate) fn script_run(&self) -> Option<ScriptRun> {
        let document = self.document();
        let worlds = self.worlds.of_document(document);
        worlds.by_frame.get(&self.target).map(|world| ScriptRun { document, context: world.context })
    }

    /// The frame that a context belongs to, if it still exists.
    pub(crate) fn frame_of_context(&self, context: i64) -> Option<String> {
        let worlds = self.worlds.of_document(self.document());
        worlds.by_frame.iter().find(|(_, world)| world.context == context).map(|(frame, _)| frame.clone())
    }

    /// The frames of the current document that have a page script or can have one.
    pub(crate) fn frames_with_worlds(&self) -> Vec<String> {
        self.worlds.of_document(self.document()).by_frame.keys().cloned().collect()
    }

    fn set_world(&self, document: u64, frame: &str, world: World) {
        self.worlds.of_document(document).by_frame.insert(frame.to_owned(), world);
    }
}

/// Splits an element id into the context of a cross-origin frame (`None` for the page itself) and the id in that context.
pub(crate) fn split_element_id(element: &str) -> (Option<i64>, &str) {
    match element.split_once('.') {
        Some((context, local_id)) => (context.parse().ok(), local_id),
        None => (None, element),
    }
}

/// Returns the page-wide id of an element of a cross-origin frame. An id that has a context already keeps it.
pub(crate) fn join_element_id(context: i64, local_id: &str) -> String {
    if local_id.contains('.') { local_id.to_owned() } else { format!("{context}.{local_id}") }
}

/// Whether a call failed because its document went away. The protocol uses one code for all rejections, so this function
/// must match on messages; it is the only one that does.
pub(crate) fn is_context_lost(error: &CallError) -> bool {
    const MESSAGES: &[&str] = &[
        "Cannot find context",
        "Execution context was destroyed",
        "navigated or closed",
        "Promise was collected",
        "No frame for given id",
        "Frame with the given",
        "Could not create isolated world",
    ];
    match error {
        CallError::Rejected { message, .. } => MESSAGES.iter().any(|part| message.contains(part)),
        // The world exists but the script is not in it: the document was replaced in place.
        CallError::InvalidReply { reason, .. } => reason.contains("__webgym is not defined"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn element_id_names_its_context() {
        assert_eq!(split_element_id("12"), (None, "12"));
        assert_eq!(split_element_id(&join_element_id(7, "12")), (Some(7), "12"));
        assert_eq!(join_element_id(3, &join_element_id(7, "12")), "7.12", "the innermost context is kept");
    }
}
