//! Reads single fields of a task line. Each error states the field, the accepted type and the value found.

use proto::trajectory::TaskId;
use serde_json::{Map, Value};

use crate::address;

/// Describes the type of a value for error messages.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

pub(super) fn string(fields: &mut Map<String, Value>, name: &str) -> Result<String, String> {
    match fields.shift_remove(name) {
        Some(Value::String(text)) => Ok(text),
        None => Err(format!("{name} is missing (a string is required)")),
        Some(other) => Err(format!("{name} must be a string, not {}", kind(&other))),
    }
}

pub(super) fn task_name(fields: &mut Map<String, Value>) -> Result<String, String> {
    let name = string(fields, "task_name")?;
    if name.trim().is_empty() { Err("task_name is empty".into()) } else { Ok(name) }
}

/// Reads the website's address and adds a scheme if it has none.
pub(super) fn website(fields: &mut Map<String, Value>) -> Result<String, String> {
    let text = string(fields, "website")?;
    let url = address::with_scheme(&text);
    if text.trim().is_empty() || url.contains(char::is_whitespace) || address::domain(&url).is_empty() {
        return Err(format!("website {text:?} is not a web address"));
    }
    Ok(url)
}

/// Reads an optional whole number, also if it is written as `3.0`.
pub(super) fn integer(value: Option<Value>, name: &str) -> Result<Option<i64>, String> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Number(number)) => {
            let rounded = number.as_f64().filter(|f| f.fract() == 0.0 && f.abs() < 1e15).map(|f| f as i64);
            let integer = number.as_i64().or(rounded);
            integer.map(Some).ok_or_else(|| format!("{name} must be a whole number, not {number}"))
        }
        Some(other) => Err(format!("{name} must be a whole number, not {}", kind(&other))),
    }
}

pub(super) fn difficulty(value: Option<Value>) -> Result<i64, String> {
    match integer(value, "difficulty")? {
        None => Err("difficulty is missing (a whole number of 1 or more is required)".into()),
        Some(number) if number < 1 => Err(format!("difficulty must be 1 or more, not {number}")),
        Some(number) => Ok(number),
    }
}

pub(super) fn task_id(value: Option<Value>) -> Result<Option<TaskId>, String> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(TaskId::Text(text))),
        Some(Value::Number(number)) => {
            let id = number.as_i64().map(|number| Some(TaskId::Number(number)));
            id.ok_or_else(|| format!("task_id must be a string or a whole number, not {number}"))
        }
        Some(other) => Err(format!("task_id must be a string or a whole number, not {}", kind(&other))),
    }
}

/// Reads the reference answer. A number is accepted and converted to text.
pub(super) fn definite_answer(value: Option<Value>) -> Result<Option<String>, String> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(Value::Number(number)) => Ok(Some(number.to_string())),
        Some(other) => Err(format!("definite_answer must be a string or null, not {}", kind(&other))),
    }
}
