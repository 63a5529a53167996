//! Reads a command's arguments from JSON. Numbers and booleans may be given as strings; everything else must have
//! the exact type.

use serde_json::{Map, Value};

use crate::command::CommandError;

/// The JSON arguments of one command, checked to contain only accepted names.
pub(crate) struct Args<'a> {
    command: &'static str,
    accepted: &'static [&'static str],
    given: &'a Map<String, Value>,
}

impl<'a> Args<'a> {
    pub(crate) fn new(
        command: &'static str,
        accepted: &'static [&'static str],
        given: &'a Map<String, Value>,
    ) -> Result<Self, CommandError> {
        match given.keys().find(|key| !accepted.contains(&key.as_str())) {
            Some(unknown) => Err(CommandError::UnknownArgument {
                command,
                argument: unknown.clone(),
                accepted: join_names(accepted),
            }),
            None => Ok(Self { command, accepted, given }),
        }
    }

    fn get(&self, name: &'static str) -> Result<&'a Value, CommandError> {
        self.optional(name).ok_or_else(|| CommandError::MissingArgument {
            command: self.command,
            argument: name,
            accepted: join_names(self.accepted),
        })
    }

    fn optional(&self, name: &'static str) -> Option<&'a Value> {
        self.given.get(name).filter(|value| !value.is_null())
    }

    fn invalid(&self, name: &'static str, expected: &'static str, got: &Value) -> CommandError {
        let mut got = got.to_string();
        if got.len() > 80 {
            got = got.chars().take(80).collect::<String>() + "…";
        }
        CommandError::InvalidArgument { command: self.command, argument: name, expected, got }
    }

    pub(crate) fn text(&self, name: &'static str) -> Result<String, CommandError> {
        let value = self.get(name)?;
        match value {
            Value::String(text) => Ok(text.clone()),
            Value::Number(number) => Ok(number.to_string()),
            other => Err(self.invalid(name, "a string", other)),
        }
    }

    pub(crate) fn number(&self, name: &'static str) -> Result<f64, CommandError> {
        let value = self.get(name)?;
        let number = match value {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        number.filter(|n| n.is_finite()).ok_or_else(|| self.invalid(name, "a number", value))
    }

    pub(crate) fn number_or(&self, name: &'static str, default: f64) -> Result<f64, CommandError> {
        if self.optional(name).is_some() { self.number(name) } else { Ok(default) }
    }

    pub(crate) fn count_or(&self, name: &'static str, default: usize) -> Result<usize, CommandError> {
        let Some(value) = self.optional(name) else { return Ok(default) };
        let number = self.number(name)?;
        if number < 0.0 || number.fract() != 0.0 || number > 1e9 {
            return Err(self.invalid(name, "a whole number, 0 or more", value));
        }
        Ok(number as usize)
    }

    pub(crate) fn flag_or(&self, name: &'static str, default: bool) -> Result<bool, CommandError> {
        match self.optional(name) {
            None => Ok(default),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(Value::String(text)) if text.eq_ignore_ascii_case("true") => Ok(true),
            Some(Value::String(text)) if text.eq_ignore_ascii_case("false") => Ok(false),
            Some(other) => Err(self.invalid(name, "true or false", other)),
        }
    }

    /// Returns the argument `id`: a mark number, given as a string or an integer.
    pub(crate) fn id(&self) -> Result<String, CommandError> {
        let value = self.get("id")?;
        match value {
            Value::String(text) if !text.trim().is_empty() => Ok(text.trim().to_owned()),
            Value::Number(number) if number.is_i64() || number.is_u64() => Ok(number.to_string()),
            other => Err(self.invalid("id", "the number of an element, as a string or an int", other)),
        }
    }

    pub(crate) fn string_list(&self, name: &'static str) -> Result<Vec<String>, CommandError> {
        const EXPECTED: &str = "a list of key names";
        let value = self.get(name)?;
        let list = value.as_array().ok_or_else(|| self.invalid(name, EXPECTED, value))?;
        if list.is_empty() {
            return Err(self.invalid(name, "a list with at least one key name", value));
        }
        list.iter()
            .map(|key| key.as_str().map(str::to_owned).ok_or_else(|| self.invalid(name, EXPECTED, value)))
            .collect()
    }

    pub(crate) fn parsed<T: std::str::FromStr>(
        &self,
        name: &'static str,
        expected: &'static str,
        default: Option<T>,
    ) -> Result<T, CommandError> {
        if let (None, Some(default)) = (self.optional(name), default) {
            return Ok(default);
        }
        let value = self.get(name)?;
        value.as_str().and_then(|text| text.parse().ok()).ok_or_else(|| self.invalid(name, expected, value))
    }
}

/// Formats argument names for an error message.
pub(crate) fn join_names(names: &[&str]) -> String {
    if names.is_empty() { "no arguments".to_owned() } else { names.join(", ") }
}
