//! The prompt of a step as the model saw it, read back from its JSON and put into the notation of trainers: text with
//! `<image>` where an image stands, and the images in that order.

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

/// A message with its images marked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) role: Role,
    pub(super) text: String,
}

/// A prompt in trainers' notation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Conversation {
    pub(super) turns: Vec<Turn>,
    pub(super) images: Vec<String>,
}

const IMAGE: &str = "<image>";

/// `None` when the text is not a list of messages, or an image is not a file.
pub(super) fn parse(raw_prompt: &str, save_path: &SavePath) -> Option<Conversation> {
    let messages: Value = serde_json::from_str(raw_prompt).ok()?;
    let mut conversation = Conversation::default();
    for message in messages.as_array()? {
        let role = match message.get("role")?.as_str()? {
            "system" | "developer" => Role::System,
            "user" | "tool" => Role::User,
            "assistant" => Role::Assistant,
            _ => return None,
        };
        let text = match message.get("content")? {
            Value::String(text) => escape(text),
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

fn push_part(text: &mut String, images: &mut Vec<String>, part: &Value, save_path: &SavePath) -> Option<()> {
    if let Some(words) = part.get("text") {
        text.push_str(&escape(words.as_str()?));
        return Some(());
    }
    let address = part.get("image_url").or_else(|| part.get("image"))?;
    let address = address.get("url").unwrap_or(address).as_str()?;
    if address.starts_with("data:") || address.starts_with("http:") || address.starts_with("https:") {
        return None;
    }
    images.push(local_path(address, save_path).to_string_lossy().into_owned());
    text.push_str(IMAGE);
    Some(())
}

/// An absolute path where the image lies now.
fn local_path(address: &str, save_path: &SavePath) -> PathBuf {
    let mut path = save_path.resolve_image(address);
    if !path.exists() && address.contains('%') {
        path = save_path.resolve_image(&percent_decoded(address));
    }
    std::path::absolute(&path).unwrap_or(path)
}

fn percent_decoded(address: &str) -> String {
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

/// Trainers count these words against the media of an example; in page text they are only words.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = text.to_owned();
    for word in ["image", "video", "audio"] {
        let mark = format!("<{word}>");
        if escaped.contains(&mark) {
            escaped = escaped.replace(&mark, &format!("&lt;{word}&gt;"));
        }
    }
    escaped
}

impl Conversation {
    /// The system's words, and the rest with neighbours of one role joined.
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
        parse(&messages.to_string(), &SavePath::new("/nowhere"))
    }

    #[test]
    fn images_stand_where_they_stood_and_words_are_only_words() {
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
    fn an_encoded_path_is_found_on_disk() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("ä b.png");
        std::fs::write(&file, b"x").unwrap();
        let address = format!("file://{}/%C3%A4%20b.png", directory.path().display());
        assert_eq!(local_path(&address, &SavePath::new("/nowhere")), file);
    }

    #[test]
    fn what_is_no_conversation_is_none() {
        for messages in [
            json!("text"),
            json!([{"role": "user"}]),
            json!([{"role": "robot", "content": "x"}]),
            json!([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]}]),
        ] {
            assert_eq!(parsed(&messages), None, "{messages}");
        }
        assert_eq!(parse("not json", &SavePath::new("/nowhere")), None);
    }

    #[test]
    fn neighbours_of_one_role_are_joined_and_the_system_stands_apart() {
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
