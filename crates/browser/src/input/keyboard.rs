//! The keyboard. Text is typed key by key, with all the events of a user's typing; characters without a key are inserted
//! as an input method would do.

use cdp::{PendingCall, protocol as p};
use serde_json::json;

use super::{
    Input,
    keys::{Key, Modifier},
};
use crate::error::BrowserError;

/// How many events are sent before they are awaited.
const MAX_BURST: usize = 200;

impl Input<'_> {
    fn key_event(&self, kind: &str, key: &Key, modifiers: u32) -> PendingCall {
        let mut params = json!({
            "type": kind, "key": key.name, "code": key.code, "windowsVirtualKeyCode": key.virtual_code, "modifiers": modifiers,
        });
        if let (Some(text), true) = (&key.text, kind == "keyDown") {
            params["text"] = text.as_str().into();
            params["unmodifiedText"] = text.as_str().into();
        }
        self.session.send(p::INPUT_DISPATCH_KEY_EVENT, &params)
    }

    fn key_down(&self, key: &Key, modifiers: u32) -> PendingCall {
        self.key_event(if key.text.is_some() { "keyDown" } else { "rawKeyDown" }, key, modifiers)
    }

    /// Presses the keys in order and releases them in reverse order.
    pub(crate) async fn press(&self, names: &[&str]) -> Result<(), BrowserError> {
        let unknown = |name: &str| {
            BrowserError::BadArgument(format!(
                "keypress: {name:?} is not a key; use a single character or a name such as enter, tab, ctrl, shift, alt, esc, \
                 arrowdown, pageup, home, F5"
            ))
        };
        let keys: Vec<Key> = names
            .iter()
            .map(|name| Key::from_name(name).ok_or_else(|| unknown(name)))
            .collect::<Result<_, _>>()?;
        let mut modifiers = 0;
        let mut events = Vec::new();
        let mut pressed = Vec::new();
        for key in keys {
            modifiers |= key.modifier.map_or(0, Modifier::bit);
            let key = key.with_modifiers(modifiers);
            events.push(self.key_down(&key, modifiers));
            pressed.push(key);
        }
        for key in pressed.iter().rev() {
            modifiers &= !key.modifier.map_or(0, Modifier::bit);
            events.push(self.key_event("keyUp", key, modifiers));
        }
        self.wait_handled(events).await
    }

    /// Types into the focused element.
    pub(crate) async fn type_text(&self, text: &str) -> Result<(), BrowserError> {
        let mut events = Vec::new();
        for chunk in split_by_key(text) {
            match chunk {
                Chunk::Key(key) => {
                    events.extend([self.key_down(&key, 0), self.key_event("keyUp", &key, 0)]);
                }
                Chunk::Text(text) => {
                    events.push(self.session.send(p::INPUT_INSERT_TEXT, &json!({"text": text})));
                }
            }
            if events.len() >= MAX_BURST {
                self.wait_handled(std::mem::take(&mut events)).await?;
            }
        }
        self.wait_handled(events).await
    }
}

enum Chunk {
    Key(Key),
    Text(String),
}

/// Splits text into keystrokes and runs of characters without a key. A run stays together, so that emoji and combining
/// marks are inserted as a whole.
fn split_by_key(text: &str) -> Vec<Chunk> {
    let mut chunks = Vec::new();
    // A Windows line break is one Enter, not two.
    for character in text.replace("\r\n", "\n").chars() {
        match (Key::from_char(character), chunks.last_mut()) {
            (Some(key), _) => chunks.push(Chunk::Key(key)),
            (None, Some(Chunk::Text(run))) => run.push(character),
            (None, _) => chunks.push(Chunk::Text(character.to_string())),
        }
    }
    chunks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_without_key_stay_together() {
        let kinds: Vec<String> = split_by_key("aé漢👩‍🚀b\r\n")
            .iter()
            .map(|chunk| match chunk {
                Chunk::Key(key) => key.name.clone(),
                Chunk::Text(text) => format!("<{text}>"),
            })
            .collect();
        assert_eq!(kinds, ["a", "<é漢👩‍🚀>", "b", "Enter"]);
    }
}
