//! Reads a command's arguments from JSON. Numbers and booleans may be given as strings; everything else must have
//! the exact type.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use crate::{
    command::{CommandError, Point},
    text::cut,
};

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
        let got = cut(&got.to_string());
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

    pub(crate) fn optional_text(&self, name: &'static str) -> Result<Option<String>, CommandError> {
        self.optional(name).map(|_| self.text(name)).transpose()
    }

    pub(crate) fn optional_id(&self) -> Result<Option<String>, CommandError> {
        self.optional("id").map(|_| self.id()).transpose()
    }

    pub(crate) fn number(&self, name: &'static str) -> Result<f64, CommandError> {
        let value = self.get(name)?;
        number_from_json(value).ok_or_else(|| self.invalid(name, "a number", value))
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

    /// Returns a number within a range.
    pub(crate) fn number_within(
        &self,
        name: &'static str,
        default: f64,
        range: RangeInclusive<f64>,
        expected: &'static str,
    ) -> Result<f64, CommandError> {
        let number = self.number_or(name, default)?;
        let given = self.optional(name).unwrap_or(&Value::Null);
        if range.contains(&number) { Ok(number) } else { Err(self.invalid(name, expected, given)) }
    }

    /// Returns a small whole number within a range.
    pub(crate) fn small_count(
        &self,
        name: &'static str,
        default: u8,
        range: RangeInclusive<u8>,
        expected: &'static str,
    ) -> Result<u8, CommandError> {
        let Some(value) = self.optional(name) else { return Ok(default) };
        let count = number_from_json(value).filter(|number| number.fract() == 0.0).map(|number| number as u8);
        count.filter(|count| range.contains(count)).ok_or_else(|| self.invalid(name, expected, value))
    }

    /// Returns a text of at most `max` characters.
    pub(crate) fn bounded_text(
        &self,
        name: &'static str,
        max: usize,
        expected: &'static str,
    ) -> Result<String, CommandError> {
        let text = self.text(name)?;
        if text.chars().count() > max {
            return Err(self.invalid(name, expected, self.get(name)?));
        }
        Ok(text)
    }

    /// Returns the argument `keys`: a chord such as `ctrl+a`, or a list of key names.
    pub(crate) fn keys(&self) -> Result<Vec<String>, CommandError> {
        const EXPECTED: &str = "a chord such as \"ctrl+a\", or a list of key names";
        let value = self.get("keys")?;
        let invalid = || self.invalid("keys", EXPECTED, value);
        let keys: Vec<String> = match value {
            Value::String(chord) => split_chord(chord),
            Value::Array(list) => {
                let names = list.iter().map(|key| key.as_str().ok_or_else(invalid));
                names.collect::<Result<Vec<_>, _>>()?.into_iter().flat_map(split_chord).collect()
            }
            _ => return Err(invalid()),
        };
        if keys.is_empty() {
            Err(self.invalid("keys", "a list with at least one key name", value))
        } else {
            Ok(keys)
        }
    }

    /// Returns a number of notches of the mouse wheel.
    pub(crate) fn wheel_notches(
        &self,
        name: &'static str,
        default: Option<f64>,
    ) -> Result<f64, CommandError> {
        const EXPECTED: &str = "a number of wheel notches from 0 to 1000";
        if default.is_none() {
            self.get(name)?;
        }
        self.number_within(name, default.unwrap_or_default(), 0.0..=1000.0, EXPECTED)
    }

    /// The error for an argument that does not fit the others.
    pub(crate) fn refuse(&self, name: &'static str, expected: &'static str) -> CommandError {
        self.invalid(name, expected, self.optional(name).unwrap_or(&Value::Null))
    }

    /// Whether an argument was given.
    pub(crate) fn has(&self, name: &'static str) -> bool {
        self.optional(name).is_some()
    }

    /// Returns a list of exactly `N` numbers.
    pub(crate) fn numbers<const N: usize>(
        &self,
        name: &'static str,
        expected: &'static str,
    ) -> Result<[f64; N], CommandError> {
        let value = self.get(name)?;
        let numbers: Option<Vec<f64>> =
            value.as_array().and_then(|list| list.iter().map(number_from_json).collect());
        numbers
            .and_then(|numbers| <[f64; N]>::try_from(numbers).ok())
            .ok_or_else(|| self.invalid(name, expected, value))
    }

    /// Like [`Self::keys`]; no keys if the argument is missing or empty.
    pub(crate) fn keys_or_none(&self) -> Result<Vec<String>, CommandError> {
        match self.optional("keys") {
            None => Ok(Vec::new()),
            Some(Value::Array(list)) if list.is_empty() => Ok(Vec::new()),
            Some(_) => self.keys(),
        }
    }

    /// Returns a list of names.
    pub(crate) fn names(
        &self,
        name: &'static str,
        count: RangeInclusive<usize>,
    ) -> Result<Vec<String>, CommandError> {
        let value = self.get(name)?;
        let names: Option<Vec<String>> = value
            .as_array()
            .and_then(|list| list.iter().map(|item| item.as_str().map(str::to_owned)).collect());
        let expected = "a list of 1 to 20 names of uploaded files";
        names.filter(|names| count.contains(&names.len())).ok_or_else(|| self.invalid(name, expected, value))
    }

    /// Returns a list of points, each `[x, y]` or `{"x": …, "y": …}`.
    pub(crate) fn points(
        &self,
        name: &'static str,
        count: RangeInclusive<usize>,
        expected: &'static str,
    ) -> Result<Vec<Point>, CommandError> {
        let value = self.get(name)?;
        let points: Option<Vec<Point>> =
            value.as_array().and_then(|list| list.iter().map(point_from_json).collect());
        points
            .filter(|points| count.contains(&points.len()))
            .ok_or_else(|| self.invalid(name, expected, value))
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

fn number_from_json(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    number.filter(|number| number.is_finite())
}

fn point_from_json(value: &Value) -> Option<Point> {
    let (x, y) = match value {
        Value::Array(pair) if pair.len() == 2 => (&pair[0], &pair[1]),
        Value::Object(fields) if fields.len() == 2 => (fields.get("x")?, fields.get("y")?),
        _ => return None,
    };
    Some(Point { x: number_from_json(x)?, y: number_from_json(y)? })
}

/// Splits a chord such as `ctrl+a` into its keys. A `+` at the end is the key of that name.
pub(crate) fn split_chord(chord: &str) -> Vec<String> {
    // A space is a key, too.
    let trimmed = chord.trim();
    let chord = if trimmed.is_empty() { chord } else { trimmed };
    let (keys, plus) = match chord.strip_suffix('+') {
        Some(rest) => (rest.strip_suffix('+').unwrap_or(rest), true),
        None => (chord, false),
    };
    let plus = plus.then_some("+");
    let name = |key: &str| if key.trim().is_empty() { key.to_owned() } else { key.trim().to_owned() };
    keys.split('+').filter(|key| !key.is_empty()).chain(plus).map(name).collect()
}

/// Formats argument names for an error message.
pub(crate) fn join_names(names: &[&str]) -> String {
    if names.is_empty() { "no arguments".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::split_chord;

    #[test]
    fn chords_are_split_at_plus_signs() {
        for (chord, keys) in [
            ("ctrl+a", &["ctrl", "a"][..]),
            (" Ctrl + Shift + ArrowLeft ", &["Ctrl", "Shift", "ArrowLeft"]),
            ("ctrl++", &["ctrl", "+"]),
            ("+", &["+"]),
            (" ", &[" "]),
            ("", &[]),
        ] {
            assert_eq!(split_chord(chord), keys, "{chord:?}");
        }
    }
}
