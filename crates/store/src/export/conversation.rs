//! Converts the recorded prompt of a step to the form that trainers read: text with an `<image>` tag for each image,
//! and the image paths in the same order.

use std::path::PathBuf;

use serde_json::Value;

use crate::layout::SavePath;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    System,
    User,
    Assistant,
}

impl Role {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// A message whose images are replaced by `<image>` tags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) role: Role,
    pub(super) text: String,
}

/// A prompt in the form that trainers read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Conversation {
    pub(super) turns: Vec<Turn>,
    pub(super) images: Vec<String>,
}

const IMAGE_TAG: &str = "<image>";

fn push_part(text: &mut String, images: &mut Vec<String>, part: &Value, save_path: &SavePath) -> Option<()> {
    if let Some(content) = part.get("text") {
        text.push_str(&escape_media_tags(content.as_str()?));
        return Some(());
    }
    let address = part.get("image_url").or_else(|| part.get("image"))?;
    let address = address.get("url").unwrap_or(address).as_str()?;
    if address.starts_with("data:") || address.starts_with("http:") || address.starts_with("https:") {
        return None;
    }
    images.push(local_path(address, save_path).to_string_lossy().into_owned());
    text.push_str(IMAGE_TAG);
    Some(())
}

/// The current absolute path of an image.
fn local_path(address: &str, save_path: &SavePath) -> PathBuf {
    let mut path = save_path.resolve_image(address);
    if !path.exists() && address.contains('%') {
        path = save_path.resolve_image(&percent_decode(address));
    }
    std::path::absolute(&path).unwrap_or(path)
}

fn percent_decode(address: &str) -> String {
    let mut bytes = Vec::with_capacity(address.len());
    let mut rest = address.as_bytes();
    while let [first, tail @ ..] = rest {
        let code =
            tail.get(..2).filter(|_| *first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        let decoded = code.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(decoded.unwrap_or(*first));
        rest = if decoded.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Escapes the tags that trainers count as media, where they occur in page text.
pub(super) fn escape_media_tags(text: &str) -> String {
    let mut escaped = text.to_owned();
    for name in ["image", "video", "audio"] {
        let tag = format!("<{name}>");
        if escaped.contains(&tag) {
            escaped = escaped.replace(&tag, &format!("&lt;{name}&gt;"));
        }
    }
    escaped
}

impl Conversation {
    /// Parses a recorded prompt. Returns `None` if it is not a list of messages or has an image that is not a file.
    pub(super) fn parse(raw_prompt: &str, save_path: &SavePath) -> Option<Self> {
        let messages: Value = serde_json::from_str(raw_prompt).ok()?;
        let mut conversation = Self::default();
        for message in messages.as_array()? {
            let role = match message.get("role")?.as_str()? {
                "system" | "developer" => Role::System,
                "user" | "tool" => Role::User,
                "assistant" => Role::Assistant,
                _ => return None,
            };
            let text = match message.get("content")? {
                Value::String(text) => escape_media_tags(text),
                Value::Array(parts) => {
                    let mut text = String::new();
                    for part in parts {
                        push_part(&mut text, &mut conversation.images, part, save_path)?;
                    }
                    text
                }
                Value::Null => String::new(),
                _ => return None,
            };
            conversation.turns.push(Turn { role, text });
        }
        Some(conversation)
    }

    /// Returns the system prompt, the other turns with consecutive turns of the same role joined, and the images.
    pub(super) fn into_alternating(self) -> (String, Vec<Turn>, Vec<String>) {
        let mut system = String::new();
        let mut turns: Vec<Turn> = Vec::new();
        for turn in self.turns {
            if turn.role == Role::System {
                if !system.is_empty() {
                    system.push('\n');
                }
                system.push_str(&turn.text);
                continue;
            }
            match turns.last_mut() {
                Some(last) if last.role == turn.role => {
                    last.text.push('\n');
                    last.text.push_str(&turn.text);
                }
                _ => turns.push(turn),
            }
        }
        (system, turns, self.images)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parsed(messages: &Value) -> Option<Conversation> {
        Conversation::parse(&messages.to_string(), &SavePath::new("/nowhere"))
    }

    #[test]
    fn images_become_tags_and_tags_in_text_are_escaped() {
        let found = parsed(&json!([
            {"role": "system", "content": "Watch <video>"},
            {"role": "user", "content": [
                {"type": "text", "text": "<image> is a word, "},
                {"type": "image_url", "image_url": {"url": "file:///a%20b/1.png"}},
                {"type": "image", "image": "/c/2.png"},
                {"type": "text", "text": " <audio>"}]},
        ]))
        .unwrap();
        assert_eq!(found.images, ["/a b/1.png", "/c/2.png"]);
        assert_eq!(found.turns[0].text, "Watch &lt;video&gt;");
        assert_eq!(found.turns[1].text, "&lt;image&gt; is a word, <image><image> &lt;audio&gt;");
    }

    #[test]
    fn percent_encoded_path_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("ä b.png");
        std::fs::write(&file, b"x").unwrap();
        let address = format!("file://{}/%C3%A4%20b.png", directory.path().display());
        assert_eq!(local_path(&address, &SavePath::new("/nowhere")), file);
    }

    #[test]
    fn invalid_conversation_is_none() {
        for messages in [
            json!("text"),
            json!([{"role": "user"}]),
            json!([{"role": "robot", "content": "x"}]),
            json!([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]}]),
        ] {
            assert_eq!(parsed(&messages), None, "{messages}");
        }
        assert_eq!(Conversation::parse("not json", &SavePath::new("/nowhere")), None);
    }

    #[test]
    fn consecutive_turns_of_a_role_are_joined() {
        let found = parsed(&json!([
            {"role": "system", "content": "a"}, {"role": "user", "content": "b"}, {"role": "user", "content": "c"},
            {"role": "assistant", "content": "d"}, {"role": "system", "content": "e"}, {"role": "user", "content": "f"},
        ]));
        let (system, turns, _) = found.unwrap().into_alternating();
        assert_eq!(system, "a\ne");
        let turns: Vec<_> = turns.iter().map(|turn| (turn.role.as_str(), turn.text.as_str())).collect();
        assert_eq!(turns, [("user", "b\nc"), ("assistant", "d"), ("user", "f")]);
    }
}
