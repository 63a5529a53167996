//! Messages of a chat: roles, texts, pictures by path. How a picture travels (as a file's address or inside the
//! request) is decided when the messages are written out.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    System,
    User,
    Assistant,
}

impl Role {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    Text(String),
    Image(PathBuf),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub role: Role,
    pub content: Vec<Part>,
}

impl Message {
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self { role, content: vec![Part::Text(text.into())] }
    }

    pub fn images(&self) -> impl Iterator<Item = &Path> {
        self.content.iter().filter_map(|part| match part {
            Part::Image(path) => Some(path.as_path()),
            Part::Text(_) => None,
        })
    }

    fn to_json(&self, address: &dyn Fn(&Path) -> String) -> Value {
        let content = match self.content.as_slice() {
            [Part::Text(text)] if self.role != Role::User => json!(text),
            parts => parts.iter().map(|part| part_json(part, address)).collect(),
        };
        json!({"role": self.role.as_str(), "content": content})
    }
}

fn part_json(part: &Part, address: &dyn Fn(&Path) -> String) -> Value {
    match part {
        Part::Text(text) => json!({"type": "text", "text": text}),
        Part::Image(path) => json!({"type": "image_url", "image_url": {"url": address(path)}}),
    }
}

/// The messages as an OpenAI-compatible server wants them.
pub fn to_json(messages: &[Message], address: &dyn Fn(&Path) -> String) -> Value {
    messages.iter().map(|message| message.to_json(address)).collect()
}

/// The messages as JSON text with pictures as `file://` addresses: what trajectories keep as `raw_prompt`.
pub fn raw_prompt(messages: &[Message]) -> String {
    to_json(messages, &file_url).to_string()
}

/// `file:///data/a%20b.png`. A relative path is taken from where the process stands.
pub fn file_url(path: &Path) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut url = String::from("file://");
    for byte in absolute.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => {
                url.push(char::from(*byte));
            }
            other => url.extend(["%".to_owned(), format!("{other:02X}")]),
        }
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_the_shape_that_servers_expect() {
        let messages = [
            Message::text(Role::System, "be good"),
            Message {
                role: Role::User,
                content: vec![Part::Text("look".into()), Part::Image("/a b/ü.png".into())],
            },
            Message::text(Role::Assistant, "ok"),
        ];
        let wanted = json!([
            {"role": "system", "content": "be good"},
            {"role": "user", "content": [
                {"type": "text", "text": "look"},
                {"type": "image_url", "image_url": {"url": "file:///a%20b/%C3%BC.png"}},
            ]},
            {"role": "assistant", "content": "ok"},
        ]);
        assert_eq!(raw_prompt(&messages), wanted.to_string());
    }
}
