//! The mouse. A click is a move, a press and a release, sent together.

use cdp::{PendingCall, protocol as p};
use proto::command::{Direction, Point};
use serde_json::json;

use super::Input;
use crate::error::BrowserError;

/// Checks that a point is inside the viewport. Points on its right and bottom edges are moved to the last pixel.
pub(crate) fn check_point(point: Point, viewport: (u32, u32)) -> Result<Point, BrowserError> {
    let (width, height) = (f64::from(viewport.0), f64::from(viewport.1));
    if (0.0..=width).contains(&point.x) && (0.0..=height).contains(&point.y) {
        return Ok(Point { x: point.x.min(width - 1.0), y: point.y.min(height - 1.0) });
    }
    Err(BrowserError::BadArgument(format!(
        "the point ({}, {}) is outside the viewport, which is {width} by {height} pixels",
        point.x, point.y
    )))
}

impl Input<'_> {
    fn mouse_event(&self, kind: &str, point: Point, button: &str, buttons: u8) -> PendingCall {
        let clicks = u8::from(button != "none");
        let params = json!({
            "type": kind, "x": point.x, "y": point.y, "button": button, "buttons": buttons, "clickCount": clicks,
        });
        self.session.send(p::INPUT_DISPATCH_MOUSE_EVENT, &params)
    }

    pub(crate) async fn hover(&self, point: Point) -> Result<(), BrowserError> {
        self.wait_handled([self.mouse_event("mouseMoved", point, "none", 0)]).await
    }

    pub(crate) async fn click(&self, point: Point) -> Result<(), BrowserError> {
        self.wait_handled([
            self.mouse_event("mouseMoved", point, "none", 0),
            self.mouse_event("mousePressed", point, "left", 1),
            self.mouse_event("mouseReleased", point, "left", 0),
        ])
        .await
    }

    /// Turns the mouse wheel over a point, by `amount` CSS pixels.
    pub(crate) async fn wheel(
        &self,
        point: Point,
        direction: Direction,
        amount: f64,
    ) -> Result<(), BrowserError> {
        let (dx, dy) = match direction {
            Direction::Up => (0.0, -amount),
            Direction::Down => (0.0, amount),
            Direction::Left => (-amount, 0.0),
            Direction::Right => (amount, 0.0),
        };
        let params = json!({"type": "mouseWheel", "x": point.x, "y": point.y, "deltaX": dx, "deltaY": dy});
        self.wait_handled([self.session.send(p::INPUT_DISPATCH_MOUSE_EVENT, &params)]).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn point_outside_the_viewport_is_refused() {
        let check = |x, y| check_point(Point { x, y }, (1280, 768));
        assert_eq!(check(1280.0, 768.0).unwrap(), Point { x: 1279.0, y: 767.0 });
        assert_eq!(check(0.0, 0.0).unwrap(), Point { x: 0.0, y: 0.0 });
        for (x, y) in [(-1.0, 0.0), (1281.0, 0.0), (0.0, 769.0), (f64::NAN, 0.0)] {
            assert!(check(x, y).unwrap_err().to_string().contains("1280 by 768"));
        }
    }
}
