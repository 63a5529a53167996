//! Frames of other origins. Scripts of the page's own world cannot reach into them, so each gets an agent of its
//! own, and what those say is put together here: elements are moved to where they are on the page, and their
//! ids say which agent knows them.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use cdp::{CallError, protocol as p};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{
    Page,
    elements::{Collected, Element},
    world::context_lost,
};
use crate::error::BrowserError;

/// Frames in frames in frames: further down nothing is looked for.
const DEEPEST: usize = 3;
/// What an unwilling frame may cost a look at the page.
const PATIENCE: Duration = Duration::from_secs(2);

/// How a frame's viewport lies in the one around it.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct View {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) kx: f64,
    pub(crate) ky: f64,
}

/// A frame that an agent sees and cannot look into, by the id it gave the frame's element.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Foreign {
    id: String,
    view: View,
}

/// The element that holds a frame: in which frame it is, and its id there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Holder {
    frame: String,
    element: String,
}

/// What is known of the frames of the document on show.
#[derive(Default)]
pub(crate) struct Frames(Mutex<Known>);

#[derive(Default)]
struct Known {
    document: u64,
    /// Holder to frame. Both live and die together.
    inside: HashMap<Holder, String>,
}

impl Frames {
    fn known(&self, document: u64) -> MutexGuard<'_, Known> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.document != document {
            *known = Known { document, inside: HashMap::new() };
        }
        known
    }
}

#[derive(Deserialize)]
struct Handle {
    result: Object,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Object {
    object_id: String,
}

#[derive(Deserialize)]
struct Described {
    node: Node,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Node {
    frame_id: Option<String>,
}

impl Page {
    /// The interactive elements of the page and of all frames in it.
    pub(crate) async fn collect(&self) -> Result<Collected, BrowserError> {
        let mut collected: Collected = self.ask("collect", &json!([])).await?;
        for foreign in std::mem::take(&mut collected.foreign) {
            let mut told = self.collect_foreign(&self.target, &foreign, DEEPEST).await;
            if told.as_ref().is_err_and(context_lost) {
                // It went elsewhere since the last look; its new document has an agent by now or gets one.
                told = self.collect_foreign(&self.target, &foreign, DEEPEST).await;
            }
            match told {
                Ok(elements) => collected.elements.extend(elements),
                Err(error) if error.session_end().is_some() => return Err(error.into()),
                Err(error) => tracing::debug!(%error, "a frame does not tell its elements"),
            }
        }
        Ok(collected)
    }

    /// The elements shown in a frame, as boxes of the viewport of `around`.
    async fn collect_foreign(
        &self,
        around: &str,
        foreign: &Foreign,
        deepest: usize,
    ) -> Result<Vec<Element>, CallError> {
        let deadline = Instant::now() + PATIENCE;
        let holder = Holder { frame: around.to_owned(), element: foreign.id.clone() };
        let frame = self.frame_in(holder, deadline).await?;
        let (collected, context): (Collected, i64) =
            self.ask_frame(&frame, deadline, "collect", &json!([])).await?;
        let mut elements: Vec<Element> =
            collected.elements.into_iter().filter_map(|element| element.of_agent(context)).collect();
        if deepest > 1 {
            for nested in &collected.foreign {
                let inside = Box::pin(self.collect_foreign(&frame, nested, deepest - 1)).await;
                elements.extend(inside.unwrap_or_default());
            }
        }
        let elements: Vec<Element> =
            elements.into_iter().map(|element| element.moved(foreign.view)).collect();
        let centres: Vec<(f64, f64)> = elements.iter().map(Element::centre).collect();
        let (uncovered, _): (Vec<bool>, i64) =
            self.ask_frame(around, deadline, "frameHits", &json!([foreign.id, centres])).await?;
        Ok(elements
            .into_iter()
            .zip(uncovered)
            .filter(|(_, seen)| *seen)
            .map(|(element, _)| element)
            .collect())
    }

    /// Which frame a frame element holds.
    async fn frame_in(&self, holder: Holder, deadline: Instant) -> Result<String, CallError> {
        let document = self.document();
        if let Some(frame) = self.frames.known(document).inside.get(&holder) {
            return Ok(frame.clone());
        }
        let context = self.world(&holder.frame, deadline).await?.context;
        let expression = format!("__webgym.byId({})", json!(holder.element));
        let params = json!({"expression": expression, "contextId": context});
        let Handle { result } =
            self.session.send(p::RUNTIME_EVALUATE, &params).until(deadline).await?.decode()?;
        let params = json!({"objectId": result.object_id});
        let described = self.session.send(p::DOM_DESCRIBE_NODE, &params).until(deadline).await?;
        let Described { node } = described.decode()?;
        let frame = node.frame_id.ok_or_else(|| CallError::InvalidReply {
            method: p::DOM_DESCRIBE_NODE,
            reason: "a frame without an id".to_owned(),
        })?;
        self.frames.known(document).inside.insert(holder, frame.clone());
        Ok(frame)
    }

    /// Asks the agent that knows an element. It may be gone with its frame; then the element is missing.
    pub(crate) async fn ask_about<T: DeserializeOwned>(
        &self,
        limit: Duration,
        function: &str,
        element: &str,
        more: &[Value],
    ) -> Result<T, BrowserError> {
        let (context, local) = split(element);
        let mut arguments = vec![Value::from(local)];
        arguments.extend_from_slice(more);
        self.ask_agent(limit, function, context, &arguments.into()).await
    }

    /// Asks an agent: the page's own, or the one with this context.
    pub(crate) async fn ask_agent<T: DeserializeOwned>(
        &self,
        limit: Duration,
        function: &str,
        context: Option<i64>,
        arguments: &Value,
    ) -> Result<T, BrowserError> {
        let Some(context) = context else { return self.ask_within(limit, function, arguments).await };
        let deadline = Instant::now() + limit;
        let answer = match self.evaluate(context, deadline, "", function, arguments).await {
            Err(error) if context_lost(&error) => json!({"missing": "its frame has changed"}),
            Err(CallError::Deadline { .. }) => {
                return Err(BrowserError::Timeout {
                    what: format!("a frame is too busy for {function:?}"),
                    after: limit,
                });
            }
            answer => answer?,
        };
        serde_json::from_value(answer)
            .map_err(|error| BrowserError::Internal(format!("{function} answered oddly: {error}")))
    }

    /// A point of the viewport that an element's agent sees, as a point of the page's.
    pub(crate) async fn on_page(
        &self,
        element: &str,
        point: (f64, f64),
    ) -> Result<Option<(f64, f64)>, BrowserError> {
        let Some(context) = split(element).0 else { return Ok(Some(point)) };
        let Some(mut frame) = self.frame_of(context) else { return Ok(None) };
        let deadline = Instant::now() + PATIENCE;
        let (mut x, mut y) = point;
        while frame != self.target {
            let Some(holder) = self.holder_of(&frame) else { return Ok(None) };
            let asked = self.ask_frame(&holder.frame, deadline, "frameView", &json!([holder.element])).await;
            let (Some(view), _): (Option<View>, i64) = asked? else { return Ok(None) };
            (x, y) = (view.x + x * view.kx, view.y + y * view.ky);
            frame = holder.frame;
        }
        Ok(Some((x, y)))
    }

    fn holder_of(&self, frame: &str) -> Option<Holder> {
        let known = self.frames.known(self.document());
        known.inside.iter().find(|(_, inside)| *inside == frame).map(|(holder, _)| holder.clone())
    }
}

/// The agent that knows an element, if it is not the page's own, and the element's id there.
pub(crate) fn split(element: &str) -> (Option<i64>, &str) {
    match element.split_once('.') {
        Some((context, local)) => (context.parse().ok(), local),
        None => (None, element),
    }
}

/// The id by which everybody else knows an element of the agent with this context.
pub(crate) fn join(context: i64, local: &str) -> String {
    if local.contains('.') { local.to_owned() } else { format!("{context}.{local}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_says_which_agent_knows_the_element() {
        assert_eq!(split("12"), (None, "12"));
        assert_eq!(split(&join(7, "12")), (Some(7), "12"));
        assert_eq!(join(3, &join(7, "12")), "7.12", "the innermost agent knows it");
    }
}
