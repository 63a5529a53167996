//! The arguments of a tool call.

use base64::{Engine, engine::general_purpose::STANDARD};
use proto::command::MouseButton;
use serde_json::{Map, Value};

/// The arguments of a tool call. Errors are for the agent.
pub(super) struct Arguments<'a>(pub(super) &'a Map<String, Value>);

impl Arguments<'_> {
    fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    pub(super) fn text(&self, name: &str) -> Result<String, String> {
        self.optional_text(name)?.ok_or_else(|| format!("the argument {name} is missing"))
    }

    pub(super) fn optional_text(&self, name: &str) -> Result<Option<String>, String> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            // Models also write refs as numbers.
            Some(Value::Number(number)) => Ok(Some(number.to_string())),
            Some(_) => Err(format!("{name} must be a string")),
        }
    }

    pub(super) fn number(&self, name: &str) -> Result<f64, String> {
        self.optional_number(name)?.ok_or_else(|| format!("the argument {name} is missing"))
    }

    pub(super) fn optional_number(&self, name: &str) -> Result<Option<f64>, String> {
        self.get(name)
            .map(|value| value.as_f64().ok_or_else(|| format!("{name} must be a number")))
            .transpose()
    }

    pub(super) fn index(&self, name: &str) -> Result<Option<usize>, String> {
        // Some clients send every number as 1.0.
        let whole = |value: &Value| {
            let number = value.as_f64().filter(|number| number.fract() == 0.0);
            number.filter(|number| (0.0..=f64::from(u32::MAX)).contains(number)).map(|number| number as usize)
        };
        let parse =
            |value: &Value| whole(value).ok_or_else(|| format!("{name} must be a whole number, 0 or more"));
        self.get(name).map(parse).transpose()
    }

    pub(super) fn flag(&self, name: &str) -> Result<bool, String> {
        match self.get(name) {
            None => Ok(false),
            Some(value) => value.as_bool().ok_or_else(|| format!("{name} must be true or false")),
        }
    }

    pub(super) fn texts(&self, name: &str) -> Result<Vec<String>, String> {
        let Some(given) = self.get(name) else { return Ok(Vec::new()) };
        let texts =
            given.as_array().map(|list| list.iter().map(|one| one.as_str().map(str::to_owned)).collect());
        texts.flatten().ok_or_else(|| format!("{name} must be a list of strings"))
    }

    /// Returns names and contents of files in the form `[{"name": …, "content": base64}]`.
    pub(super) fn files(&self, name: &str) -> Result<Vec<(String, Vec<u8>)>, String> {
        let Some(given) = self.get(name) else { return Ok(Vec::new()) };
        let file = |file: &Value| {
            let content = STANDARD.decode(file.get("content")?.as_str()?).ok()?;
            Some((file.get("name")?.as_str()?.to_owned(), content))
        };
        let files: Option<Vec<_>> = given.as_array().and_then(|files| files.iter().map(file).collect());
        files.ok_or_else(|| format!("{name} must be a list of objects with name and content (base64)"))
    }

    pub(super) fn button(&self) -> Result<MouseButton, String> {
        match self.optional_text("button")? {
            None => Ok(MouseButton::Left),
            Some(name) => {
                name.parse().map_err(|()| format!("button is {name:?}; it must be left, right or middle"))
            }
        }
    }
}
