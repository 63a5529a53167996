//! Reads argument values in the various forms in which models write them.

use serde_json::{Value, json};

/// Returns the direction that a word ends with, as in `scroll_down`.
pub(super) fn direction(word: &str) -> Option<&'static str> {
    let word = word.to_ascii_lowercase();
    ["down", "up", "left", "right"].into_iter().find(|direction| word.ends_with(direction))
}

/// Returns every number in a value: of numbers, strings, and nested lists and objects.
pub(super) fn numbers(value: &Value) -> Vec<f64> {
    let mut found = Vec::new();
    collect_numbers(value, &mut found);
    found
}

fn collect_numbers(value: &Value, found: &mut Vec<f64>) {
    match value {
        Value::Number(number) => found.extend(number.as_f64()),
        Value::String(text) => found.extend(
            text.split(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-')))
                .filter_map(|part| part.parse::<f64>().ok())
                .filter(|number| number.is_finite()),
        ),
        Value::Array(list) => list.iter().for_each(|item| collect_numbers(item, found)),
        Value::Object(map) => map.values().for_each(|item| collect_numbers(item, found)),
        Value::Null | Value::Bool(_) => {}
    }
}

/// Reads a point (two numbers) or a box (four numbers). Whole numbers are written as JSON integers.
pub(super) fn coordinate(value: &Value) -> Option<Value> {
    let found = numbers(value);
    let to_json = |number: &f64| {
        let number = clamp_and_round(*number);
        if number.fract() == 0.0 { json!(number as i64) } else { json!(number) }
    };
    matches!(found.len(), 2 | 4).then(|| found.iter().map(to_json).collect())
}

/// Limits range and precision so that the number prints without an exponent: an action string with an exponent could not
/// be parsed again.
fn clamp_and_round(number: f64) -> f64 {
    (number.clamp(-1e6, 1e6) * 1000.0).round() / 1000.0
}

/// Reads the number of a marked element: `12`, `"12"`, `"[12]"`, `[12]`.
pub(super) fn element_id(value: &Value) -> Option<String> {
    match value {
        Value::Number(number) => number.as_u64().map(|id| id.to_string()),
        Value::String(text) => {
            let bare = text.trim().trim_matches(['[', ']', '#', '(', ')', '<', '>', ' ']);
            (!bare.is_empty() && bare.len() <= 9 && bare.bytes().all(|b| b.is_ascii_digit()))
                .then(|| bare.to_owned())
        }
        Value::Array(list) if list.len() == 1 => element_id(&list[0]),
        _ => None,
    }
}

/// Reads text. Values other than strings are returned as JSON.
pub(super) fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// Reads seconds: `3`, `"3"`, `"3 seconds"`.
pub(super) fn seconds(value: &Value) -> Option<f64> {
    numbers(value).first().copied().filter(|seconds| *seconds >= 0.0).map(clamp_and_round)
}
