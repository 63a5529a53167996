//! Anthropic computer use: `tool_use` blocks of the tools `computer_2024…` to `computer_2025…` and of the computer toolset.

use serde_json::{Map, Value, json};

use super::{
    Call, DialectError, Failure, Step, Steps, Version, anthropic_browser, chat, click, command, hold, keys,
    output::{CallResult, Image, PageState},
    raw::{self, RawAction, RawCall, RawTurn},
    screen::Pointer,
    unknown, wait, wheel,
};
use crate::{
    Command,
    args::Args,
    command::{Direction, Drag, MouseButton, Point},
    text::cut,
};

/// The actions, and the version that introduced them.
const ACTIONS: &[(&str, Version)] = &[
    ("key", Version::Computer20241022),
    ("type", Version::Computer20241022),
    ("mouse_move", Version::Computer20241022),
    ("left_click", Version::Computer20241022),
    ("left_click_drag", Version::Computer20241022),
    ("right_click", Version::Computer20241022),
    ("middle_click", Version::Computer20241022),
    ("double_click", Version::Computer20241022),
    ("screenshot", Version::Computer20241022),
    ("cursor_position", Version::Computer20241022),
    ("left_mouse_down", Version::Computer20250124),
    ("left_mouse_up", Version::Computer20250124),
    ("scroll", Version::Computer20250124),
    ("hold_key", Version::Computer20250124),
    ("wait", Version::Computer20250124),
    ("triple_click", Version::Computer20250124),
    ("zoom", Version::Computer20251124),
];

const COMPUTER: &str = "computer";
const BROWSER: &str = "browser";

pub(super) fn read(value: &Value) -> Result<RawTurn, DialectError> {
    let to_actions = |name: &str, arguments: &Map<String, Value>| vec![action_of(name, arguments)];
    if let Some(turn) = chat::read_with_text(value, to_actions)? {
        return Ok(turn);
    }
    let blocks = match value.get("content") {
        Some(content @ (Value::Array(_) | Value::Object(_))) => raw::objects(content)?,
        _ => raw::objects(value)?,
    };
    let mut turn = RawTurn::native(Vec::new());
    for block in blocks {
        match block.get("type").and_then(Value::as_str) {
            None => turn.calls.push(RawCall::new(None, action_of(COMPUTER, block))),
            Some("tool_use") => {
                let name = raw::text(block, "name")?;
                let mut action = action_of(name, raw::object(block, "input")?);
                let toolset = block.get("toolset_name").and_then(Value::as_str);
                action.toolset = toolset.map(cut);
                turn.calls.push(RawCall::new(raw::id(block, "id")?, action));
            }
            Some("text") => {
                let text = turn.answer.take().unwrap_or_default() + raw::text(block, "text")?;
                turn.answer = Some(text);
            }
            Some("thinking" | "redacted_thinking") => {}
            Some(other) => {
                return Err(DialectError(format!(
                    "action: the type {:?} is none of: tool_use, text, thinking, redacted_thinking",
                    cut(other)
                )));
            }
        }
    }
    Ok(turn)
}

/// The action of a tool is in its input; that of a toolset is the name.
fn action_of(name: &str, input: &Map<String, Value>) -> RawAction {
    match input.get("action").and_then(Value::as_str).filter(|_| name == COMPUTER) {
        Some(action) => {
            let mut input = input.clone();
            input.shift_remove("action");
            RawAction::new(action, &input)
        }
        None => RawAction::new(name, input),
    }
}

pub(super) fn action(action: &RawAction, version: Option<Version>, pointer: &mut Pointer) -> Steps {
    match action.toolset.as_deref() {
        Some(BROWSER) => return anthropic_browser::action(action, pointer),
        None if version == Some(Version::BrowserToolset) => {
            return anthropic_browser::action(action, pointer);
        }
        None | Some(COMPUTER) => {}
        Some(other) => {
            return Err(Failure::Invalid(format!("unknown toolset {other:?}; accepted: computer, browser")));
        }
    }
    let names = || ACTIONS.iter().map(|(name, _)| *name).collect::<Vec<_>>();
    let Some((name, since)) = ACTIONS.iter().find(|(name, _)| *name == action.name) else {
        return unknown(&action.name, &names());
    };
    if version.is_some_and(|version| (version as u8) < (*since as u8)) {
        return Err(Failure::Invalid(format!("{name} needs the tool {} or later", since.as_str())));
    }
    match *name {
        "key" => key(action),
        "type" => {
            let args = action.args("type", &["text"])?;
            command(Command::TypeText { text: args.bounded_text("text", raw::MAX_TYPED, raw::TYPED)? })
        }
        "mouse_move" => {
            let args = action.args("mouse_move", &["coordinate"])?;
            command(Command::MouseMove { point: coordinate(&args, "coordinate", pointer)? })
        }
        "left_click" => click_with(action, "left_click", MouseButton::Left, 1, pointer),
        "right_click" => click_with(action, "right_click", MouseButton::Right, 1, pointer),
        "middle_click" => click_with(action, "middle_click", MouseButton::Middle, 1, pointer),
        "double_click" => click_with(action, "double_click", MouseButton::Left, 2, pointer),
        "triple_click" => click_with(action, "triple_click", MouseButton::Left, 3, pointer),
        "left_click_drag" => drag(action, pointer),
        "screenshot" => action.args("screenshot", &[]).map(|_| vec![Step::Screenshot]),
        "cursor_position" => action.args("cursor_position", &[]).map(|_| {
            let (x, y) = pointer.cursor_on_display();
            vec![Step::CursorPosition { x, y }]
        }),
        "left_mouse_down" => {
            action.args("left_mouse_down", &[])?;
            command(Command::MouseDown { point: pointer.cursor(), button: MouseButton::Left })
        }
        "left_mouse_up" => {
            action.args("left_mouse_up", &[])?;
            command(Command::MouseUp { point: pointer.cursor(), button: MouseButton::Left })
        }
        "scroll" => scroll(action, pointer),
        "hold_key" => {
            let args = action.args("hold_key", &["text", "duration"])?;
            hold(&keys::chord("text", [args.text("text")?.as_str()])?, duration(&args)?)
        }
        "wait" => wait(duration(&action.args("wait", &["duration"])?)?),
        _ => {
            let args = action.args("zoom", &["region"])?;
            zoom(&args, pointer)
        }
    }
}

pub(super) fn zoom(args: &Args<'_>, pointer: &Pointer) -> Steps {
    let corners = args.numbers::<4>("region", "a list of four numbers [x0, y0, x1, y1]")?;
    Ok(vec![Step::Zoom(pointer.region(corners)?)])
}

fn key(action: &RawAction) -> Steps {
    let args = action.args("key", &["text", "repeat"])?;
    let keys = keys::chord("text", [args.text("text")?.as_str()])?;
    let repeat = args.small_count("repeat", 1, 1..=100, "a whole number from 1 to 100")?;
    Ok((0..repeat).map(|_| Step::Command(Command::Keypress { keys: keys.clone() })).collect())
}

fn click_with(
    action: &RawAction,
    name: &'static str,
    button: MouseButton,
    clicks: u8,
    pointer: &mut Pointer,
) -> Steps {
    let args = action.args(name, &["coordinate", "text", "key"])?;
    let held = modifiers(&args, if args.has("key") { "key" } else { "text" })?;
    let point = coordinate_or_cursor(&args, pointer)?;
    click(point, button, clicks, held)
}

fn drag(action: &RawAction, pointer: &mut Pointer) -> Steps {
    let args = action.args("left_click_drag", &["start_coordinate", "coordinate", "text"])?;
    let start = if args.has("start_coordinate") {
        coordinate(&args, "start_coordinate", pointer)?
    } else {
        pointer.cursor()
    };
    let path = vec![start, coordinate(&args, "coordinate", pointer)?];
    command(Command::Drag(Drag { path, button: MouseButton::Left, keys: modifiers(&args, "text")? }))
}

fn scroll(action: &RawAction, pointer: &mut Pointer) -> Steps {
    let args = action.args("scroll", &["coordinate", "scroll_direction", "scroll_amount", "text"])?;
    let direction: Direction =
        args.parsed("scroll_direction", "\"up\", \"down\", \"left\" or \"right\"", None)?;
    let amount = args.wheel_notches("scroll_amount", None)?;
    let held = modifiers(&args, "text")?;
    let point = coordinate_or_cursor(&args, pointer)?;
    let (dx, dy) = notches(direction, amount);
    wheel(point, dx, dy, held)
}

/// Converts notches of the mouse wheel to CSS pixels.
pub(super) fn notches(direction: Direction, amount: f64) -> (f64, f64) {
    super::toward(direction, amount * super::WHEEL_NOTCH)
}

/// Returns a duration in seconds; 300 is the maximum of the toolset.
fn duration(args: &Args<'_>) -> Result<f64, Failure> {
    args.number("duration")?;
    Ok(args.number_within("duration", 0.0, 0.0..=300.0, "a number of seconds from 0 to 300")?)
}

fn coordinate(args: &Args<'_>, name: &'static str, pointer: &mut Pointer) -> Result<Point, Failure> {
    let [x, y] = args.numbers::<2>(name, "a list of two numbers [x, y]")?;
    pointer.move_to(x, y)
}

fn coordinate_or_cursor(args: &Args<'_>, pointer: &mut Pointer) -> Result<Point, Failure> {
    if args.has("coordinate") { coordinate(args, "coordinate", pointer) } else { Ok(pointer.cursor()) }
}

fn modifiers(args: &Args<'_>, name: &'static str) -> Result<Vec<String>, Failure> {
    if !args.has(name) {
        return Ok(Vec::new());
    }
    keys::modifiers(name, [args.text(name)?.as_str()])
}

/// Builds a user message with one `tool_result` for each call. The screenshot is in the last one, and in those that
/// asked for one.
pub(super) fn output(calls: &[(&Call, &CallResult)], page: &PageState, screenshot: &Image) -> Value {
    let last = calls.len().saturating_sub(1);
    let results = calls.iter().enumerate().map(|(number, (call, result))| {
        let mut block = json!({"type": "tool_result"});
        if let Some(id) = &call.id {
            block["tool_use_id"] = id.as_str().into();
        }
        if let Some(toolset) = &call.toolset {
            block["toolset_name"] = toolset.as_str().into();
        }
        // The API refuses an empty text and drops images of errors.
        block["content"] = match &result.error {
            Some(error) => {
                block["is_error"] = true.into();
                json!([{"type": "text", "text": error}])
            }
            None => content(call, result, page, (number == last).then_some(screenshot)),
        };
        block
    });
    json!({"role": "user", "content": results.collect::<Vec<_>>()})
}

fn content(call: &Call, result: &CallResult, page: &PageState, screenshot: Option<&Image>) -> Value {
    let text = result.text.clone().filter(|text| !text.is_empty()).unwrap_or_else(|| "OK".to_owned());
    let mut blocks = vec![json!({"type": "text", "text": text})];
    // The answer to a question needs no screenshot.
    let screenshot = screenshot.filter(|_| result.text.is_none());
    blocks.extend(result.image.as_ref().or(screenshot).map(|image| {
        json!({"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": image.data}})
    }));
    if call.toolset.as_deref() == Some(BROWSER) {
        blocks.push(anthropic_browser::state(page));
    }
    Value::Array(blocks)
}
