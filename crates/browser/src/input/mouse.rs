//! The mouse. A click is a move, a press and a release, sent in one go.

use cdp::{PendingCall, protocol as p};
use proto::command::{Direction, Point};
use serde_json::json;

use crate::{error::BrowserError, options::Options, page::Page};

/// The point, if it is one of the viewport's. Its far edges count as the last pixel.
pub(crate) fn inside(at: Point, options: &Options) -> Result<Point, BrowserError> {
    let (width, height) = (f64::from(options.viewport.0), f64::from(options.viewport.1));
    if (0.0..=width).contains(&at.x) && (0.0..=height).contains(&at.y) {
        return Ok(Point { x: at.x.min(width - 1.0), y: at.y.min(height - 1.0) });
    }
    Err(BrowserError::BadArgument(format!(
        "the point ({}, {}) is outside the viewport, which is {width} by {height} pixels",
        at.x, at.y
    )))
}

impl Page {
    fn mouse(&self, kind: &str, at: Point, button: &str, buttons: u8) -> PendingCall {
        let clicks = u8::from(button != "none");
        let params = json!({"type": kind, "x": at.x, "y": at.y, "button": button, "buttons": buttons, "clickCount": clicks});
        self.session().send(p::INPUT_DISPATCH_MOUSE_EVENT, &params)
    }

    pub(crate) async fn hover(&self, at: Point) -> Result<(), BrowserError> {
        self.finish_input([self.mouse("mouseMoved", at, "none", 0)]).await
    }

    pub(crate) async fn click(&self, at: Point) -> Result<(), BrowserError> {
        self.finish_input([
            self.mouse("mouseMoved", at, "none", 0),
            self.mouse("mousePressed", at, "left", 1),
            self.mouse("mouseReleased", at, "left", 0),
        ])
        .await
    }

    pub(crate) async fn wheel(
        &self,
        at: Point,
        direction: Direction,
        amount: f64,
    ) -> Result<(), BrowserError> {
        let (dx, dy) = match direction {
            Direction::Up => (0.0, -amount),
            Direction::Down => (0.0, amount),
            Direction::Left => (-amount, 0.0),
            Direction::Right => (amount, 0.0),
        };
        let params = json!({"type": "mouseWheel", "x": at.x, "y": at.y, "deltaX": dx, "deltaY": dy});
        self.finish_input([self.session().send(p::INPUT_DISPATCH_MOUSE_EVENT, &params)]).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_far_edges_are_the_last_pixels_and_beyond_is_an_error() {
        let options = Options::default();
        let point = |x, y| inside(Point { x, y }, &options);
        assert_eq!(point(1280.0, 768.0).unwrap(), Point { x: 1279.0, y: 767.0 });
        assert_eq!(point(0.0, 0.0).unwrap(), Point { x: 0.0, y: 0.0 });
        for (x, y) in [(-1.0, 0.0), (1281.0, 0.0), (0.0, 769.0), (f64::NAN, 0.0)] {
            assert!(point(x, y).unwrap_err().to_string().contains("1280 by 768"));
        }
    }
}
