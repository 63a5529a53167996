//! The mouse. A click is a move, a press and a release, sent together. Between commands a button may stay pressed.

use cdp::{PendingCall, protocol as p};
use proto::command::{Direction, MouseButton, Point};
use serde_json::{Value, json};

use super::{Input, MousePosition};
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

/// The bit of a button in the protocol's `buttons` field.
const fn button_bit(button: MouseButton) -> u8 {
    match button {
        MouseButton::Left => 1,
        MouseButton::Right => 2,
        MouseButton::Middle => 4,
    }
}

/// The name of the first pressed button, which the protocol wants for a move.
const fn pressed_button(buttons: u8) -> &'static str {
    match buttons {
        0 => "none",
        bits if bits & 1 != 0 => "left",
        bits if bits & 2 != 0 => "right",
        _ => "middle",
    }
}

impl Input<'_> {
    fn move_event(&self, point: Point) -> PendingCall {
        let mut held = self.held();
        held.mouse = MousePosition(point);
        let params = json!({
            "type": "mouseMoved", "x": point.x, "y": point.y, "button": pressed_button(held.buttons), "buttons": held.buttons,
            "modifiers": held.modifiers,
        });
        drop(held);
        self.session.send(p::INPUT_DISPATCH_MOUSE_EVENT, &params)
    }

    /// `number` is 1 for a single click and counts on for double and triple clicks.
    fn button_event(&self, kind: &str, point: Point, button: MouseButton, number: u8) -> PendingCall {
        let mut held = self.held();
        match kind {
            "mousePressed" => held.buttons |= button_bit(button),
            _ => held.buttons &= !button_bit(button),
        }
        let params = json!({
            "type": kind, "x": point.x, "y": point.y, "button": button.as_str(), "buttons": held.buttons, "clickCount": number,
            "modifiers": held.modifiers,
        });
        drop(held);
        self.session.send(p::INPUT_DISPATCH_MOUSE_EVENT, &params)
    }

    /// Moves the mouse; a pressed button stays pressed.
    pub(crate) async fn hover(&self, point: Point) -> Result<(), BrowserError> {
        self.wait_handled([self.move_event(point)]).await
    }

    pub(crate) async fn click(&self, point: Point) -> Result<(), BrowserError> {
        self.click_with(point, MouseButton::Left, 1).await
    }

    /// Clicks `clicks` times: two are a double click.
    pub(crate) async fn click_with(
        &self,
        point: Point,
        button: MouseButton,
        clicks: u8,
    ) -> Result<(), BrowserError> {
        let mut events = vec![self.move_event(point)];
        for number in 1..=clicks {
            events.push(self.button_event("mousePressed", point, button, number));
            events.push(self.button_event("mouseReleased", point, button, number));
        }
        self.wait_handled(events).await
    }

    pub(crate) async fn press_button(&self, point: Point, button: MouseButton) -> Result<(), BrowserError> {
        self.wait_handled([self.move_event(point), self.button_event("mousePressed", point, button, 1)]).await
    }

    pub(crate) async fn release_button(&self, point: Point, button: MouseButton) -> Result<(), BrowserError> {
        self.wait_handled([self.move_event(point), self.button_event("mouseReleased", point, button, 1)])
            .await
    }

    /// Marks a button as released without an event: the browser has taken over the drag.
    pub(crate) fn forget_button(&self, button: MouseButton) {
        self.held().buttons &= !button_bit(button);
    }

    /// Whether the left button is pressed, which a drag needs.
    pub(crate) fn is_left_pressed(&self) -> bool {
        self.held().buttons & button_bit(MouseButton::Left) != 0
    }

    /// Records where the mouse is, and returns the pressed modifiers.
    fn move_to(&self, point: Point) -> u32 {
        let mut held = self.held();
        held.mouse = MousePosition(point);
        held.modifiers
    }

    /// Sends an event of a drag whose data the browser has handed over.
    pub(crate) async fn drag_event(
        &self,
        kind: &str,
        point: Point,
        data: &Value,
    ) -> Result<(), BrowserError> {
        let modifiers = self.move_to(point);
        let params = json!({"type": kind, "x": point.x, "y": point.y, "data": data, "modifiers": modifiers});
        self.wait_handled([self.session.send(p::INPUT_DISPATCH_DRAG_EVENT, &params)]).await
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
        self.wheel_by(point, dx, dy).await
    }

    pub(crate) async fn wheel_by(&self, point: Point, dx: f64, dy: f64) -> Result<(), BrowserError> {
        let modifiers = self.move_to(point);
        let params = json!({"type": "mouseWheel", "x": point.x, "y": point.y, "deltaX": dx, "deltaY": dy, "modifiers": modifiers});
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
