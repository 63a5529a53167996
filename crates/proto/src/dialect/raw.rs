//! A turn before its actions are interpreted, and helpers to read its JSON.

use serde_json::{Map, Value};

use super::{DialectError, Failure, Form};
use crate::{args::Args, text::cut};

#[derive(Debug)]
pub(super) struct RawTurn {
    pub(super) calls: Vec<RawCall>,
    /// The text of a turn; it is the answer if there are no calls.
    pub(super) answer: Option<String>,
    pub(super) form: Form,
}

#[derive(Debug)]
pub(super) struct RawCall {
    pub(super) id: Option<String>,
    pub(super) name: String,
    pub(super) actions: Vec<RawAction>,
    pub(super) safety_checks: Option<Value>,
}

#[derive(Debug)]
pub(super) struct RawAction {
    pub(super) name: String,
    pub(super) fields: Map<String, Value>,
    /// Why the fields could not be read.
    pub(super) problem: Option<String>,
    /// The toolset of an Anthropic call.
    pub(super) toolset: Option<String>,
}

impl RawTurn {
    pub(super) fn native(calls: Vec<RawCall>) -> Self {
        Self { calls, answer: None, form: Form::Native }
    }
}

impl RawCall {
    pub(super) fn new(id: Option<String>, action: RawAction) -> Self {
        Self { id, name: action.name.clone(), actions: vec![action], safety_checks: None }
    }
}

impl RawAction {
    /// Fields that are null count as absent.
    pub(super) fn new(name: &str, fields: &Map<String, Value>) -> Self {
        let given = fields.iter().filter(|(_, value)| !value.is_null());
        let fields = given.map(|(name, value)| (name.clone(), value.clone())).collect();
        Self { name: cut(name), fields, problem: None, toolset: None }
    }

    /// An action that cannot be read.
    pub(super) fn unreadable(name: &str, problem: String) -> Self {
        Self { name: cut(name), fields: Map::new(), problem: Some(problem), toolset: None }
    }

    /// Returns the fields as arguments; refuses others than the accepted ones.
    pub(super) fn args(
        &self,
        action: &'static str,
        accepted: &'static [&'static str],
    ) -> Result<Args<'_>, Failure> {
        match self.fields.keys().find(|name| !accepted.contains(&name.as_str())) {
            Some(unknown) => Err(Failure::Invalid(format!(
                "{action} has no argument {:?}; it accepts: {}",
                cut(unknown),
                crate::args::join_names(accepted)
            ))),
            None => Ok(Args::new(action, accepted, &self.fields)?),
        }
    }
}

/// The longest id of a call.
const MAX_ID_BYTES: usize = 200;

/// Reads the id of a call.
pub(super) fn id(fields: &Map<String, Value>, name: &str) -> Result<Option<String>, DialectError> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(id)) if id.len() <= MAX_ID_BYTES => Ok(Some(id.clone())),
        Some(_) => {
            Err(DialectError(format!("action: {name} must be a string of at most {MAX_ID_BYTES} bytes")))
        }
    }
}

pub(super) fn text<'a>(fields: &'a Map<String, Value>, name: &str) -> Result<&'a str, DialectError> {
    fields
        .get(name)
        .and_then(Value::as_str)
        .ok_or_else(|| DialectError(format!("action: {name} must be a string")))
}

pub(super) fn object<'a>(
    fields: &'a Map<String, Value>,
    name: &str,
) -> Result<&'a Map<String, Value>, DialectError> {
    fields
        .get(name)
        .and_then(Value::as_object)
        .ok_or_else(|| DialectError(format!("action: {name} must be a JSON object")))
}

/// Returns the items of a list, or a single item, as objects.
pub(super) fn objects(value: &Value) -> Result<Vec<&Map<String, Value>>, DialectError> {
    let invalid = || DialectError("action must be a JSON object or a list of JSON objects".to_owned());
    match value {
        Value::Object(fields) => Ok(vec![fields]),
        Value::Array(list) if !list.is_empty() => {
            list.iter().map(|item| item.as_object().ok_or_else(invalid)).collect()
        }
        _ => Err(invalid()),
    }
}

/// The longest text that an action may type.
pub(super) const MAX_TYPED: usize = 100_000;
pub(super) const TYPED: &str = "a string of at most 100000 characters";
