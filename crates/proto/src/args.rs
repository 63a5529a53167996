//! Reads a command's arguments out of JSON: forgiving about numbers in strings, exact about everything else.

use serde_json::{Map, Value};

use crate::command::CommandError;

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
                accepted: list(accepted),
            }),
            None => Ok(Self { command, accepted, given }),
        }
    }

    fn get(&self, name: &'static str) -> Result<&'a Value, CommandError> {
        self.optional(name).ok_or_else(|| CommandError::MissingArgument {
            command: self.command,
            argument: name,
            accepted: list(self.accepted),
        })
    }

    fn optional(&self, name: &'static str) -> Option<&'a Value> {
        self.given.get(name).filter(|value| !value.is_null())
    }

    fn wrong(&self, name: &'static str, wanted: &'static str, got: &Value) -> CommandError {
        let mut got = got.to_string();
        if got.len() > 80 {
            got = got.chars().take(80).collect::<String>() + "…";
        }
        CommandError::WrongArgument { command: self.command, argument: name, wanted, got }
    }

    pub(crate) fn text(&self, name: &'static str) -> Result<String, CommandError> {
        let value = self.get(name)?;
        match value {
            Value::String(text) => Ok(text.clone()),
            Value::Number(number) => Ok(number.to_string()),
            other => Err(self.wrong(name, "a string", other)),
        }
    }

    pub(crate) fn number(&self, name: &'static str) -> Result<f64, CommandError> {
        let value = self.get(name)?;
        let number = match value {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        number.filter(|n| n.is_finite()).ok_or_else(|| self.wrong(name, "a number", value))
    }

    pub(crate) fn number_or(&self, name: &'static str, default: f64) -> Result<f64, CommandError> {
        if self.optional(name).is_some() { self.number(name) } else { Ok(default) }
    }

    pub(crate) fn count_or(&self, name: &'static str, default: usize) -> Result<usize, CommandError> {
        let Some(value) = self.optional(name) else { return Ok(default) };
        let number = self.number(name)?;
        if number < 0.0 || number.fract() != 0.0 || number > 1e9 {
            return Err(self.wrong(name, "a whole number, 0 or more", value));
        }
        Ok(number as usize)
    }

    pub(crate) fn flag_or(&self, name: &'static str, default: bool) -> Result<bool, CommandError> {
        match self.optional(name) {
            None => Ok(default),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(Value::String(text)) if text.eq_ignore_ascii_case("true") => Ok(true),
            Some(Value::String(text)) if text.eq_ignore_ascii_case("false") => Ok(false),
            Some(other) => Err(self.wrong(name, "true or false", other)),
        }
    }

    /// The number the agent saw, as a string or an int.
    pub(crate) fn id(&self) -> Result<String, CommandError> {
        let value = self.get("id")?;
        match value {
            Value::String(text) if !text.trim().is_empty() => Ok(text.trim().to_owned()),
            Value::Number(number) if number.is_i64() || number.is_u64() => Ok(number.to_string()),
            other => Err(self.wrong("id", "the number of an element, as a string or an int", other)),
        }
    }

    pub(crate) fn words(&self, name: &'static str) -> Result<Vec<String>, CommandError> {
        const WANTED: &str = "a list of key names";
        let value = self.get(name)?;
        let list = value.as_array().ok_or_else(|| self.wrong(name, WANTED, value))?;
        if list.is_empty() {
            return Err(self.wrong(name, "a list with at least one key name", value));
        }
        list.iter()
            .map(|key| key.as_str().map(str::to_owned).ok_or_else(|| self.wrong(name, WANTED, value)))
            .collect()
    }

    pub(crate) fn parsed<T: std::str::FromStr>(
        &self,
        name: &'static str,
        wanted: &'static str,
        default: Option<T>,
    ) -> Result<T, CommandError> {
        if let (None, Some(default)) = (self.optional(name), default) {
            return Ok(default);
        }
        let value = self.get(name)?;
        value.as_str().and_then(|text| text.parse().ok()).ok_or_else(|| self.wrong(name, wanted, value))
    }
}

pub(crate) fn list(names: &[&str]) -> String {
    if names.is_empty() { "no arguments".to_owned() } else { names.join(", ") }
}
