//! Translates an action of the model into what the episode has to do: send a browser command, wait, or end with an answer.

use proto::{
    Command, InteractionMode,
    command::{Direction, Fill, Point, Scroll},
    trajectory::Action,
};
use serde_json::Value;

use super::{action::ActionKey, arguments, dialect::commands_of};
use crate::address;

/// Length of a wait for which the model gives no time.
pub const DEFAULT_WAIT_SECS: f64 = 2.0;
/// Upper bound of a wait; longer ones are shortened to this.
pub const MAX_WAIT_SECS: f64 = 60.0;

/// An action translated for execution.
#[derive(Clone, Debug, PartialEq)]
pub enum ResolvedAction {
    Command(Command),
    /// The commands of a turn in a dialect, in order; none if the model only wants a screenshot.
    Commands(Vec<Command>),
    /// The collector waits; nothing is sent to the browser.
    Wait {
        seconds: f64,
    },
    /// The episode ends with this answer.
    Answer(String),
}

/// What an action's translation depends on besides the action.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ActionContext<'a> {
    pub mode: InteractionMode,
    /// Viewport width in CSS pixels.
    pub width: u32,
    /// Viewport height in CSS pixels.
    pub height: u32,
    pub start_url: &'a str,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ActionError {
    #[error("{0:?} is not an action")]
    Unknown(String),
    #[error("{action} has no usable {argument}")]
    Argument { action: String, argument: &'static str },
}

const WHOLE_PAGE: Scroll = Scroll { amount: 200.0, full_page: true };

impl ResolvedAction {
    /// Translates an action in the given context.
    pub fn resolve(action: &Action, context: &ActionContext<'_>) -> Result<Self, ActionError> {
        if let Some(commands) = commands_of(action) {
            return Ok(Self::Commands(commands));
        }
        let key = ActionKey::from_key(&action.key).ok_or_else(|| ActionError::Unknown(action.key.clone()))?;
        let arguments = Arguments { action, context };
        Ok(Self::Command(match (key, context.mode) {
            (ActionKey::Click, InteractionMode::Coordinates) => {
                Command::ClickCoords { point: arguments.point()? }
            }
            (ActionKey::Click, InteractionMode::SetOfMarks) => Command::ClickId { id: arguments.element()? },
            (ActionKey::Type, InteractionMode::Coordinates) => {
                Command::FillCoords { point: arguments.point()?, fill: arguments.fill()? }
            }
            (ActionKey::Type, InteractionMode::SetOfMarks) => {
                Command::FillId { id: arguments.element()?, fill: arguments.fill()? }
            }
            (ActionKey::Hover, InteractionMode::Coordinates) => {
                Command::HoverCoords { point: arguments.point()? }
            }
            (ActionKey::Hover, InteractionMode::SetOfMarks) => Command::HoverId { id: arguments.element()? },
            (ActionKey::Scroll, _) => arguments.scroll(),
            (ActionKey::HoverAndScroll, InteractionMode::Coordinates) => {
                Command::HoverAndScrollCoords { point: arguments.point()?, direction: arguments.direction() }
            }
            (ActionKey::HoverAndScroll, InteractionMode::SetOfMarks) => {
                Command::ScrollId { id: arguments.element()?, direction: arguments.direction() }
            }
            (ActionKey::Wait, _) => return Ok(Self::Wait { seconds: arguments.seconds() }),
            (ActionKey::GoBack, _) => arguments.go_back(),
            (ActionKey::Navigate, _) => {
                Command::VisitPage { url: address::with_scheme(&arguments.text("url")?) }
            }
            (ActionKey::TabAndEnter, _) => Command::TabAndEnter,
            (ActionKey::Answer, _) => return Ok(Self::Answer(arguments.written()?)),
        }))
    }
}

/// The arguments of one action, converted in its context.
struct Arguments<'a> {
    action: &'a Action,
    context: &'a ActionContext<'a>,
}

impl Arguments<'_> {
    fn get(&self, name: &str) -> Option<&Value> {
        self.action.arguments.get(name)
    }

    fn missing(&self, argument: &'static str) -> ActionError {
        ActionError::Argument { action: self.action.key.clone(), argument }
    }

    fn text(&self, name: &'static str) -> Result<String, ActionError> {
        self.get(name).and_then(arguments::text).ok_or_else(|| self.missing(name))
    }

    /// Returns the text to type, or the answer.
    fn written(&self) -> Result<String, ActionError> {
        self.action.text().and_then(arguments::text).ok_or_else(|| self.missing(Action::TEXT))
    }

    fn element(&self) -> Result<String, ActionError> {
        self.get("element_id").and_then(arguments::element_id).ok_or_else(|| self.missing("element_id"))
    }

    /// Converts the coordinate from the 1000 by 1000 grid to pixels. A box is replaced by its centre.
    fn point(&self) -> Result<Point, ActionError> {
        let numbers = self.action.coordinates().map(arguments::numbers).unwrap_or_default();
        let (x, y) = match numbers.as_slice() {
            [x, y] => (*x, *y),
            [left, top, right, bottom] => (f64::midpoint(*left, *right), f64::midpoint(*top, *bottom)),
            _ => return Err(self.missing(Action::COORDINATES)),
        };
        Ok(Point { x: grid_to_pixel(self.context.width, x), y: grid_to_pixel(self.context.height, y) })
    }

    fn fill(&self) -> Result<Fill, ActionError> {
        Ok(Fill { value: self.written()?, press_enter: true, delete_existing: true })
    }

    fn direction(&self) -> Direction {
        let named = self.get("direction").and_then(Value::as_str);
        named.and_then(|named| named.parse().ok()).unwrap_or(Direction::Down)
    }

    fn scroll(&self) -> Command {
        let direction = self.direction();
        let targeted = match self.context.mode {
            InteractionMode::Coordinates => {
                self.point().ok().map(|point| Command::ScrollCoords { point, direction })
            }
            InteractionMode::SetOfMarks => self.element().ok().map(|id| Command::ScrollId { id, direction }),
        };
        // No command scrolls the whole page sideways, so the mouse wheel is used at the centre of the viewport.
        let centre = Point { x: f64::from(self.context.width / 2), y: f64::from(self.context.height / 2) };
        targeted.unwrap_or(match direction {
            Direction::Down => Command::PageDown(WHOLE_PAGE),
            Direction::Up => Command::PageUp(WHOLE_PAGE),
            Direction::Left | Direction::Right => Command::ScrollCoords { point: centre, direction },
        })
    }

    fn seconds(&self) -> f64 {
        let seconds = self.get("time").and_then(arguments::seconds);
        seconds.unwrap_or(DEFAULT_WAIT_SECS).clamp(0.0, MAX_WAIT_SECS)
    }

    fn go_back(&self) -> Command {
        let to_start = self.get("goback_to").and_then(Value::as_str) == Some("homepage");
        if to_start { Command::VisitPage { url: self.context.start_url.to_owned() } } else { Command::Back }
    }
}

/// Converts a grid coordinate to a pixel inside the viewport: `round(size × grid / 1000)`, with ties to even as in Python.
pub fn grid_to_pixel(size: u32, grid: f64) -> f64 {
    let size = f64::from(size);
    (size * grid / 1000.0).round_ties_even().clamp(0.0, (size - 1.0).max(0.0))
}
