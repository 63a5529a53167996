//! Cross-origin frames. The page script cannot reach into them, so each has a page script of its own. This module
//! combines their results: element rectangles are converted to page coordinates, and element ids get the context that
//! they belong to.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use cdp::{CallError, protocol as p};
use serde::Deserialize;
use serde_json::json;

use super::{
    Page,
    elements::{CollectedElements, Element},
    script::{is_context_lost, split_element_id},
};
use crate::error::BrowserError;

/// How many levels of nested cross-origin frames are searched for elements.
const MAX_FRAME_DEPTH: usize = 3;
/// The longest wait for the elements of one frame.
const FRAME_TIMEOUT: Duration = Duration::from_secs(2);

/// Maps a frame's viewport to the viewport around it.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FrameTransform {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) scale_x: f64,
    pub(crate) scale_y: f64,
}

/// A cross-origin frame that a page script found, with the id of its frame element.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct CrossOriginFrame {
    id: String,
    transform: FrameTransform,
}

/// A frame element: the frame that contains it, and its id there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct FrameElement {
    parent_frame: String,
    element: String,
}

/// The frames of the current document that were looked up so far.
#[derive(Default)]
pub(crate) struct Frames(Mutex<DocumentFrames>);

#[derive(Default)]
struct DocumentFrames {
    document: u64,
    /// Frame element → id of the frame it shows. Both exist equally long.
    by_element: HashMap<FrameElement, String>,
}

impl Frames {
    /// Returns the frames of `document`, dropping those of an earlier document.
    fn of_document(&self, document: u64) -> MutexGuard<'_, DocumentFrames> {
        let mut frames = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if frames.document != document {
            *frames = DocumentFrames { document, by_element: HashMap::new() };
        }
        frames
    }
}

#[derive(Deserialize)]
struct EvaluatedObject {
    result: RemoteObject,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RemoteObject {
    object_id: String,
}

#[derive(Deserialize)]
struct DescribedNode {
    node: Node,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Node {
    frame_id: Option<String>,
}

impl Page {
    /// Returns the interactive elements of the page and of all its frames.
    pub(crate) async fn collect_elements(&self) -> Result<CollectedElements, BrowserError> {
        let mut collected: CollectedElements = self.call_script("collectElements", &json!([])).await?;
        for frame in std::mem::take(&mut collected.cross_origin_frames) {
            let mut elements = self.collect_frame_elements(&self.target, &frame, MAX_FRAME_DEPTH).await;
            if elements.as_ref().is_err_and(is_context_lost) {
                // The frame has navigated since its last use: try again in its new document.
                elements = self.collect_frame_elements(&self.target, &frame, MAX_FRAME_DEPTH).await;
            }
            match elements {
                Ok(elements) => collected.elements.extend(elements),
                Err(error) if error.session_end().is_some() => return Err(error.into()),
                Err(error) => tracing::debug!(%error, "cannot collect the elements of a frame"),
            }
        }
        Ok(collected)
    }

    /// Returns the visible elements of a frame, with rectangles in the viewport of `parent_frame`.
    async fn collect_frame_elements(
        &self,
        parent_frame: &str,
        frame: &CrossOriginFrame,
        max_depth: usize,
    ) -> Result<Vec<Element>, CallError> {
        let deadline = Instant::now() + FRAME_TIMEOUT;
        let frame_element = FrameElement { parent_frame: parent_frame.to_owned(), element: frame.id.clone() };
        let frame_id = self.frame_id(frame_element, deadline).await?;
        let (collected, context): (CollectedElements, i64) =
            self.call_script_in_frame(&frame_id, deadline, "collectElements", &json!([])).await?;
        let mut elements: Vec<Element> = collected
            .elements
            .into_iter()
            .filter_map(|element| element.into_frame_element(context))
            .collect();
        if max_depth > 1 {
            for nested in &collected.cross_origin_frames {
                let inner = Box::pin(self.collect_frame_elements(&frame_id, nested, max_depth - 1)).await;
                elements.extend(inner.unwrap_or_default());
            }
        }
        let elements: Vec<Element> =
            elements.into_iter().map(|element| element.transformed(frame.transform)).collect();
        let centres: Vec<(f64, f64)> = elements.iter().map(Element::centre).collect();
        let arguments = json!([frame.id, centres]);
        let (uncovered, _): (Vec<bool>, i64) =
            self.call_script_in_frame(parent_frame, deadline, "isFrameTopmostAt", &arguments).await?;
        let visible = elements.into_iter().zip(uncovered).filter(|(_, uncovered)| *uncovered);
        Ok(visible.map(|(element, _)| element).collect())
    }

    /// Returns the id of the frame that a frame element shows.
    async fn frame_id(&self, frame_element: FrameElement, deadline: Instant) -> Result<String, CallError> {
        let document = self.document();
        if let Some(frame) = self.frames.of_document(document).by_element.get(&frame_element) {
            return Ok(frame.clone());
        }
        let context = self.world(&frame_element.parent_frame, deadline).await?.context;
        let expression = format!("__webgym.elementById({})", json!(frame_element.element));
        let params = json!({"expression": expression, "contextId": context});
        let EvaluatedObject { result } =
            self.session.send(p::RUNTIME_EVALUATE, &params).until(deadline).await?.decode()?;
        let params = json!({"objectId": result.object_id});
        let described = self.session.send(p::DOM_DESCRIBE_NODE, &params).until(deadline).await?;
        let DescribedNode { node } = described.decode()?;
        let frame = node.frame_id.ok_or_else(|| CallError::InvalidReply {
            method: p::DOM_DESCRIBE_NODE,
            reason: "a frame without an id".to_owned(),
        })?;
        self.frames.of_document(document).by_element.insert(frame_element, frame.clone());
        Ok(frame)
    }

    /// Converts a point from the viewport of an element's frame to page coordinates. Returns `None` if the frame is gone.
    pub(crate) async fn to_page_point(
        &self,
        element: &str,
        point: (f64, f64),
    ) -> Result<Option<(f64, f64)>, BrowserError> {
        let Some(context) = split_element_id(element).0 else { return Ok(Some(point)) };
        let Some(mut frame) = self.frame_of_context(context) else { return Ok(None) };
        let deadline = Instant::now() + FRAME_TIMEOUT;
        let (mut x, mut y) = point;
        while frame != self.target {
            let Some(FrameElement { parent_frame, element }) = self.frame_element(&frame) else {
                return Ok(None);
            };
            let arguments = json!([element]);
            let reply =
                self.call_script_in_frame(&parent_frame, deadline, "frameTransform", &arguments).await;
            let (Some(transform), _): (Option<FrameTransform>, i64) = reply? else { return Ok(None) };
            (x, y) = (transform.x + x * transform.scale_x, transform.y + y * transform.scale_y);
            frame = parent_frame;
        }
        Ok(Some((x, y)))
    }

    fn frame_element(&self, frame: &str) -> Option<FrameElement> {
        let frames = self.frames.of_document(self.document());
        frames.by_element.iter().find(|(_, id)| *id == frame).map(|(element, _)| element.clone())
    }
}
