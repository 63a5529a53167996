//! OpenAI computer use: the items `computer_call` of the Responses API, of the tools `computer_use_preview` and `computer`.

use serde_json::{Map, Value, json};

use super::{
    Call, DialectError, Failure, Form, Step, Steps, chat, click, command, keys,
    output::{CallResult, Image, PageState},
    raw::{self, RawAction, RawCall, RawTurn},
    screen::Pointer,
    unknown, wait, wheel,
};
use crate::{
    Command,
    args::Args,
    command::{Drag, MouseButton},
    text::cut,
};

const ACTIONS: &[&str] =
    &["click", "double_click", "drag", "keypress", "move", "screenshot", "scroll", "type", "wait"];
/// The tool does not say how long a wait is; OpenAI's samples wait a second.
const WAIT_SECS: f64 = 1.0;

pub(super) fn read(value: &Value) -> Result<RawTurn, DialectError> {
    let to_actions = |name: &str, arguments: &Map<String, Value>| match name {
        "computer" | "computer_use" | "computer_use_preview" => actions_of(arguments),
        other => vec![RawAction::new(other, arguments)],
    };
    if let Some(turn) = chat::read_with_text(value, to_actions)? {
        return Ok(turn);
    }
    // A whole response has its items in `output`.
    let items = raw::objects(value.get("output").filter(|output| output.is_array()).unwrap_or(value))?;
    let is_action = |item: &&Map<String, Value>| {
        item.get("type").and_then(Value::as_str).is_some_and(|kind| ACTIONS.contains(&kind))
    };
    if items.iter().all(is_action) || items.iter().any(|item| item.get("type").is_none()) {
        let actions = items.iter().flat_map(|item| actions_of(item)).collect();
        let call = RawCall { id: None, name: "computer_call".to_owned(), actions, safety_checks: None };
        return Ok(RawTurn::native(vec![call]));
    }
    read_items(&items)
}

/// Reads the output items of a response.
fn read_items(items: &[&Map<String, Value>]) -> Result<RawTurn, DialectError> {
    let mut turn = RawTurn::native(Vec::new());
    for item in items {
        match raw::text(item, "type")? {
            "computer_call" => {
                let checks = item.get("pending_safety_checks").and_then(Value::as_array);
                let safety_checks = checks.filter(|checks| !checks.is_empty()).cloned().map(Value::Array);
                if item.contains_key("action") && !item.contains_key("actions") {
                    turn.form = Form::Preview;
                }
                // A call without actions only wants a screenshot.
                let has_actions = ["action", "actions"].iter().any(|name| item.contains_key(*name));
                turn.calls.push(RawCall {
                    id: raw::id(item, "call_id")?,
                    name: "computer_call".to_owned(),
                    actions: if has_actions { actions_of(item) } else { Vec::new() },
                    safety_checks,
                });
            }
            "message" => {
                let parts = item.get("content").and_then(Value::as_array).into_iter().flatten();
                turn.answer =
                    Some(parts.filter_map(|part| part.get("text").and_then(Value::as_str)).collect());
            }
            "reasoning" => {}
            // One action among items of other types.
            kind if ACTIONS.contains(&kind) => {
                turn.calls.push(RawCall::new(None, RawAction::new(kind, item)));
            }
            other => {
                return Err(DialectError(format!(
                    "action: the type {:?} is none of: computer_call, message, reasoning, {}",
                    cut(other),
                    ACTIONS.join(", ")
                )));
            }
        }
    }
    Ok(turn)
}

/// Returns the actions of `{"actions": […]}`, `{"action": {…}}` or a bare action.
fn actions_of(fields: &Map<String, Value>) -> Vec<RawAction> {
    let of = |value: &Value| match value.as_object() {
        Some(action) => {
            let name = action.get("type").and_then(Value::as_str).unwrap_or_default();
            RawAction::new(name, action)
        }
        None => RawAction::unreadable("action", "an action must be a JSON object with a type".to_owned()),
    };
    match (fields.get("actions"), fields.get("action")) {
        (Some(Value::Array(actions)), _) if !actions.is_empty() => actions.iter().map(of).collect(),
        (_, Some(action)) if !action.is_null() => vec![of(action)],
        _ => vec![of(&Value::Object(fields.clone()))],
    }
}

pub(super) fn action(action: &RawAction, pointer: &mut Pointer) -> Steps {
    match action.name.as_str() {
        "click" => {
            let args = action.args("click", &["type", "button", "x", "y", "keys"])?;
            let button = if args.has("button") { button(&args)? } else { Button::Mouse(MouseButton::Left) };
            let held = modifiers(&args)?;
            let point = point(&args, pointer)?;
            match button {
                Button::Mouse(button) => click(point, button, 1, held),
                Button::Back => command(Command::Back),
                Button::Forward => command(Command::Forward),
            }
        }
        "double_click" => {
            let args = action.args("double_click", &["type", "button", "x", "y", "keys"])?;
            let button = if args.has("button") { button(&args)? } else { Button::Mouse(MouseButton::Left) };
            let Button::Mouse(button) = button else {
                return Err(Failure::Invalid("double_click: button must be left, right or wheel".into()));
            };
            let held = modifiers(&args)?;
            click(point(&args, pointer)?, button, 2, held)
        }
        "drag" => {
            let args = action.args("drag", &["type", "path", "keys"])?;
            let expected = "a list of 2 to 500 points, each {\"x\", \"y\"}";
            let given = args.points("path", 2..=500, expected)?;
            let path = given.into_iter().map(|point| pointer.move_to(point.x, point.y));
            let path = path.collect::<Result<Vec<_>, _>>()?;
            command(Command::Drag(Drag { path, button: MouseButton::Left, keys: modifiers(&args)? }))
        }
        "keypress" => {
            let args = action.args("keypress", &["type", "keys", "key"])?;
            let names = if args.has("key") { vec![args.text("key")?] } else { args.keys()? };
            command(Command::Keypress { keys: keys::chord("keys", names.iter().map(String::as_str))? })
        }
        "move" => {
            let args = action.args("move", &["type", "x", "y", "keys"])?;
            let held = modifiers(&args)?;
            let moved = Command::MouseMove { point: point(&args, pointer)? };
            Ok(super::with_held(&held, moved))
        }
        "screenshot" => action.args("screenshot", &["type"]).map(|_| vec![Step::Screenshot]),
        "scroll" => scroll(action, pointer),
        "type" => {
            let args = action.args("type", &["type", "text"])?;
            command(Command::TypeText {
                text: args.bounded_text("text", super::raw::MAX_TYPED, super::raw::TYPED)?,
            })
        }
        "wait" => action.args("wait", &["type", "ms", "duration_ms"]).and_then(|args| {
            let milliseconds = |name| {
                args.number_within(name, WAIT_SECS * 1e3, 0.0..=300_000.0, "a number from 0 to 300000")
            };
            let given = if args.has("ms") { milliseconds("ms")? } else { milliseconds("duration_ms")? };
            wait(given / 1e3)
        }),
        other => unknown(other, ACTIONS),
    }
}

fn scroll(action: &RawAction, pointer: &mut Pointer) -> Steps {
    let accepted = &[
        "type", "x", "y", "scroll_x", "scroll_y", "scrollX", "scrollY", "delta_x", "delta_y", "deltaX",
        "deltaY", "keys",
    ];
    let args = action.args("scroll", accepted)?;
    let distance = |names: [&'static str; 4]| {
        let name = names.into_iter().find(|name| args.has(name)).unwrap_or(names[0]);
        args.number_within(name, 0.0, -100_000.0..=100_000.0, "a number from -100000 to 100000")
    };
    let dx = distance(["scroll_x", "scrollX", "delta_x", "deltaX"])?;
    let dy = distance(["scroll_y", "scrollY", "delta_y", "deltaY"])?;
    let held = modifiers(&args)?;
    let point = point(&args, pointer)?;
    let (dx, dy) = pointer.distance(dx, dy);
    wheel(point, dx, dy, held)
}

enum Button {
    Mouse(MouseButton),
    Back,
    Forward,
}

fn button(args: &Args<'_>) -> Result<Button, Failure> {
    Ok(match args.text("button")?.to_ascii_lowercase().as_str() {
        "left" | "1" => Button::Mouse(MouseButton::Left),
        "right" | "3" => Button::Mouse(MouseButton::Right),
        "wheel" | "middle" | "2" => Button::Mouse(MouseButton::Middle),
        "back" => Button::Back,
        "forward" => Button::Forward,
        other => {
            let other = cut(other);
            let accepted = "left, right, wheel, back or forward";
            return Err(Failure::Invalid(format!("button must be {accepted}, not {other:?}")));
        }
    })
}

fn point(args: &Args<'_>, pointer: &mut Pointer) -> Result<crate::command::Point, Failure> {
    pointer.move_to(args.number("x")?, args.number("y")?)
}

fn modifiers(args: &Args<'_>) -> Result<Vec<String>, Failure> {
    keys::modifiers("keys", args.keys_or_none()?.iter().map(String::as_str))
}

/// Builds one `computer_call_output` for each call. The items have no field for an error, so it is added as a message.
pub(super) fn output(
    calls: &[(&Call, &CallResult)],
    page: &PageState,
    screenshot: &Image,
    is_preview: bool,
) -> Value {
    let mut items = Vec::new();
    for (call, result) in calls {
        let image = result.image.as_ref().unwrap_or(screenshot);
        let mut shown = json!({"type": "computer_screenshot", "image_url": image.data_url()});
        if is_preview {
            shown["current_url"] = page.url.as_str().into();
        }
        let mut item = json!({"type": "computer_call_output", "output": shown});
        if let Some(id) = &call.id {
            item["call_id"] = id.as_str().into();
        }
        if let Some(checks) = &call.acknowledged {
            item["acknowledged_safety_checks"] = checks.clone();
        }
        items.push(item);
    }
    let error = calls.iter().find_map(|(_, result)| result.error.as_ref());
    items.extend(error.map(|error| {
        json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": format!("The computer action failed: {error}")}]})
    }));
    Value::Array(items)
}
