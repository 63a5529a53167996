//! From a tool call, in the shapes models give it, to one action. What is missing is said in the error.

use proto::{InteractionMode, trajectory::Action};
use serde_json::{Map, Value, json};

use super::{
    lenient::{self, Work},
    words::{self, ActionKey, action},
};

/// The tool's name in the prompt, by mode.
pub const fn tool_name(mode: InteractionMode) -> &'static str {
    match mode {
        InteractionMode::Coordinates => "computer_use",
        InteractionMode::SetOfMarks => "web_interaction",
    }
}

/// Why a JSON value is not an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NoAction {
    /// It does not look like a tool call at all.
    NotACall,
    /// It is one, but something is wrong with it.
    Unusable(String),
}

pub(super) fn from_json(value: &Value, mode: InteractionMode, work: &mut Work) -> Result<Action, NoAction> {
    let (word, arguments) = unwrap(value, work, 0).ok_or(NoAction::NotACall)?;
    let key =
        ActionKey::from_word(&word).ok_or_else(|| NoAction::Unusable(format!("unknown action {word:?}")))?;
    build(key, &word, &arguments, mode).map_err(NoAction::Unusable)
}

/// Finds the action's word and its arguments inside the envelopes models use.
fn unwrap(value: &Value, work: &mut Work, depth: usize) -> Option<(String, Map<String, Value>)> {
    if depth > 4 {
        return None;
    }
    let map = match value {
        Value::Array(list) => return list.iter().find_map(|item| unwrap(item, work, depth + 1)),
        Value::Object(map) => map,
        _ => return None,
    };
    for envelope in ["function", "tool_call", "tool_calls", "action"] {
        if let Some(inner @ (Value::Object(_) | Value::Array(_))) = map.get(envelope) {
            return unwrap(inner, work, depth + 1);
        }
    }
    let arguments = ["arguments", "parameters", "args", "input"]
        .iter()
        .find_map(|name| map.get(*name))
        .and_then(|given| as_map(given, work))
        .unwrap_or_else(|| map.clone());
    // Inside the arguments, `action` is the word; outside them the call's own name may be.
    let inner =
        ["action", "action_type"].iter().find_map(|name| arguments.get(*name)).and_then(Value::as_str);
    let outer =
        ["name", "action", "key", "function", "tool", "type"].iter().filter_map(|name| map.get(*name));
    let outer = outer.filter_map(Value::as_str).find(|word| ActionKey::from_word(word).is_some());
    let named = map.get("name").and_then(Value::as_str).filter(|_| arguments != *map);
    inner.or(outer).or(named).map(|word| (word.to_owned(), arguments.clone()))
}

/// Arguments also come as JSON inside a string.
fn as_map(value: &Value, work: &mut Work) -> Option<Map<String, Value>> {
    match value {
        Value::Object(map) => Some(map.clone()),
        Value::String(text) => match lenient::read(text.trim(), false, work) {
            Some((Value::Object(map), _)) => Some(map),
            _ => None,
        },
        _ => None,
    }
}

const POINTS: &[&str] =
    &["coordinate", "coordinates", "point", "position", "location", "box", "bbox", "start_box", "target"];
const ELEMENTS: &[&str] =
    &["element_id", "id", "element", "index", "mark", "label", "number", "target", "ref"];
const TEXTS: &[&str] = &["text", "value", "content", "input_text", "query", "string"];
const ANSWERS: &[&str] = &["text", "answer", "content", "response", "result", "value", "message", "status"];
const TIMES: &[&str] = &["time", "seconds", "duration", "wait_time", "timeout"];

fn build(
    key: ActionKey,
    word: &str,
    given: &Map<String, Value>,
    mode: InteractionMode,
) -> Result<Action, String> {
    let mut arguments = Map::new();
    match key {
        ActionKey::Click | ActionKey::Hover | ActionKey::Type | ActionKey::HoverAndScroll => {
            target(given, mode, &mut arguments, key.as_str())?;
        }
        // A scroll without a target is one of the whole page.
        ActionKey::Scroll => drop(target(given, mode, &mut arguments, key.as_str())),
        _ => {}
    }
    match key {
        ActionKey::Type => put_text(given, TEXTS, "text", &mut arguments, "type has no text")?,
        ActionKey::Answer => put_text(given, ANSWERS, "text", &mut arguments, "answer has no text")?,
        ActionKey::Navigate => put_address(given, &mut arguments)?,
        ActionKey::Scroll | ActionKey::HoverAndScroll => {
            arguments.insert("direction".into(), json!(direction(given, word)?));
        }
        ActionKey::Wait => {
            let time = TIMES.iter().find_map(|name| given.get(*name)).and_then(words::seconds);
            arguments.extend(time.map(|time| ("time".to_owned(), json!(time))));
        }
        ActionKey::GoBack => {
            let to = given.get("goback_to").and_then(Value::as_str);
            arguments.extend(to.map(|to| ("goback_to".to_owned(), json!(to))));
        }
        _ => {}
    }
    Ok(action(key, arguments))
}

fn target(
    given: &Map<String, Value>,
    mode: InteractionMode,
    arguments: &mut Map<String, Value>,
    what: &str,
) -> Result<(), String> {
    match mode {
        InteractionMode::Coordinates => {
            let named = POINTS.iter().filter_map(|name| given.get(*name)).find_map(words::coordinate);
            let pair =
                given.get("x").zip(given.get("y")).and_then(|(x, y)| words::coordinate(&json!([x, y])));
            let point = named.or(pair).ok_or_else(|| format!("{what} needs a coordinate of two numbers"))?;
            arguments.insert("coordinate".into(), point);
        }
        InteractionMode::SetOfMarks => {
            let id = ELEMENTS.iter().filter_map(|name| given.get(*name)).find_map(words::element_id);
            let id = id.ok_or_else(|| format!("{what} needs the number of an element"))?;
            arguments.insert("element_id".into(), json!(id));
        }
    }
    Ok(())
}

fn put_text(
    given: &Map<String, Value>,
    names: &[&str],
    under: &str,
    arguments: &mut Map<String, Value>,
    missing: &str,
) -> Result<(), String> {
    let text = names.iter().filter_map(|name| given.get(*name)).find_map(words::text);
    arguments.insert(under.into(), json!(text.ok_or_else(|| missing.to_owned())?));
    Ok(())
}

fn put_address(given: &Map<String, Value>, arguments: &mut Map<String, Value>) -> Result<(), String> {
    let names = ["url", "address", "link", "website", "href", "text", "value"];
    let text = names.iter().filter_map(|name| given.get(*name)).find_map(Value::as_str).map(str::trim);
    let text = text.filter(|text| !text.is_empty()).ok_or("navigate has no url")?;
    arguments.insert("url".into(), json!(text));
    Ok(())
}

fn direction(given: &Map<String, Value>, word: &str) -> Result<&'static str, String> {
    let named = ["direction", "scroll_direction", "dir"]
        .iter()
        .filter_map(|name| given.get(*name))
        .find_map(Value::as_str);
    if let Some(named) = named {
        return words::direction_in(named.trim()).ok_or_else(|| format!("{named:?} is not a direction"));
    }
    if let Some(direction) = words::direction_in(word) {
        return Ok(direction);
    }
    // Without a word for it, an amount. Computer-use tools count pixels upwards, everyone else downwards.
    let amount = |name: &str| {
        let mut found = Vec::new();
        words::numbers(given.get(name).unwrap_or(&Value::Null), &mut found);
        found.first().copied()
    };
    let downwards = ["amount", "delta", "delta_y"].iter().find_map(|name| amount(name));
    let upwards = amount("pixels").or_else(|| downwards.map(|down| -down));
    Ok(if upwards.is_some_and(|up| up > 0.0) { "up" } else { "down" })
}
