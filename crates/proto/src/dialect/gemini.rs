//! Gemini computer use: function calls of `generateContent` and of the Interactions API, with the current functions and
//! those of the earlier models ("legacy"). Coordinates are on a grid of 1000 by 1000.

use serde_json::{Map, Value, json};

use super::{
    Call, DialectError, Failure, Form, Step, Steps, Version, chat, click, command, keys,
    output::{CallResult, Image, PageState},
    raw::{self, RawAction, RawCall, RawTurn},
    screen::Pointer,
    unknown, unsupported, wait, wheel,
};
use crate::{
    Command,
    args::Args,
    command::{Direction, Drag, Fill, MouseButton, Point, Scroll},
};

const CURRENT: &[&str] = &[
    "click",
    "double_click",
    "triple_click",
    "middle_click",
    "right_click",
    "mouse_down",
    "mouse_up",
    "move",
    "type",
    "drag_and_drop",
    "wait",
    "press_key",
    "key_down",
    "key_up",
    "hotkey",
    "take_screenshot",
    "scroll",
    "go_back",
    "navigate",
    "go_forward",
];
const LEGACY: &[&str] = &[
    "open_web_browser",
    "wait_5_seconds",
    "go_back",
    "go_forward",
    "search",
    "navigate",
    "click_at",
    "hover_at",
    "type_text_at",
    "key_combination",
    "scroll_document",
    "scroll_at",
    "drag_and_drop",
];
const MOBILE: &[&str] = &["open_app", "list_apps", "long_press"];
const NO_DEVICE: &str = "a browser session is not a mobile device";
const SEARCH_PAGE: &str = "https://www.google.com";

pub(super) fn read(value: &Value) -> Result<RawTurn, DialectError> {
    let to_actions = |name: &str, arguments: &Map<String, Value>| vec![RawAction::new(name, arguments)];
    if let Some(mut turn) = chat::read_with_text(value, to_actions)? {
        turn.calls.iter_mut().for_each(take_safety_decision);
        return Ok(turn);
    }
    // A whole response has its parts in the content of the first candidate.
    let value = value.pointer("/candidates/0/content").unwrap_or(value);
    let parts = match value.get("parts") {
        Some(parts) => raw::objects(parts)?,
        None => raw::objects(value)?,
    };
    let mut turn = RawTurn::native(Vec::new());
    for part in parts {
        let call = part.get("functionCall").or(part.get("function_call")).and_then(Value::as_object);
        if let Some(text) = part.get("text").and_then(Value::as_str).filter(|_| call.is_none()) {
            if part.get("thought") != Some(&Value::Bool(true)) {
                turn.answer = Some(turn.answer.take().unwrap_or_default() + text);
            }
            continue;
        }
        if part.get("type").is_some_and(|kind| kind == "function_call") {
            turn.form = Form::Interactions;
        }
        turn.calls.push(read_call(call.unwrap_or(part))?);
    }
    Ok(turn)
}

fn read_call(call: &Map<String, Value>) -> Result<RawCall, DialectError> {
    let name = raw::text(call, "name")?;
    let empty = Map::new();
    let arguments = match call.get("args").or(call.get("arguments")) {
        None | Some(Value::Null) => &empty,
        Some(Value::Object(arguments)) => arguments,
        Some(_) => return Err(DialectError("action: args must be a JSON object".to_owned())),
    };
    let mut call = RawCall::new(raw::id(call, "id")?, RawAction::new(name, arguments));
    take_safety_decision(&mut call);
    Ok(call)
}

/// Moves a safety decision from the arguments to the call.
fn take_safety_decision(call: &mut RawCall) {
    let decisions = call.actions.iter_mut().map(|action| action.fields.shift_remove("safety_decision"));
    call.safety_checks = decisions.flatten().next();
}

pub(super) fn action(action: &RawAction, version: Option<Version>, pointer: &mut Pointer) -> Steps {
    let name = action.name.as_str();
    if MOBILE.contains(&name) {
        return unsupported(name, NO_DEVICE);
    }
    let known: Vec<&str> = match version {
        Some(Version::GeminiCurrent) => CURRENT.to_vec(),
        Some(Version::GeminiLegacy) => LEGACY.to_vec(),
        _ => CURRENT.iter().chain(LEGACY).copied().collect(),
    };
    if !known.contains(&name) {
        return unknown(name, &known);
    }
    match name {
        "click" => clicked(action, "click", MouseButton::Left, 1, pointer),
        "click_at" => clicked(action, "click_at", MouseButton::Left, 1, pointer),
        "double_click" => clicked(action, "double_click", MouseButton::Left, 2, pointer),
        "triple_click" => clicked(action, "triple_click", MouseButton::Left, 3, pointer),
        "middle_click" => clicked(action, "middle_click", MouseButton::Middle, 1, pointer),
        "right_click" => clicked(action, "right_click", MouseButton::Right, 1, pointer),
        "mouse_down" => {
            let point = at(action, "mouse_down", pointer)?;
            command(Command::MouseDown { point, button: MouseButton::Left })
        }
        "mouse_up" => {
            let point = at(action, "mouse_up", pointer)?;
            command(Command::MouseUp { point, button: MouseButton::Left })
        }
        "move" => command(Command::MouseMove { point: at(action, "move", pointer)? }),
        "hover_at" => command(Command::MouseMove { point: at(action, "hover_at", pointer)? }),
        "drag_and_drop" => drag(action, pointer),
        "scroll" => scroll(action, pointer),
        "scroll_at" => {
            let args = action.args("scroll_at", &["x", "y", "direction", "magnitude"])?;
            let magnitude = magnitude(&args, "magnitude", 800.0)?;
            scroll_by_grid(&args, magnitude, pointer)
        }
        "scroll_document" => scroll_document(action, pointer),
        "type" => type_text(action, pointer),
        "type_text_at" => type_text_at(action, pointer),
        _ => without_point(action),
    }
}

/// The functions that do not use the mouse.
fn without_point(action: &RawAction) -> Steps {
    match action.name.as_str() {
        "wait" => {
            let args = action.args("wait", &["seconds", "intent"])?;
            wait(args.number_within("seconds", 1.0, 0.0..=300.0, "a number of seconds from 0 to 300")?)
        }
        "wait_5_seconds" => action.args("wait_5_seconds", &[]).and_then(|_| wait(5.0)),
        "press_key" => command(Command::Keypress { keys: key(action, "press_key")? }),
        "key_down" => Ok(each(key(action, "key_down")?, |key| Command::KeyDown { key })),
        "key_up" => Ok(each(key(action, "key_up")?, |key| Command::KeyUp { key })),
        "hotkey" => keypress(&action.args("hotkey", &["keys", "intent"])?),
        "key_combination" => keypress(&action.args("key_combination", &["keys"])?),
        "take_screenshot" => action.args("take_screenshot", &["intent"]).map(|_| vec![Step::Screenshot]),
        "open_web_browser" => action.args("open_web_browser", &["intent"]).map(|_| vec![Step::Screenshot]),
        "go_back" => action.args("go_back", &["intent"]).and_then(|_| command(Command::Back)),
        "go_forward" => action.args("go_forward", &["intent"]).and_then(|_| command(Command::Forward)),
        "search" => action
            .args("search", &["intent"])
            .and_then(|_| command(Command::VisitPage { url: SEARCH_PAGE.to_owned() })),
        _ => {
            let args = action.args("navigate", &["url", "intent"])?;
            let url = args.bounded_text("url", super::MAX_URL, super::URL)?;
            command(Command::VisitPage { url: super::with_scheme(url.trim()) })
        }
    }
}

fn each(keys: Vec<String>, to_command: impl Fn(String) -> Command) -> Vec<Step> {
    keys.into_iter().map(|key| Step::Command(to_command(key))).collect()
}

fn key(action: &RawAction, name: &'static str) -> Result<Vec<String>, Failure> {
    let args = action.args(name, &["key", "intent"])?;
    keys::chord("key", [args.text("key")?.as_str()])
}

fn keypress(args: &Args<'_>) -> Steps {
    command(Command::Keypress { keys: keys::chord("keys", args.keys()?.iter().map(String::as_str))? })
}

fn at(action: &RawAction, name: &'static str, pointer: &mut Pointer) -> Result<Point, Failure> {
    point(&action.args(name, &["x", "y", "intent"])?, pointer)
}

fn point(args: &Args<'_>, pointer: &mut Pointer) -> Result<Point, Failure> {
    pointer.move_to(args.number("x")?, args.number("y")?)
}

fn clicked(
    action: &RawAction,
    name: &'static str,
    button: MouseButton,
    clicks: u8,
    pointer: &mut Pointer,
) -> Steps {
    click(at(action, name, pointer)?, button, clicks, Vec::new())
}

fn drag(action: &RawAction, pointer: &mut Pointer) -> Steps {
    let accepted =
        &["start_x", "start_y", "end_x", "end_y", "x", "y", "destination_x", "destination_y", "intent"];
    let args = action.args("drag_and_drop", accepted)?;
    let [from, to] = if args.has("x") || args.has("destination_x") {
        [("x", "y"), ("destination_x", "destination_y")]
    } else {
        [("start_x", "start_y"), ("end_x", "end_y")]
    };
    let mut point = |(x, y)| pointer.move_to(args.number(x)?, args.number(y)?);
    let path = vec![point(from)?, point(to)?];
    command(Command::Drag(Drag { path, button: MouseButton::Left, keys: Vec::new() }))
}

fn direction(args: &Args<'_>) -> Result<Direction, Failure> {
    Ok(args.parsed("direction", "\"up\", \"down\", \"left\" or \"right\"", None)?)
}

fn magnitude(args: &Args<'_>, name: &'static str, default: f64) -> Result<f64, Failure> {
    Ok(args.number_within(name, default, 0.0..=10_000.0, "a number from 0 to 10000")?)
}

/// `magnitude` is in units of the grid.
fn scroll_by_grid(args: &Args<'_>, magnitude: f64, pointer: &mut Pointer) -> Steps {
    let (dx, dy) = super::toward(direction(args)?, magnitude);
    let (dx, dy) = pointer.distance(dx, dy);
    wheel(point(args, pointer)?, dx.trunc(), dy.trunc(), Vec::new())
}

fn scroll(action: &RawAction, pointer: &mut Pointer) -> Steps {
    let accepted =
        &["x", "y", "direction", "magnitude_in_pixels", "magnitude", "magnitude_in_wheel_clicks", "intent"];
    let args = action.args("scroll", accepted)?;
    if args.has("magnitude") {
        let magnitude = magnitude(&args, "magnitude", 800.0)?;
        return scroll_by_grid(&args, magnitude, pointer);
    }
    let pixels = if args.has("magnitude_in_wheel_clicks") {
        args.wheel_notches("magnitude_in_wheel_clicks", None)? * super::WHEEL_NOTCH
    } else {
        magnitude(&args, "magnitude_in_pixels", 300.0)?
    };
    let (dx, dy) = super::toward(direction(&args)?, pixels);
    wheel(point(&args, pointer)?, dx, dy, Vec::new())
}

fn scroll_document(action: &RawAction, pointer: &mut Pointer) -> Steps {
    let direction = direction(&action.args("scroll_document", &["direction"])?)?;
    let full_page = Scroll { amount: 200.0, full_page: true };
    let size = pointer.viewport();
    let (width, height) = (f64::from(size.width), f64::from(size.height));
    match direction {
        Direction::Up => command(Command::PageUp(full_page)),
        Direction::Down => command(Command::PageDown(full_page)),
        Direction::Left | Direction::Right => {
            let (dx, dy) = super::toward(direction, (width / 2.0).trunc());
            let centre = Point { x: (width / 2.0).trunc(), y: (height / 2.0).trunc() };
            wheel(centre, dx, dy, Vec::new())
        }
    }
}

/// Types into the focused element, after a click if there is a point.
fn type_text(action: &RawAction, pointer: &mut Pointer) -> Steps {
    let args = action.args("type", &["text", "press_enter", "x", "y", "intent"])?;
    let mut steps = Vec::new();
    if args.has("x") || args.has("y") {
        steps.extend(click(point(&args, pointer)?, MouseButton::Left, 1, Vec::new())?);
    }
    let text = args.bounded_text("text", raw::MAX_TYPED, raw::TYPED)?;
    steps.push(Step::Command(Command::TypeText { text }));
    if args.flag_or("press_enter", false)? {
        steps.push(Step::Command(Command::Keypress { keys: vec!["Enter".to_owned()] }));
    }
    Ok(steps)
}

fn type_text_at(action: &RawAction, pointer: &mut Pointer) -> Steps {
    let accepted = &["x", "y", "text", "press_enter", "clear_before_typing"];
    let args = action.args("type_text_at", accepted)?;
    let fill = Fill {
        value: args.bounded_text("text", raw::MAX_TYPED, raw::TYPED)?,
        press_enter: args.flag_or("press_enter", true)?,
        delete_existing: args.flag_or("clear_before_typing", true)?,
    };
    command(Command::FillCoords { point: point(&args, pointer)?, fill })
}

/// Builds one function response for each call, in order. All have the screenshot after the turn, unless they have their
/// own.
pub(super) fn output(
    calls: &[(&Call, &CallResult)],
    page: &PageState,
    screenshot: &Image,
    is_interactions: bool,
) -> Value {
    let results = calls.iter().map(|(call, result)| {
        let image = result.image.as_ref().unwrap_or(screenshot);
        let mut response = json!({"url": page.url});
        if let Some(error) = &result.error {
            response["error"] = error.as_str().into();
        } else if call.acknowledged.is_some() {
            response["safety_acknowledgement"] = "true".into();
        }
        if is_interactions {
            interactions_result(call, result.error.is_some(), &response, image)
        } else {
            let inline = json!({"mimeType": image.media_type, "data": image.data});
            let mut answer =
                json!({"name": call.name, "response": response, "parts": [{"inlineData": inline}]});
            if let Some(id) = &call.id {
                answer["id"] = id.as_str().into();
            }
            json!({"functionResponse": answer})
        }
    });
    let results: Vec<Value> = results.collect();
    if is_interactions { Value::Array(results) } else { json!({"role": "user", "parts": results}) }
}

fn interactions_result(call: &Call, failed: bool, response: &Value, image: &Image) -> Value {
    let mut result = json!({"type": "function_result", "name": call.name, "result": [
        {"type": "text", "text": response.to_string()},
        {"type": "image", "data": image.data, "mime_type": image.media_type},
    ]});
    if let Some(id) = &call.id {
        result["call_id"] = id.as_str().into();
    }
    if failed {
        result["is_error"] = true.into();
    }
    result
}
