//! Function calls in a model's text: `<tool_call>` blocks with JSON, and `<function=…><parameter=…>` blocks.

use serde_json::{Map, Value};

/// Removes a think block at the start; a call inside of it is not meant to be carried out. `None` if it is unfinished.
pub(super) fn after_thinking(text: &str) -> Option<&str> {
    match text.rsplit_once("</think>") {
        Some((_, rest)) => Some(rest),
        None if text.trim_start().starts_with("<think>") => None,
        None => Some(text),
    }
}

/// Returns the contents of all `<tag>` blocks; the last one may lack its end.
pub(super) fn blocks<'a>(text: &'a str, tag: &str) -> Vec<&'a str> {
    let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
    text.split(open.as_str())
        .skip(1)
        .map(|block| block.split_once(close.as_str()).map_or(block, |(inside, _)| inside).trim())
        .collect()
}

/// Parses `<function=name><parameter=a>…</parameter>…</function>`.
pub(super) fn function(text: &str) -> Option<(String, Map<String, Value>)> {
    let (_, rest) = text.split_once("<function=")?;
    let (name, body) = rest.split_once('>')?;
    let body = body.split_once("</function>").map_or(body, |(body, _)| body);
    let mut arguments = Map::new();
    for parameter in body.split("<parameter=").skip(1) {
        let (name, value) = parameter.split_once('>')?;
        let value = value.split_once("</parameter>").map_or(value, |(value, _)| value);
        arguments.insert(name.trim().to_owned(), argument(value));
    }
    Some((name.trim().to_owned(), arguments))
}

/// Lists and objects are JSON; everything else stays text. One line break on each side belongs to the markup.
fn argument(text: &str) -> Value {
    let text = text.strip_prefix('\n').unwrap_or(text);
    let text = text.strip_suffix('\n').unwrap_or(text);
    let is_json = text.trim_start().starts_with(['[', '{']);
    is_json
        .then(|| serde_json::from_str(text).ok())
        .flatten()
        .unwrap_or_else(|| Value::String(text.to_owned()))
}
