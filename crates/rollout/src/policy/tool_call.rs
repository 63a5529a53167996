//! Converts a tool call, in the JSON shapes that models produce, into an action.

use proto::{InteractionMode, trajectory::Action};
use serde_json::{Map, Value, json};

use super::{
    action::{ActionKey, new_action, text_argument},
    arguments,
    lenient_json::{self, WorkBudget},
};

/// Nesting of envelopes that is still searched.
const MAX_ENVELOPES: usize = 4;

/// Returns the tool's name in the prompt.
pub const fn tool_name(mode: InteractionMode) -> &'static str {
    match mode {
        InteractionMode::Coordinates => "computer_use",
        InteractionMode::SetOfMarks => "web_interaction",
    }
}

/// The reason why a JSON value is not an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ToolCallError {
    /// The value does not look like a tool call.
    NotACall,
    /// The value is a tool call, but cannot be used for this reason.
    Unusable(String),
}

pub(super) fn action_from_json(
    value: &Value,
    mode: InteractionMode,
    budget: &mut WorkBudget,
) -> Result<Action, ToolCallError> {
    let (name, given) = open_envelope(value, budget, 0).ok_or(ToolCallError::NotACall)?;
    let key = ActionKey::from_model_name(&name)
        .ok_or_else(|| ToolCallError::Unusable(format!("unknown action {name:?}")))?;
    build_action(key, &name, &given, mode).map_err(ToolCallError::Unusable)
}

/// Finds the action's name and its arguments inside the envelopes that models put around them.
fn open_envelope(
    value: &Value,
    budget: &mut WorkBudget,
    depth: usize,
) -> Option<(String, Map<String, Value>)> {
    if depth > MAX_ENVELOPES {
        return None;
    }
    let map = match value {
        Value::Array(list) => {
            return list.iter().find_map(|item| open_envelope(item, budget, depth + 1));
        }
        Value::Object(map) => map,
        _ => return None,
    };
    for envelope in ["function", "tool_call", "tool_calls", "action"] {
        if let Some(inner @ (Value::Object(_) | Value::Array(_))) = map.get(envelope) {
            return open_envelope(inner, budget, depth + 1);
        }
    }
    let arguments = ["arguments", "parameters", "args", "input"]
        .iter()
        .find_map(|name| map.get(*name))
        .and_then(|given| to_map(given, budget))
        .unwrap_or_else(|| map.clone());
    // `action` inside the arguments names the action; without it, the call's own name may do so.
    let inner =
        ["action", "action_type"].iter().find_map(|name| arguments.get(*name)).and_then(Value::as_str);
    let outer =
        ["name", "action", "key", "function", "tool", "type"].iter().filter_map(|name| map.get(*name));
    let outer = outer.filter_map(Value::as_str).find(|name| ActionKey::from_model_name(name).is_some());
    let call_name = map.get("name").and_then(Value::as_str).filter(|_| arguments != *map);
    inner.or(outer).or(call_name).map(|name| (name.to_owned(), arguments.clone()))
}

/// Reads the arguments from an object, or from a string that contains one as JSON.
fn to_map(value: &Value, budget: &mut WorkBudget) -> Option<Map<String, Value>> {
    match value {
        Value::Object(map) => Some(map.clone()),
        Value::String(text) => match lenient_json::parse_prefix(text.trim(), false, budget) {
            Some((Value::Object(map), _)) => Some(map),
            _ => None,
        },
        _ => None,
    }
}

// Names that models use for each argument, in order of preference.
const POINT_NAMES: &[&str] =
    &["coordinate", "coordinates", "point", "position", "location", "box", "bbox", "start_box", "target"];
const ELEMENT_NAMES: &[&str] =
    &["element_id", "id", "element", "index", "mark", "label", "number", "target", "ref"];
const TEXT_NAMES: &[&str] = &["text", "value", "content", "input_text", "query", "string"];
const ANSWER_NAMES: &[&str] =
    &["text", "answer", "content", "response", "result", "value", "message", "status"];
const TIME_NAMES: &[&str] = &["time", "seconds", "duration", "wait_time", "timeout"];
const URL_NAMES: &[&str] = &["url", "address", "link", "website", "href", "text", "value"];
const DIRECTION_NAMES: &[&str] = &["direction", "scroll_direction", "dir"];

fn build_action(
    key: ActionKey,
    name: &str,
    given: &Map<String, Value>,
    mode: InteractionMode,
) -> Result<Action, String> {
    let mut arguments = Map::new();
    match key {
        ActionKey::Click | ActionKey::Hover | ActionKey::Type | ActionKey::HoverAndScroll => {
            insert_target(given, mode, &mut arguments, key.as_str())?;
        }
        // A scroll without a target scrolls the whole page.
        ActionKey::Scroll => drop(insert_target(given, mode, &mut arguments, key.as_str())),
        _ => {}
    }
    match key {
        ActionKey::Type | ActionKey::Answer => {
            let names = if key == ActionKey::Type { TEXT_NAMES } else { ANSWER_NAMES };
            let text = values(given, names).find_map(arguments::text);
            let text = text.ok_or_else(|| format!("{} has no text", key.as_str()))?;
            arguments.insert(text_argument(key, mode).into(), json!(text));
        }
        ActionKey::Navigate => insert_url(given, &mut arguments)?,
        ActionKey::Scroll | ActionKey::HoverAndScroll => {
            arguments.insert("direction".into(), json!(direction(given, name)?));
        }
        ActionKey::Wait => {
            let time = TIME_NAMES.iter().find_map(|name| given.get(*name)).and_then(arguments::seconds);
            arguments.extend(time.map(|time| ("time".to_owned(), json!(time))));
        }
        ActionKey::GoBack => {
            let to = given.get("goback_to").and_then(Value::as_str);
            arguments.extend(to.map(|to| ("goback_to".to_owned(), json!(to))));
        }
        _ => {}
    }
    Ok(new_action(key, arguments))
}

fn insert_target(
    given: &Map<String, Value>,
    mode: InteractionMode,
    arguments: &mut Map<String, Value>,
    action: &str,
) -> Result<(), String> {
    match mode {
        InteractionMode::Coordinates => {
            let named = values(given, POINT_NAMES).find_map(arguments::coordinate);
            let pair =
                given.get("x").zip(given.get("y")).and_then(|(x, y)| arguments::coordinate(&json!([x, y])));
            let point =
                named.or(pair).ok_or_else(|| format!("{action} needs a coordinate of two numbers"))?;
            arguments.insert(Action::COORDINATES.into(), point);
        }
        InteractionMode::SetOfMarks => {
            let id = values(given, ELEMENT_NAMES).find_map(arguments::element_id);
            let id = id.ok_or_else(|| format!("{action} needs the number of an element"))?;
            arguments.insert("element_id".into(), json!(id));
        }
    }
    Ok(())
}

/// Returns the given values under any of these names, in the order of the names.
fn values<'a>(given: &'a Map<String, Value>, names: &[&str]) -> impl Iterator<Item = &'a Value> {
    names.iter().filter_map(|name| given.get(*name))
}

fn insert_url(given: &Map<String, Value>, arguments: &mut Map<String, Value>) -> Result<(), String> {
    let url = values(given, URL_NAMES).find_map(Value::as_str).map(str::trim);
    let url = url.filter(|url| !url.is_empty()).ok_or("navigate has no url")?;
    arguments.insert("url".into(), json!(url));
    Ok(())
}

fn direction(given: &Map<String, Value>, action_name: &str) -> Result<&'static str, String> {
    if let Some(word) = values(given, DIRECTION_NAMES).find_map(Value::as_str) {
        return arguments::direction(word.trim()).ok_or_else(|| format!("{word:?} is not a direction"));
    }
    if let Some(direction) = arguments::direction(action_name) {
        return Ok(direction);
    }
    // Without a direction, use the sign of the amount. `pixels` of computer-use tools is positive upwards, the other
    // amounts are positive downwards.
    let amount = |name: &str| given.get(name).and_then(|value| arguments::numbers(value).first().copied());
    let downwards = ["amount", "delta", "delta_y"].iter().find_map(|name| amount(name));
    let upwards = amount("pixels").or_else(|| downwards.map(|down| -down));
    Ok(if upwards.is_some_and(|up| up > 0.0) { "up" } else { "down" })
}
