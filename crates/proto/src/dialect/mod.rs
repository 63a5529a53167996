//! Action dialects: the formats in which models emit computer actions, and in which they expect the result. Parsing turns
//! a model's output into browser commands; [`Turn::output`] builds what has to be sent back. See `docs/dialects.md`.
//!
//! An action that the model wrote wrongly, or that a browser session cannot do, is a [`Failure`] of its call and is
//! reported to the model. Only a request that is no action at all is a [`DialectError`].

mod anthropic;
mod anthropic_browser;
mod chat;
mod gemini;
mod keys;
mod openai;
mod output;
mod qwen;
mod raw;
mod screen;
mod tagged_text;
#[cfg(test)]
mod tests;
mod ui_tars;
mod version;

use serde_json::Value;

pub use output::{CallResult, Image, PageState};
pub use screen::{Region, Screen, Size, check_display, coordinate_size};
pub use version::{Dialect, Version};

use crate::{
    Command, CommandError,
    command::{Direction, MouseButton, MouseClick, Point, Wheel},
    text::cut,
};
use raw::{RawAction, RawCall, RawTurn};
use screen::Pointer;

/// The most calls that a turn may have.
pub const MAX_CALLS: usize = 50;
/// The most commands that a turn may have.
pub const MAX_COMMANDS: usize = 200;
/// The longest text of a turn, in bytes.
pub const MAX_TEXT_BYTES: usize = 500_000;
/// A longer wait is shortened to this.
pub const MAX_WAIT_SECS: f64 = 30.0;
/// The most seconds that a turn may wait in total.
pub const MAX_TOTAL_WAIT_SECS: f64 = 60.0;
/// The longest address that an action may visit.
const MAX_URL: usize = 10_000;
const URL: &str = "an address of at most 10000 characters";
/// How far one notch of the mouse wheel scrolls, in CSS pixels.
pub const WHEEL_NOTCH: f64 = 100.0;

/// What a model did in one turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    pub dialect: Dialect,
    pub calls: Vec<Call>,
    /// Where the mouse is after the turn.
    pub cursor: Point,
    form: Form,
}

/// One call of a turn. The steps are carried out in order; the failure, if any, comes after them.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The id that the result has to name.
    pub id: Option<String>,
    /// The name of the action or function.
    pub name: String,
    pub steps: Vec<Step>,
    pub failure: Option<Failure>,
    /// Safety checks that the result acknowledges.
    acknowledged: Option<Value>,
    /// The toolset of an Anthropic call.
    toolset: Option<String>,
}

/// One step of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    Command(Command),
    /// Only a screenshot is wanted.
    Screenshot,
    /// The model asks where the mouse is, in pixels of the display.
    CursorPosition {
        x: u32,
        y: u32,
    },
    /// A screenshot of a region of the viewport, enlarged to the size of the display.
    Zoom(Region),
    /// The model has finished the task, or gave up.
    Finish {
        answer: String,
        success: bool,
    },
}

/// Why a call cannot be carried out. The message is meant for the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The call is not written as its dialect requires.
    #[error("{0}")]
    Invalid(String),
    /// The dialect has this action, but a browser session cannot do it.
    #[error("{action} is not supported: {reason}")]
    Unsupported { action: String, reason: &'static str },
    /// The vendor asks for the confirmation of a person, and the request does not have it.
    #[error("the action was not carried out: a person has to confirm it first")]
    Unconfirmed,
}

impl From<CommandError> for Failure {
    fn from(error: CommandError) -> Self {
        Self::Invalid(error.to_string())
    }
}

/// Why a request is not a turn of a model. The message names the field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DialectError(pub String);

/// The form of a turn; its output has the same form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// That of the vendor's own API, or plain text.
    Native,
    /// OpenAI's preview tool, with one action for each call.
    Preview,
    /// Gemini's Interactions API.
    Interactions,
    /// Function calls of an OpenAI-compatible chat API.
    Chat,
    /// A message without calls, which needs no result.
    Answer,
}

/// How a turn is read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParseOptions {
    pub dialect: Dialect,
    /// `None` accepts the actions of every version, and takes the coordinates of the newest.
    pub version: Option<Version>,
    pub screen: Screen,
    /// Whether calls with a pending safety check are carried out, and the check acknowledged.
    pub acknowledge_safety_checks: bool,
}

type Steps = Result<Vec<Step>, Failure>;

/// Parses what a model emitted: the provider's item, message or list of them, one action, or text.
pub fn parse(action: &Value, options: &ParseOptions) -> Result<Turn, DialectError> {
    if action.as_str().is_some_and(|text| text.len() > MAX_TEXT_BYTES) {
        return Err(DialectError(format!("action is longer than {MAX_TEXT_BYTES} bytes")));
    }
    let raw = match options.dialect {
        Dialect::OpenAi => openai::read(action)?,
        Dialect::Anthropic => anthropic::read(action)?,
        Dialect::Gemini => gemini::read(action)?,
        Dialect::Qwen => qwen::read(action)?,
        Dialect::UiTars => ui_tars::read(action)?,
    };
    if raw.calls.is_empty() && raw.answer.is_none() {
        return Err(DialectError("action has neither a call nor an answer".to_owned()));
    }
    if raw.calls.len() > MAX_CALLS {
        return Err(DialectError(format!(
            "action has {} calls; a turn may have at most {MAX_CALLS}",
            raw.calls.len()
        )));
    }
    let turn = interpret(raw, options);
    let commands = || turn.calls.iter().flat_map(Call::commands);
    if commands().count() > MAX_COMMANDS {
        return Err(DialectError(format!(
            "action needs {} commands; a turn may need at most {MAX_COMMANDS}",
            commands().count()
        )));
    }
    let waits: f64 =
        commands().map(|command| if let Command::Sleep { seconds } = command { *seconds } else { 0.0 }).sum();
    if waits > MAX_TOTAL_WAIT_SECS {
        return Err(DialectError(format!(
            "action waits {waits} s in total; a turn may wait at most {MAX_TOTAL_WAIT_SECS} s"
        )));
    }
    Ok(turn)
}

fn interpret(raw: RawTurn, options: &ParseOptions) -> Turn {
    let mut pointer = Pointer::new(options);
    let mut calls: Vec<Call> =
        raw.calls.into_iter().map(|call| interpret_call(call, options, &mut pointer)).collect();
    let mut form = raw.form;
    if let Some(answer) = raw.answer.filter(|_| calls.is_empty()) {
        let steps = vec![Step::Finish { answer, success: true }];
        let name = "message".to_owned();
        calls.push(Call { id: None, name, steps, failure: None, acknowledged: None, toolset: None });
        form = Form::Answer;
    }
    Turn { dialect: options.dialect, calls, cursor: pointer.cursor(), form }
}

fn interpret_call(call: RawCall, options: &ParseOptions, pointer: &mut Pointer) -> Call {
    let RawCall { id, name, actions, safety_checks } = call;
    let mut steps = Vec::new();
    let mut failure = None;
    if safety_checks.is_some() && !options.acknowledge_safety_checks {
        failure = Some(Failure::Unconfirmed);
    }
    let toolset = actions.first().and_then(|action| action.toolset.clone());
    for action in &actions {
        if failure.is_some() {
            break;
        }
        match interpret_action(action, options, pointer) {
            Ok(more) => steps.extend(more),
            Err(error) => failure = Some(error),
        }
    }
    let acknowledged = safety_checks.filter(|_| options.acknowledge_safety_checks);
    Call { id, name, steps, failure, acknowledged, toolset }
}

fn interpret_action(action: &RawAction, options: &ParseOptions, pointer: &mut Pointer) -> Steps {
    if let Some(problem) = &action.problem {
        return Err(Failure::Invalid(problem.clone()));
    }
    match options.dialect {
        Dialect::OpenAi => openai::action(action, pointer),
        Dialect::Anthropic => anthropic::action(action, options.version, pointer),
        Dialect::Gemini => gemini::action(action, options.version, pointer),
        Dialect::Qwen => qwen::action(action, options.version, pointer),
        Dialect::UiTars => ui_tars::action(action, pointer),
    }
}

impl Call {
    pub fn commands(&self) -> impl Iterator<Item = &Command> {
        self.steps
            .iter()
            .filter_map(|step| if let Step::Command(command) = step { Some(command) } else { None })
    }
}

impl Turn {
    /// How the turn ends the task, if it does: the answer, and whether the model says that it succeeded.
    pub fn finish(&self) -> Option<(&str, bool)> {
        self.calls.iter().flat_map(|call| &call.steps).find_map(|step| match step {
            Step::Finish { answer, success } => Some((answer.as_str(), *success)),
            _ => None,
        })
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the last call of a function that returns steps")]
fn command(command: Command) -> Steps {
    Ok(vec![Step::Command(command)])
}

fn click(point: Point, button: MouseButton, clicks: u8, keys: Vec<String>) -> Steps {
    command(Command::MouseClick(MouseClick { point, button, clicks, keys }))
}

fn wheel(point: Point, dx: f64, dy: f64, keys: Vec<String>) -> Steps {
    command(Command::MouseWheel(Wheel { point, dx, dy, keys }))
}

/// Returns a distance in a direction as dx and dy.
fn toward(direction: Direction, distance: f64) -> (f64, f64) {
    match direction {
        Direction::Up => (0.0, -distance),
        Direction::Down => (0.0, distance),
        Direction::Left => (-distance, 0.0),
        Direction::Right => (distance, 0.0),
    }
}

/// Adds `https://` to an address without a scheme.
fn with_scheme(url: &str) -> String {
    let scheme = url.split(['/', '?', '#']).next().unwrap_or_default();
    // A colon before digits is a port, not the end of a scheme.
    let has_scheme = scheme
        .split_once(':')
        .is_some_and(|(_, port)| !port.bytes().all(|c| c.is_ascii_digit()) || port.is_empty());
    if has_scheme { url.to_owned() } else { format!("https://{url}") }
}

fn wait(seconds: f64) -> Steps {
    command(Command::Sleep { seconds: seconds.min(MAX_WAIT_SECS) })
}

/// Carries out a command while keys are held: down in order, up in reverse order.
fn with_held(keys: &[String], command: Command) -> Vec<Step> {
    let down = keys.iter().map(|key| Command::KeyDown { key: key.clone() });
    let up = keys.iter().rev().map(|key| Command::KeyUp { key: key.clone() });
    down.chain([command]).chain(up).map(Step::Command).collect()
}

#[expect(clippy::unnecessary_wraps, reason = "the last call of a function that returns steps")]
fn hold(keys: &[String], seconds: f64) -> Steps {
    Ok(with_held(keys, Command::Sleep { seconds: seconds.min(MAX_WAIT_SECS) }))
}

fn unsupported(action: &str, reason: &'static str) -> Steps {
    Err(Failure::Unsupported { action: cut(action), reason })
}

fn unknown(action: &str, accepted: &[&str]) -> Steps {
    Err(Failure::Invalid(format!("unknown action {:?}; accepted: {}", cut(action), accepted.join(", "))))
}
