//! Converts a turn to an action of a trajectory. The action has the key and the arguments of the most similar built-in
//! action, and all commands of the turn, which are carried out.

use proto::{
    Command,
    command::Point,
    dialect::{Call, Size, Turn},
    trajectory::Action,
};
use serde_json::{Map, Value, json};

use super::super::action::{ActionKey, text_form};

/// The name of the argument with the commands of a turn.
pub(crate) const COMMANDS: &str = "commands";
/// Longer descriptions are cut.
const MAX_SENTENCE_CHARS: usize = 240;

/// Returns the action of a turn that does not end the task.
pub(super) fn to_action(turn: &Turn, viewport: Size) -> Action {
    let commands: Vec<&Command> = turn.calls.iter().flat_map(Call::commands).collect();
    let (key, mut arguments) = match commands.first() {
        Some(first) => main_action(first, viewport),
        None => (ActionKey::Wait.as_str().to_owned(), Map::from_iter([("time".to_owned(), json!(0))])),
    };
    let list: Vec<Value> = commands.iter().map(|command| command.to_json().into()).collect();
    arguments.insert(COMMANDS.to_owned(), list.into());
    let mut action = Action { key, arguments, action_string: sentence(&commands) };
    if commands.len() == 1 && ActionKey::from_key(&action.key).is_some() {
        action.action_string = text_form(&action);
    }
    action
}

/// Returns the key and the arguments for the first command of a turn.
fn main_action(command: &Command, viewport: Size) -> (String, Map<String, Value>) {
    let grid = |point: &Point| {
        let share = |value: f64, size: u32| (value * 1000.0 / f64::from(size)).round() as i64;
        (
            Action::COORDINATES.to_owned(),
            json!([share(point.x, viewport.width), share(point.y, viewport.height)]),
        )
    };
    let field = |name: &str, value: Value| (name.to_owned(), value);
    let (key, arguments) = match command {
        Command::MouseClick(click) => (ActionKey::Click, vec![grid(&click.point)]),
        Command::MouseMove { point } => (ActionKey::Hover, vec![grid(point)]),
        Command::FillCoords { point, fill } => {
            (ActionKey::Type, vec![grid(point), field(Action::TEXT, json!(fill.value))])
        }
        Command::TypeText { text } => (ActionKey::Type, vec![field(Action::TEXT, json!(text))]),
        Command::MouseWheel(wheel) => {
            let direction = match (wheel.dx, wheel.dy) {
                (dx, dy) if dx.abs() > dy.abs() => {
                    if dx < 0.0 {
                        "left"
                    } else {
                        "right"
                    }
                }
                (_, dy) => {
                    if dy < 0.0 {
                        "up"
                    } else {
                        "down"
                    }
                }
            };
            (ActionKey::Scroll, vec![grid(&wheel.point), field("direction", json!(direction))])
        }
        Command::PageDown(_) => (ActionKey::Scroll, vec![field("direction", json!("down"))]),
        Command::PageUp(_) => (ActionKey::Scroll, vec![field("direction", json!("up"))]),
        Command::Sleep { seconds } => (ActionKey::Wait, vec![field("time", json!(seconds))]),
        Command::Back => (ActionKey::GoBack, vec![field("goback_to", json!("last_page"))]),
        Command::VisitPage { url } => (ActionKey::Navigate, vec![field("url", json!(url))]),
        other => {
            let arguments =
                other.to_json().into_iter().next().and_then(|(_, arguments)| arguments.as_object().cloned());
            return (other.name().to_owned(), arguments.unwrap_or_default());
        }
    };
    (key.as_str().to_owned(), arguments.into_iter().collect())
}

/// Describes commands in a line, as in `drag {"path":…}; keypress {"keys":["Enter"]}`.
fn sentence(commands: &[&Command]) -> String {
    let describe = |command: &&Command| {
        let arguments = command.to_json().into_iter().next().map(|(_, arguments)| arguments.to_string());
        format!("{} {}", command.name(), arguments.unwrap_or_default())
    };
    let text = commands.iter().map(describe).collect::<Vec<_>>().join("; ");
    if text.is_empty() { "screenshot".to_owned() } else { text.chars().take(MAX_SENTENCE_CHARS).collect() }
}

/// Returns the commands of an action of a dialect; `None` for a built-in action.
pub(crate) fn commands_of(action: &Action) -> Option<Vec<Command>> {
    let list = action.arguments.get(COMMANDS)?.as_array()?;
    list.iter().map(|command| Command::from_json(command.as_object()?, &[]).ok()).collect()
}
