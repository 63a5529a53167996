//! Dragging. A page handles a drag by mouse events, or the browser handles it (HTML drag and drop). In the second case the browser
//! reports the dragged data instead of dropping it, and we send drag events instead of mouse events until the drop.

use std::time::Duration;

use proto::command::{MouseButton, Point};
use serde_json::json;

use super::Page;
use crate::error::BrowserError;

/// How many moves a drag makes between two points of its path; many pages ignore a drag that arrives in one move.
const MOVES_PER_SEGMENT: u32 = 5;
/// The longest wait for the data of a drag that the page has accepted.
const DRAG_DATA_TIMEOUT: Duration = Duration::from_secs(5);

impl Page {
    /// Drags along a path of at least two points.
    pub(crate) async fn drag(&self, path: &[Point], button: MouseButton) -> Result<(), BrowserError> {
        let [first, .., last] = path else {
            return Err(BrowserError::BadArgument("drag: the path needs at least two points".into()));
        };
        self.input().press_button(*first, button).await?;
        for segment in path.windows(2) {
            for step in 1..=MOVES_PER_SEGMENT {
                let share = f64::from(step) / f64::from(MOVES_PER_SEGMENT);
                let between = |from: f64, to: f64| from + (to - from) * share;
                let point =
                    Point { x: between(segment[0].x, segment[1].x), y: between(segment[0].y, segment[1].y) };
                self.move_mouse(point).await?;
            }
        }
        self.release_mouse(*last, button).await
    }

    /// Moves the mouse, with the dragged data if there is any.
    pub(crate) async fn move_mouse(&self, point: Point) -> Result<(), BrowserError> {
        if let Some(data) = self.drag_data() {
            return self.input().drag_event("dragOver", point, &data).await;
        }
        self.input().hover(point).await?;
        if !self.input().is_left_pressed() || !self.has_drag_started().await? {
            return Ok(());
        }
        let wait = self.tracker.wait_until(|state| state.drag.is_some() || state.ended.is_some());
        let _ = tokio::time::timeout(DRAG_DATA_TIMEOUT, wait).await;
        match self.drag_data() {
            Some(data) => self.input().drag_event("dragEnter", point, &data).await,
            None => Ok(()),
        }
    }

    /// Releases a button, and drops the dragged data if there is any.
    pub(crate) async fn release_mouse(&self, point: Point, button: MouseButton) -> Result<(), BrowserError> {
        let data = self.tracker.state().drag.take();
        let Some(data) = data.filter(|_| button == MouseButton::Left) else {
            return self.input().release_button(point, button).await;
        };
        self.input().forget_button(button);
        self.input().drag_event("dragOver", point, &data).await?;
        self.input().drag_event("drop", point, &data).await
    }

    fn drag_data(&self) -> Option<serde_json::Value> {
        self.tracker.state().drag.clone()
    }

    /// Whether the page has accepted a drag since the last call.
    async fn has_drag_started(&self) -> Result<bool, BrowserError> {
        self.call_script("hasDragStarted", &json!([])).await
    }
}
