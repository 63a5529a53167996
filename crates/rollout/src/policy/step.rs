//! What an action means for the browser: a command, a wait on our side, or the end of the episode.

use proto::{
    Command, InteractionMode,
    command::{Direction, Fill, Point, Scroll},
    trajectory::Action,
};
use serde_json::Value;

use super::words::{self, ActionKey};
use crate::address;

/// Seconds of a wait that names none.
pub const DEFAULT_WAIT: f64 = 2.0;
/// A model that asks for more gets this.
pub const LONGEST_WAIT: f64 = 60.0;

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    Command(Command),
    /// Taken on the collector's side.
    Wait {
        seconds: f64,
    },
    /// Ends the episode.
    Answer(String),
}

/// Where the action happens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scene<'a> {
    pub mode: InteractionMode,
    /// CSS pixels.
    pub width: u32,
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

const PAGE: Scroll = Scroll { amount: 200.0, full_page: true };

impl Step {
    /// The one table from action to command.
    pub fn of(action: &Action, scene: &Scene<'_>) -> Result<Self, ActionError> {
        let key = ActionKey::from_key(&action.key).ok_or_else(|| ActionError::Unknown(action.key.clone()))?;
        let asked = Asked { action, scene };
        Ok(Self::Command(match (key, scene.mode) {
            (ActionKey::Click, InteractionMode::Coordinates) => Command::ClickCoords { at: asked.point()? },
            (ActionKey::Click, InteractionMode::SetOfMarks) => Command::ClickId { id: asked.element()? },
            (ActionKey::Type, InteractionMode::Coordinates) => {
                Command::FillCoords { at: asked.point()?, fill: asked.fill()? }
            }
            (ActionKey::Type, InteractionMode::SetOfMarks) => {
                Command::FillId { id: asked.element()?, fill: asked.fill()? }
            }
            (ActionKey::Hover, InteractionMode::Coordinates) => Command::HoverCoords { at: asked.point()? },
            (ActionKey::Hover, InteractionMode::SetOfMarks) => Command::HoverId { id: asked.element()? },
            (ActionKey::Scroll, _) => asked.scroll(),
            (ActionKey::HoverAndScroll, InteractionMode::Coordinates) => {
                Command::HoverAndScrollCoords { at: asked.point()?, direction: asked.direction() }
            }
            (ActionKey::HoverAndScroll, InteractionMode::SetOfMarks) => {
                Command::ScrollId { id: asked.element()?, direction: asked.direction() }
            }
            (ActionKey::Wait, _) => return Ok(Self::Wait { seconds: asked.seconds() }),
            (ActionKey::GoBack, _) => asked.go_back(),
            (ActionKey::Navigate, _) => Command::VisitPage { url: address::with_scheme(&asked.text("url")?) },
            (ActionKey::TabAndEnter, _) => Command::TabAndEnter,
            (ActionKey::Answer, _) => return Ok(Self::Answer(asked.text("text")?)),
        }))
    }
}

struct Asked<'a> {
    action: &'a Action,
    scene: &'a Scene<'a>,
}

impl Asked<'_> {
    fn argument(&self, name: &str) -> Option<&Value> {
        self.action.arguments.get(name)
    }

    fn missing(&self, argument: &'static str) -> ActionError {
        ActionError::Argument { action: self.action.key.clone(), argument }
    }

    fn text(&self, name: &'static str) -> Result<String, ActionError> {
        self.argument(name).and_then(words::text).ok_or_else(|| self.missing(name))
    }

    fn element(&self) -> Result<String, ActionError> {
        self.argument("element_id").and_then(words::element_id).ok_or_else(|| self.missing("element_id"))
    }

    /// From the model's thousand-by-thousand grid to pixels; a box stands for its centre.
    fn point(&self) -> Result<Point, ActionError> {
        let mut numbers = Vec::new();
        words::numbers(self.argument("coordinate").unwrap_or(&Value::Null), &mut numbers);
        let (x, y) = match numbers.as_slice() {
            [x, y] => (*x, *y),
            [left, top, right, bottom] => (f64::midpoint(*left, *right), f64::midpoint(*top, *bottom)),
            _ => return Err(self.missing("coordinate")),
        };
        Ok(Point { x: pixel(self.scene.width, x), y: pixel(self.scene.height, y) })
    }

    fn fill(&self) -> Result<Fill, ActionError> {
        Ok(Fill { value: self.text("text")?, press_enter: true, delete_existing: true })
    }

    fn direction(&self) -> Direction {
        let named = self.argument("direction").and_then(Value::as_str);
        named.and_then(|named| named.parse().ok()).unwrap_or(Direction::Down)
    }

    fn scroll(&self) -> Command {
        let direction = self.direction();
        let aimed = match self.scene.mode {
            InteractionMode::Coordinates => {
                self.point().ok().map(|at| Command::ScrollCoords { at, direction })
            }
            InteractionMode::SetOfMarks => self.element().ok().map(|id| Command::ScrollId { id, direction }),
        };
        // There is no command for the page sideways: the wheel in its middle does it.
        let middle = Point { x: f64::from(self.scene.width / 2), y: f64::from(self.scene.height / 2) };
        aimed.unwrap_or(match direction {
            Direction::Down => Command::PageDown(PAGE),
            Direction::Up => Command::PageUp(PAGE),
            Direction::Left | Direction::Right => Command::ScrollCoords { at: middle, direction },
        })
    }

    fn seconds(&self) -> f64 {
        let asked = self.argument("time").and_then(words::seconds);
        asked.unwrap_or(DEFAULT_WAIT).clamp(0.0, LONGEST_WAIT)
    }

    fn go_back(&self) -> Command {
        let home = self.argument("goback_to").and_then(Value::as_str) == Some("homepage");
        if home { Command::VisitPage { url: self.scene.start_url.to_owned() } } else { Command::Back }
    }
}

/// `round(size × v / 1000)`, inside the viewport. Ties to even, as Python rounds.
pub fn pixel(size: u32, grid: f64) -> f64 {
    let size = f64::from(size);
    (size * grid / 1000.0).round_ties_even().clamp(0.0, (size - 1.0).max(0.0))
}
