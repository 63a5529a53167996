//! The composed configuration before it is read into a type: a tree of values with their origins.

use std::{fmt, sync::Arc};

use indexmap::IndexMap;
use serde_json::Number;

pub(crate) type NodeMap = IndexMap<String, Node>;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Map(NodeMap),
}

/// Where a value comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// The built-in default.
    #[default]
    Default,
    File {
        name: Arc<str>,
        line: usize,
    },
    /// A command line argument.
    Argument(Arc<str>),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { name, line } => write!(f, "{name}:{line}"),
            Self::Argument(text) => write!(f, "argument {:?}", crate::show::without_password(text)),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub value: Value,
    pub origin: Origin,
    /// Set when an interpolation took the value from the environment.
    pub from_environment: Option<Arc<EnvironmentValue>>,
}

/// A value taken from environment variables.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EnvironmentValue {
    /// The interpolation as written.
    pub expression: String,
    /// The variable's name suggests that its value must not be shown.
    pub is_secret: bool,
}

/// OmegaConf's marker for a value that must be given.
pub(crate) const MISSING: &str = "???";

impl Node {
    pub(crate) fn new(value: Value, origin: Origin) -> Self {
        Self { value, origin, from_environment: None }
    }

    pub(crate) fn map(&self) -> Option<&NodeMap> {
        match &self.value {
            Value::Map(map) => Some(map),
            _ => None,
        }
    }

    pub(crate) fn is_missing(&self) -> bool {
        matches!(&self.value, Value::Text(text) if text == MISSING)
    }

    /// Returns the node at a path; list elements are addressed by index.
    pub(crate) fn get<'a>(&self, path: impl IntoIterator<Item = &'a str>) -> Option<&Self> {
        path.into_iter().try_fold(self, |node, key| match &node.value {
            Value::Map(map) => map.get(key),
            Value::List(list) => list.get(key.parse::<usize>().ok()?),
            _ => None,
        })
    }

    pub(crate) fn to_json(&self) -> serde_json::Value {
        use serde_json::Value as Json;
        match &self.value {
            Value::Null => Json::Null,
            Value::Bool(flag) => Json::Bool(*flag),
            Value::Int(number) => Json::from(*number),
            Value::Float(number) => {
                Number::from_f64(*number).map_or_else(|| Json::String(python_float(*number)), Json::Number)
            }
            Value::Text(text) => Json::String(text.clone()),
            Value::List(list) => list.iter().map(Self::to_json).collect(),
            Value::Map(map) => map.iter().map(|(key, node)| (key.clone(), node.to_json())).collect(),
        }
    }

    pub(crate) fn from_json(json: &serde_json::Value, origin: &Origin) -> Self {
        use serde_json::Value as Json;
        let value = match json {
            Json::Null => Value::Null,
            Json::Bool(flag) => Value::Bool(*flag),
            Json::Number(number) => match number.as_i64() {
                Some(int) => Value::Int(int),
                None => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Value::Text(text.clone()),
            Json::Array(list) => Value::List(list.iter().map(|item| Self::from_json(item, origin)).collect()),
            Json::Object(map) => Value::Map(
                map.iter().map(|(key, item)| (key.clone(), Self::from_json(item, origin))).collect(),
            ),
        };
        Self::new(value, origin.clone())
    }
}

/// Formats a float as Python does, which OmegaConf uses for floats inside strings.
pub(crate) fn python_float(number: f64) -> String {
    if number.is_nan() {
        return "nan".into();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf".into() } else { "-inf".into() };
    }
    let magnitude = number.abs();
    if magnitude != 0.0 && !(1e-4..1e16).contains(&magnitude) {
        let text = format!("{number:e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
        return format!("{mantissa}e{sign}{digits:0>2}");
    }
    let text = number.to_string();
    if text.contains('.') { text } else { text + ".0" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_formatted_as_in_python() {
        let cases = [
            (1.0, "1.0"),
            (0.99, "0.99"),
            (-0.5, "-0.5"),
            (1e-5, "1e-05"),
            (1.5e-7, "1.5e-07"),
            (1e16, "1e+16"),
            (1e15, "1000000000000000.0"),
            (f64::INFINITY, "inf"),
            (0.0, "0.0"),
        ];
        for (number, text) in cases {
            assert_eq!(python_float(number), text);
        }
    }
}
