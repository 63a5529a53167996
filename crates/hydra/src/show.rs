//! Writes the resolved configuration as YAML: for people with the origin of each value (`config show`), and as a
//! further document of `hyperparameters.yaml`. What came from a secret variable is written as it was asked for.

use crate::{
    Resolved,
    node::{Node, Value, python_float},
    scalar,
};

impl<T> Resolved<T> {
    /// The whole configuration as YAML, every value followed by where it came from.
    pub fn show(&self) -> String {
        let mut lines = Vec::new();
        render(&self.tree, 0, &mut lines);
        let width = lines.iter().map(|line| line.text.chars().count()).max().unwrap_or(0).min(60);
        lines.into_iter().map(|line| line.with_origin(width)).collect()
    }

    /// The whole configuration as JSON, secrets hidden as in every other form.
    pub fn to_json(&self) -> serde_json::Value {
        hidden(&self.tree).to_json()
    }

    /// The whole configuration as YAML without origins.
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
                let text = format!("{key} {}", flow(&hidden(child)));
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

/// The tree without anything secret.
fn hidden(node: &Node) -> Node {
    let value = match (&node.value, &node.drawn) {
        (_, Some(drawn)) if drawn.secret => Value::Text(drawn.written.clone()),
        (Value::Text(text), _) => Value::Text(without_password(text)),
        (Value::List(list), _) => Value::List(list.iter().map(hidden).collect()),
        (Value::Map(map), _) => {
            Value::Map(map.iter().map(|(key, node)| (key.clone(), hidden(node))).collect())
        }
        (other, _) => other.clone(),
    };
    Node { value, origin: node.origin.clone(), drawn: node.drawn.clone() }
}

/// `http://user:secret@host` → `http://***@host`.
pub(crate) fn without_password(text: &str) -> String {
    let Some((before, rest)) = text.split_once("://") else { return text.to_owned() };
    let authority = rest.split(['/', '?', '#', ' ', '"']).next().unwrap_or_default();
    match authority.rfind('@') {
        Some(at) => format!("{before}://***{}", &rest[at..]),
        None => text.to_owned(),
    }
}

/// A word that YAML reads back as the same text, quoted only when it must be.
fn scalar_text(text: &str) -> String {
    let plain_start = text.starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '.'));
    let plain = plain_start
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '.' | '-' | '+' | '@'))
        && matches!(scalar::resolve(text), Ok(Value::Text(_)));
    if plain { text.to_owned() } else { quoted(text) }
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
