//! Qwen-VL `computer_use`: text with `<tool_call>` blocks, in JSON (Qwen2.5-VL, Qwen3-VL) or XML (Qwen3.5), or the calls
//! that a server made of it.

use serde_json::{Map, Value, json};

use super::{
    Call, DialectError, Failure, Step, Steps, Version, chat, click, command, keys,
    output::{CallResult, Image},
    raw::{self, RawAction, RawCall, RawTurn},
    screen::Pointer,
    tagged_text, unknown, wait, wheel,
};
use crate::{
    Command,
    args::Args,
    command::{Drag, MouseButton, Point},
    text::cut,
};

/// The actions, and the version that introduced them.
const ACTIONS: &[(&str, Version)] = &[
    ("key", Version::Qwen25),
    ("type", Version::Qwen25),
    ("mouse_move", Version::Qwen25),
    ("left_click", Version::Qwen25),
    ("left_click_drag", Version::Qwen25),
    ("right_click", Version::Qwen25),
    ("middle_click", Version::Qwen25),
    ("double_click", Version::Qwen25),
    ("scroll", Version::Qwen25),
    ("wait", Version::Qwen25),
    ("terminate", Version::Qwen25),
    ("triple_click", Version::Qwen3),
    ("hscroll", Version::Qwen3),
    ("answer", Version::Qwen3),
];

pub(super) fn read(value: &Value) -> Result<RawTurn, DialectError> {
    let to_actions = |name: &str, arguments: &Map<String, Value>| vec![action_of(name, arguments)];
    if let Some(mut turn) = chat::read(value, to_actions)? {
        // A server without a tool parser leaves the calls in the text.
        if let Some(text) = turn.answer.take().filter(|_| turn.calls.is_empty()) {
            return Ok(RawTurn::native(read_text(&text)));
        }
        return Ok(turn);
    }
    match value {
        Value::String(text) => Ok(RawTurn::native(read_text(text))),
        other => {
            let calls = raw::objects(other)?;
            Ok(RawTurn::native(calls.into_iter().map(|call| RawCall::new(None, read_object(call))).collect()))
        }
    }
}

/// Reads `{"name": …, "arguments": {…}}` or the arguments alone.
fn read_object(call: &Map<String, Value>) -> RawAction {
    match (call.get("name").and_then(Value::as_str), call.get("arguments")) {
        (Some(name), Some(Value::Object(arguments))) => action_of(name, arguments),
        (Some(name), Some(Value::String(text))) => match serde_json::from_str(text) {
            Ok(Value::Object(arguments)) => action_of(name, &arguments),
            _ => RawAction::unreadable(name, "arguments must be a JSON object".to_owned()),
        },
        _ => action_of("computer_use", call),
    }
}

fn action_of(name: &str, arguments: &Map<String, Value>) -> RawAction {
    if name != "computer_use" && name != "computer" {
        let problem = format!("unknown function {:?}; accepted: computer_use", cut(name));
        return RawAction::unreadable(name, problem);
    }
    let key = if arguments.contains_key("action") { "action" } else { "type" };
    let Some(action) = arguments.get(key).and_then(Value::as_str) else {
        return RawAction::unreadable(name, "action must be a string".to_owned());
    };
    let mut fields = arguments.clone();
    fields.shift_remove(key);
    RawAction::new(action.trim(), &fields)
}

fn read_text(text: &str) -> Vec<RawCall> {
    let unreadable = |problem: &str| RawAction::unreadable("computer_use", problem.to_owned());
    let Some(text) = tagged_text::after_thinking(text) else {
        return vec![RawCall::new(None, unreadable("the reply ended while thinking"))];
    };
    let blocks = tagged_text::blocks(text, "tool_call");
    let blocks =
        if blocks.is_empty() && text.trim_start().starts_with('{') { vec![text.trim()] } else { blocks };
    if blocks.is_empty() {
        return vec![RawCall::new(None, unreadable("the reply has no <tool_call>"))];
    }
    let read = |block: &&str| {
        if let Some((name, arguments)) = tagged_text::function(block) {
            return action_of(&name, &arguments);
        }
        match serde_json::from_str::<Value>(block) {
            Ok(Value::Object(call)) => read_object(&call),
            Ok(_) => unreadable("the content of <tool_call> must be a JSON object"),
            Err(error) => unreadable(&format!("the content of <tool_call> is not valid JSON: {error}")),
        }
    };
    blocks.iter().map(|block| RawCall::new(None, read(block))).collect()
}

pub(super) fn action(action: &RawAction, version: Option<Version>, pointer: &mut Pointer) -> Steps {
    let names = || ACTIONS.iter().map(|(name, _)| *name).collect::<Vec<_>>();
    let Some((name, since)) = ACTIONS.iter().find(|(name, _)| *name == action.name) else {
        return unknown(&action.name, &names());
    };
    if version.is_some_and(|version| (version as u8) < (*since as u8)) {
        return Err(Failure::Invalid(format!("{name} needs {} or later", since.as_str())));
    }
    match *name {
        "key" => {
            let args = action.args("key", &["keys"])?;
            command(Command::Keypress { keys: keys::chord("keys", args.keys()?.iter().map(String::as_str))? })
        }
        "type" => {
            let args = action.args("type", &["text"])?;
            command(Command::TypeText { text: args.bounded_text("text", raw::MAX_TYPED, raw::TYPED)? })
        }
        "mouse_move" => {
            let args = action.args("mouse_move", &["coordinate"])?;
            args.numbers::<2>("coordinate", COORDINATE)?;
            command(Command::MouseMove { point: coordinate_or_cursor(&args, pointer)? })
        }
        "left_click" => clicked(action, "left_click", MouseButton::Left, 1, pointer),
        "right_click" => clicked(action, "right_click", MouseButton::Right, 1, pointer),
        "middle_click" => clicked(action, "middle_click", MouseButton::Middle, 1, pointer),
        "double_click" => clicked(action, "double_click", MouseButton::Left, 2, pointer),
        "triple_click" => clicked(action, "triple_click", MouseButton::Left, 3, pointer),
        "left_click_drag" => {
            let args = action.args("left_click_drag", &["coordinate", "duration"])?;
            args.numbers::<2>("coordinate", COORDINATE)?;
            let path = vec![pointer.cursor(), coordinate_or_cursor(&args, pointer)?];
            command(Command::Drag(Drag { path, button: MouseButton::Left, keys: Vec::new() }))
        }
        "scroll" => scroll(action, "scroll", pointer),
        "hscroll" => scroll(action, "hscroll", pointer),
        "wait" => {
            let args = action.args("wait", &["time"])?;
            args.number("time")?;
            wait(args.number_within("time", 0.0, 0.0..=300.0, "a number of seconds from 0 to 300")?)
        }
        "terminate" => terminate(action),
        _ => {
            let args = action.args("answer", &["text"])?;
            let answer = args.bounded_text("text", raw::MAX_TYPED, raw::TYPED)?;
            Ok(vec![Step::Finish { answer, success: true }])
        }
    }
}

const COORDINATE: &str = "a list of two numbers [x, y]";

fn terminate(action: &RawAction) -> Steps {
    let args = action.args("terminate", &["status", "text"])?;
    let success = match args.text("status")?.trim() {
        "success" => true,
        "failure" => false,
        other => {
            let other = cut(other);
            return Err(Failure::Invalid(format!(
                "terminate: status must be success or failure, not {other:?}"
            )));
        }
    };
    let answer =
        if args.has("text") { args.bounded_text("text", raw::MAX_TYPED, raw::TYPED)? } else { String::new() };
    Ok(vec![Step::Finish { answer, success }])
}

fn coordinate_or_cursor(args: &Args<'_>, pointer: &mut Pointer) -> Result<Point, Failure> {
    if !args.has("coordinate") {
        return Ok(pointer.cursor());
    }
    let [x, y] = args.numbers::<2>("coordinate", COORDINATE)?;
    pointer.move_to(x, y)
}

/// Qwen3.5 writes the modifiers of a mouse action as its text.
fn modifiers(args: &Args<'_>) -> Result<Vec<String>, Failure> {
    if !args.has("text") {
        return Ok(Vec::new());
    }
    keys::modifiers("text", [args.text("text")?.as_str()])
}

fn clicked(
    action: &RawAction,
    name: &'static str,
    button: MouseButton,
    clicks: u8,
    pointer: &mut Pointer,
) -> Steps {
    let args = action.args(name, &["coordinate", "text"])?;
    let held = modifiers(&args)?;
    click(coordinate_or_cursor(&args, pointer)?, button, clicks, held)
}

/// A positive number scrolls up, or to the right.
fn scroll(action: &RawAction, name: &'static str, pointer: &mut Pointer) -> Steps {
    let args = action.args(name, &["pixels", "coordinate", "text"])?;
    args.number("pixels")?;
    let pixels =
        args.number_within("pixels", 0.0, -100_000.0..=100_000.0, "a number from -100000 to 100000")?;
    let held = modifiers(&args)?;
    let point = coordinate_or_cursor(&args, pointer)?;
    let (dx, dy) = if name == "scroll" { (0.0, -pixels) } else { (pixels, 0.0) };
    wheel(point, dx, dy, held)
}

/// Builds a user message with a `<tool_response>` for each call; the last has the screenshot.
pub(super) fn output(calls: &[(&Call, &CallResult)], screenshot: &Image) -> Value {
    let last = calls.len().saturating_sub(1);
    let mut content = Vec::new();
    for (number, (_, result)) in calls.iter().enumerate() {
        let separator = if number == 0 { "" } else { "\n" };
        let text = match &result.error {
            Some(error) => format!("Error: {error}\n"),
            None if number == last => String::new(),
            None => "OK".to_owned(),
        };
        content.push(json!({"type": "text", "text": format!("{separator}<tool_response>\n{text}")}));
        if number == last {
            content.push(json!({"type": "image_url", "image_url": {"url": screenshot.data_url()}}));
        }
        content.push(json!({"type": "text", "text": "\n</tool_response>"}));
    }
    json!({"role": "user", "content": content})
}
