//! Writes the resolved configuration as YAML, with or without the origin of each value, or as JSON. A value from a secret
//! environment variable is written as its interpolation.

use crate::{
    Resolved,
    node::{Node, Value, python_float},
    scalar,
};

impl<T> Resolved<T> {
    /// Returns the configuration as YAML, every value followed by its origin.
    pub fn show(&self) -> String {
        let mut lines = Vec::new();
        render(&self.tree, 0, &mut lines);
        let width = lines.iter().map(|line| line.text.chars().count()).max().unwrap_or(0).min(60);
        lines.into_iter().map(|line| line.with_origin(width)).collect()
    }

    /// Returns the configuration as JSON without secrets.
    pub fn to_json(&self) -> serde_json::Value {
        without_secrets(&self.tree).to_json()
    }

    /// Returns the configuration as YAML without origins and secrets.
    pub fn to_yaml(&self) -> String {
        let mut lines = Vec::new();
        render(&self.tree, 0, &mut lines);
        lines.into_iter().map(|line| line.text + "\n").collect()
    }
}

struct Line {
    text: String,
    origin: Option<String>,
}

impl Line {
    fn with_origin(self, width: usize) -> String {
        match self.origin {
            None => self.text + "\n",
            Some(origin) => format!("{:width$}  # {}\n", self.text, without_password(&origin)),
        }
    }
}

fn render(node: &Node, depth: usize, lines: &mut Vec<Line>) {
    for (key, child) in node.map().into_iter().flatten() {
        let key = format!("{}{}:", "  ".repeat(depth), scalar_text(key));
        match &child.value {
            Value::Map(map) if !map.is_empty() => {
                lines.push(Line { text: key, origin: None });
                render(child, depth + 1, lines);
            }
            _ => {
                let text = format!("{key} {}", flow(&without_secrets(child)));
                lines.push(Line { text, origin: Some(child.origin.to_string()) });
            }
        }
    }
}

fn flow(node: &Node) -> String {
    match &node.value {
        Value::Null => "null".into(),
        Value::Bool(flag) => flag.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Float(number) if number.is_nan() => ".nan".into(),
        Value::Float(number) if number.is_infinite() => (if *number > 0.0 { ".inf" } else { "-.inf" }).into(),
        Value::Float(number) => python_float(*number),
        Value::Text(text) => scalar_text(text),
        Value::List(list) => format!("[{}]", list.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::Map(map) => {
            let entries = map.iter().map(|(key, node)| format!("{}: {}", scalar_text(key), flow(node)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
    }
}

/// Returns the tree without secrets.
fn without_secrets(node: &Node) -> Node {
    let value = match (&node.value, &node.from_environment) {
        (_, Some(variable)) if variable.is_secret => Value::Text(variable.expression.clone()),
        (Value::Text(text), _) => Value::Text(without_password(text)),
        (Value::List(list), _) => Value::List(list.iter().map(without_secrets).collect()),
        (Value::Map(map), _) => {
            Value::Map(map.iter().map(|(key, node)| (key.clone(), without_secrets(node))).collect())
        }
        (other, _) => other.clone(),
    };
    Node { value, ..node.clone() }
}

/// Replaces the credentials of a URL: `http://user:secret@host` becomes `http://***@host`.
pub(crate) fn without_password(text: &str) -> String {
    let Some((before, rest)) = text.split_once("://") else { return text.to_owned() };
    let authority = rest.split(['/', '?', '#', ' ', '"']).next().unwrap_or_default();
    match authority.rfind('@') {
        Some(index) => format!("{before}://***{}", &rest[index..]),
        None => text.to_owned(),
    }
}

/// Writes text so that YAML reads it back unchanged, quoted only if necessary.
fn scalar_text(text: &str) -> String {
    let has_plain_start =
        text.starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '.'));
    let is_plain = has_plain_start
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '.' | '-' | '+' | '@'))
        && matches!(scalar::resolve(text), Ok(Value::Text(_)));
    if is_plain { text.to_owned() } else { quoted(text) }
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control()
                || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}') =>
            {
                out.extend(["\\u".to_owned(), format!("{:04X}", u32::from(c))]);
            }
            c => out.push(c),
        }
    }
    out + "\""
}
