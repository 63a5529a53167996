//! UI-TARS text: `Thought: …` and `Action: click(start_box='(100,200)')`, or the XML calls of UI-TARS-2.

use serde_json::{Map, Value, json};

use super::{
    DialectError, Failure, Step, Steps, chat, click, command, keys,
    output::Image,
    raw::{self, RawAction, RawCall, RawTurn},
    screen::Pointer,
    tagged_text, unknown, unsupported, wait, wheel,
};
use crate::{
    Command,
    args::Args,
    command::{Direction, Drag, MouseButton, Point},
    text::cut,
};

const ACTIONS: &[&str] = &[
    "click",
    "left_double",
    "right_single",
    "middle_click",
    "drag",
    "hover",
    "mouse_down",
    "mouse_up",
    "hotkey",
    "press",
    "release",
    "type",
    "scroll",
    "navigate",
    "navigate_back",
    "wait",
    "take_screenshot",
    "finished",
    "call_user",
];
const MOBILE: &[&str] = &["long_press", "open_app", "press_home", "press_back"];
const NO_DEVICE: &str = "a browser session is not a mobile device";
/// An action gives a direction but no amount; ByteDance's browser operator scrolls by this many pixels.
const SCROLL_PIXELS: f64 = 500.0;
const WAIT_SECS: f64 = 5.0;

pub(super) fn read(value: &Value) -> Result<RawTurn, DialectError> {
    let message = chat::read(value, |name, arguments| vec![RawAction::new(name, arguments)])?;
    let text = match (&message, value) {
        (Some(turn), _) => turn.answer.as_deref(),
        (None, Value::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let text = text.ok_or_else(|| DialectError("action must be the text of a UI-TARS model".to_owned()))?;
    Ok(RawTurn::native(read_text(text)))
}

fn read_text(text: &str) -> Vec<RawCall> {
    let blocks = tagged_text::blocks(text, "seed:tool_call");
    if !blocks.is_empty() {
        let read = |block: &&str| match tagged_text::function(block) {
            Some((name, arguments)) => RawAction::new(&name, &arguments),
            None => RawAction::unreadable("action", "a <seed:tool_call> has no <function=…>".to_owned()),
        };
        return blocks.iter().map(|block| RawCall::new(None, read(block))).collect();
    }
    let calls =
        ["Action:", "Action："].iter().filter_map(|label| Some((text.rfind(label)?, label.len()))).max();
    let mut rest = calls.map_or(text, |(start, length)| &text[start + length..]).trim();
    let mut actions = Vec::new();
    while !rest.is_empty() && actions.len() <= super::MAX_CALLS {
        match read_call(rest) {
            Ok((name, arguments, after)) => {
                actions.push(RawAction::new(&name, &arguments));
                rest = after.trim_start_matches(|c: char| c.is_whitespace() || c == ';' || c == '`');
            }
            Err(problem) => {
                actions.push(RawAction::unreadable("action", problem));
                break;
            }
        }
    }
    if actions.is_empty() {
        actions.push(RawAction::unreadable("action", "the reply has no action".to_owned()));
    }
    actions.into_iter().map(|action| RawCall::new(None, action)).collect()
}

/// Parses one call, as in `drag(start_box='(1,2)', end_box='(3,4)')`, and returns the text after it.
fn read_call(text: &str) -> Result<(String, Map<String, Value>, &str), String> {
    let invalid = |at: &str| {
        format!("the action must be a call such as click(start_box='(100,200)'); this is not: {:?}", cut(at))
    };
    let text = text.trim_start_matches('`');
    let (name, mut rest) = text.split_once('(').ok_or_else(|| invalid(text))?;
    let is_name =
        |name: &str| !name.is_empty() && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_');
    if !is_name(name.trim()) {
        return Err(invalid(text));
    }
    let mut arguments = Map::new();
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
        if let Some(after) = rest.strip_prefix(')') {
            return Ok((name.trim().to_owned(), arguments, after));
        }
        let (key, value) =
            rest.split_once('=').filter(|(key, _)| is_name(key.trim())).ok_or_else(|| invalid(text))?;
        let (value, after) = read_value(value.trim_start()).ok_or_else(|| invalid(text))?;
        arguments.insert(key.trim().to_owned(), Value::String(value));
        rest = after;
    }
}

/// Reads a value in quotes, with the escapes `\'`, `\"`, `\\` and `\n`, or a bare one up to the next comma or bracket.
fn read_value(text: &str) -> Option<(String, &str)> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'));
    let Some(quote) = quote else {
        let end = text.find([',', ')'])?;
        return Some((text[..end].trim().to_owned(), &text[end..]));
    };
    let mut value = String::new();
    let mut characters = text.char_indices().skip(1);
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => match characters.next()?.1 {
                'n' => value.push('\n'),
                escaped @ ('\'' | '"' | '\\') => value.push(escaped),
                other => value.extend(['\\', other]),
            },
            _ if character == quote => return Some((value, &text[at + 1..])),
            _ => value.push(character),
        }
    }
    None
}

const POINT: &[&str] = &["start_box", "start_point", "point"];

pub(super) fn action(action: &RawAction, pointer: &mut Pointer) -> Steps {
    match action.name.as_str() {
        "click" | "left_single" | "left_click" => clicked(action, "click", MouseButton::Left, 1, pointer),
        "left_double" | "double_click" => clicked(action, "left_double", MouseButton::Left, 2, pointer),
        "right_single" | "right_click" => clicked(action, "right_single", MouseButton::Right, 1, pointer),
        "middle_click" => clicked(action, "middle_click", MouseButton::Middle, 1, pointer),
        "drag" | "left_click_drag" => drag(action, pointer),
        // In web data, `select` has one point, of an option; elsewhere it is a drag.
        "select" if action.fields.keys().any(|name| name.starts_with("end_")) => drag(action, pointer),
        "select" => clicked(action, "select", MouseButton::Left, 1, pointer),
        "hover" | "mouse_move" | "move_to" => {
            let args = action.args("hover", POINT)?;
            command(Command::MouseMove { point: start(&args, pointer)? })
        }
        "mouse_down" | "mouse_up" => mouse_button(action, pointer),
        "scroll" => scroll(action, pointer),
        "type" => type_text(action, pointer),
        "hotkey" => command(Command::Keypress { keys: hotkey(action, "hotkey")? }),
        "press" | "keydown" => Ok(key_steps(hotkey(action, "press")?, |key| Command::KeyDown { key })),
        "release" | "keyup" => Ok(key_steps(hotkey(action, "release")?, |key| Command::KeyUp { key })),
        "navigate" => {
            let args = action.args("navigate", &["content", "url"])?;
            let name = if args.has("url") { "url" } else { "content" };
            let url = args.bounded_text(name, super::MAX_URL, super::URL)?;
            command(Command::VisitPage { url: super::with_scheme(url.trim()) })
        }
        "navigate_back" => action.args("navigate_back", &[]).and_then(|_| command(Command::Back)),
        "wait" => {
            let args = action.args("wait", &["time"])?;
            wait(args.number_within("time", WAIT_SECS, 0.0..=300.0, "a number of seconds from 0 to 300")?)
        }
        "take_screenshot" => action.args("take_screenshot", &[]).map(|_| vec![Step::Screenshot]),
        "finished" => finish(action, "finished", true),
        "call_user" => finish(action, "call_user", false),
        "error_env" => finish(action, "error_env", false),
        "open_computer" => unsupported("open_computer", "a browser session is no virtual machine"),
        name if MOBILE.contains(&name) => unsupported(name, NO_DEVICE),
        other => unknown(other, ACTIONS),
    }
}

fn key_steps(keys: Vec<String>, to_command: impl Fn(String) -> Command) -> Vec<Step> {
    keys.into_iter().map(|key| Step::Command(to_command(key))).collect()
}

fn clicked(
    action: &RawAction,
    name: &'static str,
    button: MouseButton,
    clicks: u8,
    pointer: &mut Pointer,
) -> Steps {
    let args = action.args(name, POINT)?;
    click(start(&args, pointer)?, button, clicks, Vec::new())
}

fn drag(action: &RawAction, pointer: &mut Pointer) -> Steps {
    let args = action.args("drag", &["start_box", "start_point", "point", "end_box", "end_point"])?;
    let path = vec![start(&args, pointer)?, point(&args, &["end_box", "end_point"], pointer)?];
    command(Command::Drag(Drag { path, button: MouseButton::Left, keys: Vec::new() }))
}

fn mouse_button(action: &RawAction, pointer: &mut Pointer) -> Steps {
    let args = action.args("mouse_down", &["start_box", "start_point", "point", "button"])?;
    let button: MouseButton = args.parsed("button", "\"left\" or \"right\"", Some(MouseButton::Left))?;
    let given = POINT.iter().any(|name| args.has(name));
    let point = if given { start(&args, pointer)? } else { pointer.cursor() };
    command(match action.name.as_str() {
        "mouse_down" => Command::MouseDown { point, button },
        _ => Command::MouseUp { point, button },
    })
}

fn scroll(action: &RawAction, pointer: &mut Pointer) -> Steps {
    let args = action.args("scroll", &["start_box", "start_point", "point", "direction"])?;
    let direction: Direction = args.parsed("direction", "\"up\", \"down\", \"left\" or \"right\"", None)?;
    let given = POINT.iter().any(|name| args.has(name));
    let point = if given { start(&args, pointer)? } else { centre(pointer) };
    let (dx, dy) = super::toward(direction, SCROLL_PIXELS);
    wheel(point, dx, dy, Vec::new())
}

fn centre(pointer: &Pointer) -> Point {
    let size = pointer.viewport();
    Point { x: f64::from(size.width / 2), y: f64::from(size.height / 2) }
}

/// A line break at the end of the text submits it.
fn type_text(action: &RawAction, pointer: &mut Pointer) -> Steps {
    let args = action.args("type", &["content", "start_box", "start_point", "point"])?;
    let mut steps = Vec::new();
    if POINT.iter().any(|name| args.has(name)) {
        steps.extend(click(start(&args, pointer)?, MouseButton::Left, 1, Vec::new())?);
    }
    let text = args.bounded_text("content", raw::MAX_TYPED, raw::TYPED)?;
    let (text, submit) = match text.strip_suffix('\n') {
        Some(before) => (before.to_owned(), true),
        None => (text, false),
    };
    if !text.is_empty() || !submit {
        steps.push(Step::Command(Command::TypeText { text }));
    }
    if submit {
        steps.push(Step::Command(Command::Keypress { keys: vec!["Enter".to_owned()] }));
    }
    Ok(steps)
}

/// Keys are separated by spaces or `+`.
fn hotkey(action: &RawAction, name: &'static str) -> Result<Vec<String>, Failure> {
    let args = action.args(name, &["key", "hotkey"])?;
    let argument = if args.has("hotkey") { "hotkey" } else { "key" };
    let text = args.text(argument)?;
    let lower = text.trim().to_ascii_lowercase();
    // The only names with a space in them.
    if matches!(lower.as_str(), "page up" | "page down") {
        return keys::chord(argument, [lower.as_str()]);
    }
    keys::chord(argument, text.split_whitespace())
}

fn finish(action: &RawAction, name: &'static str, success: bool) -> Steps {
    let args = action.args(name, &["content"])?;
    let answer = if args.has("content") {
        args.bounded_text("content", raw::MAX_TYPED, raw::TYPED)?
    } else {
        String::new()
    };
    Ok(vec![Step::Finish { answer, success }])
}

fn start(args: &Args<'_>, pointer: &mut Pointer) -> Result<Point, Failure> {
    point(args, POINT, pointer)
}

/// Reads a point in any of its spellings: `(x,y)`, `<point>x y</point>`, a box of four numbers, with or without tokens.
fn point(args: &Args<'_>, names: &[&'static str], pointer: &mut Pointer) -> Result<Point, Failure> {
    let name = names.iter().find(|name| args.has(name)).unwrap_or(&names[0]);
    let text = args.text(name)?;
    let invalid =
        || Failure::Invalid(format!("{name} must be a point such as (100,200), not {:?}", cut(&text)));
    let mut inside = text.trim();
    for token in ["<|box_start|>", "<bbox>", "<point>"] {
        inside = inside.strip_prefix(token).unwrap_or(inside);
    }
    for token in ["<|box_end|>", "</bbox>", "</point>"] {
        inside = inside.strip_suffix(token).unwrap_or(inside);
    }
    let separators = |c: char| c.is_whitespace() || matches!(c, ',' | '(' | ')' | '[' | ']');
    let numbers = inside.split(separators).filter(|part| !part.is_empty());
    let numbers: Vec<f64> = numbers
        .take(5)
        .map(|number| number.parse().ok().filter(|number: &f64| number.is_finite()).ok_or_else(invalid))
        .collect::<Result<_, _>>()?;
    match numbers.as_slice() {
        [x, y] => pointer.move_to(*x, *y),
        [left, top, right, bottom] => {
            pointer.move_to(f64::midpoint(*left, *right), f64::midpoint(*top, *bottom))
        }
        _ => Err(invalid()),
    }
}

/// Builds a user message with the screenshot; the dialect reports nothing else.
pub(super) fn output(screenshot: &Image) -> Value {
    json!({"role": "user", "content": [{"type": "image_url", "image_url": {"url": screenshot.data_url()}}]})
}
