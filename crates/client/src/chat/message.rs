//! Chat messages: roles, texts, and images by path. Whether an image is sent as a file URL or inside the request is decided
//! when the messages are serialized.

use std::path::{Path, PathBuf};

use serde::{
    Serialize, Serializer,
    ser::{SerializeMap, SerializeSeq},
};
use serde_json::Value;

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
}

/// Serializes messages in the OpenAI format without copying their texts, because prompts are long.
pub(crate) struct MessageList<'a> {
    pub(crate) messages: &'a [Message],
    pub(crate) images: ImageWriter<'a>,
}

/// How images are written into messages.
#[derive(Clone, Copy)]
pub(crate) struct ImageWriter<'a> {
    /// Returns the URL of an image.
    pub(crate) url: &'a dyn Fn(&Path) -> String,
    pub(crate) detail: Option<&'static str>,
}

impl Serialize for MessageList<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.messages.iter().map(|message| MessageWithUrls(message, self.images)))
    }
}

struct MessageWithUrls<'a>(&'a Message, ImageWriter<'a>);

impl Serialize for MessageWithUrls<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self(message, images) = self;
        let mut map = to.serialize_map(Some(2))?;
        map.serialize_entry("role", message.role.as_str())?;
        match message.content.as_slice() {
            [Part::Text(text)] if message.role != Role::User => map.serialize_entry("content", text)?,
            parts => map.serialize_entry("content", &PartsWithUrls(parts, *images))?,
        }
        map.end()
    }
}

struct PartsWithUrls<'a>(&'a [Part], ImageWriter<'a>);

impl Serialize for PartsWithUrls<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(tag = "type", rename_all = "snake_case")]
        enum PartWire<'a> {
            Text { text: &'a str },
            ImageUrl { image_url: ImageUrl },
        }
        #[derive(Serialize)]
        struct ImageUrl {
            url: String,
            #[serde(skip_serializing_if = "Option::is_none")]
            detail: Option<&'static str>,
        }
        let ImageWriter { url, detail } = self.1;
        let mut list = to.serialize_seq(Some(self.0.len()))?;
        for part in self.0 {
            list.serialize_element(&match part {
                Part::Text(text) => PartWire::Text { text },
                Part::Image(path) => PartWire::ImageUrl { image_url: ImageUrl { url: url(path), detail } },
            })?;
        }
        list.end()
    }
}

/// Returns the messages in the OpenAI format.
pub fn to_json(messages: &[Message], image_url: &dyn Fn(&Path) -> String) -> Value {
    let images = ImageWriter { url: image_url, detail: None };
    serde_json::to_value(MessageList { messages, images }).unwrap_or_default()
}

/// Returns the messages as JSON text, which trajectories store as `raw_prompt`. Images are `file://` and the plain path:
/// the Python system's readers remove that prefix and open the rest.
pub fn raw_prompt(messages: &[Message]) -> String {
    let images = ImageWriter { url: &plain_file_url, detail: None };
    serde_json::to_string(&MessageList { messages, images }).unwrap_or_default()
}

fn plain_file_url(path: &Path) -> String {
    format!("file://{}", absolute(path).display())
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Returns whether some image has another URL in a request than in the stored prompt.
pub(super) fn has_encoded_url(messages: &[Message]) -> bool {
    messages.iter().flat_map(Message::images).any(|path| file_url(path) != plain_file_url(path))
}

/// Returns a file URL such as `file:///data/a%20b.png`. A relative path is resolved against the working directory.
pub fn file_url(path: &Path) -> String {
    let mut url = String::from("file://");
    for byte in absolute(path).as_os_str().as_encoded_bytes() {
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
    use serde_json::json;

    use super::*;

    #[test]
    fn stored_prompt_has_plain_paths() {
        let message =
            Message { role: Role::User, content: vec![Part::Image("/data/lr=1e-6/a b%20.png".into())] };
        let stored: Value = serde_json::from_str(&raw_prompt(std::slice::from_ref(&message))).unwrap();
        assert_eq!(stored[0]["content"][0]["image_url"]["url"], "file:///data/lr=1e-6/a b%20.png");
        assert!(has_encoded_url(&[message]));
        let plain = Message { role: Role::User, content: vec![Part::Image("/data/run-1/a_0.png".into())] };
        assert!(!has_encoded_url(&[plain]));
    }

    #[test]
    fn messages_serialize_in_openai_format() {
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
        assert_eq!(to_json(&messages, &file_url), wanted);
    }
}
