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
        let keys = names.iter().map(|name| key("keypress", name)).collect::<Result<Vec<_>, _>>()?;
        let mut events = Vec::new();
        let pressed: Vec<Key> = keys.into_iter().map(|key| self.hold(key, &mut events)).collect();
        events.extend(pressed.iter().rev().map(|key| self.release(key)));
        self.wait_handled(events).await
    }

    /// Presses a key without releasing it.
    pub(crate) async fn key_pressed(&self, name: &str) -> Result<(), BrowserError> {
        let mut events = Vec::new();
        self.hold(key("key_down", name)?, &mut events);
        self.wait_handled(events).await
    }

    pub(crate) async fn key_released(&self, name: &str) -> Result<(), BrowserError> {
        let key = key("key_up", name)?.with_modifiers(self.held().modifiers);
        self.wait_handled([self.release(&key)]).await
    }

    /// Runs an action while modifier keys are pressed.
    pub(crate) async fn with_modifiers(
        &self,
        names: &[String],
        action: impl Future<Output = Result<(), BrowserError>>,
    ) -> Result<(), BrowserError> {
        let keys = names.iter().map(|name| modifier_key(name)).collect::<Result<Vec<_>, _>>()?;
        let mut events = Vec::new();
        let pressed: Vec<Key> = keys.into_iter().map(|key| self.hold(key, &mut events)).collect();
        self.wait_handled(events).await?;
        let outcome = action.await;
        let released: Vec<PendingCall> = pressed.iter().rev().map(|key| self.release(key)).collect();
        self.wait_handled(released).await?;
        outcome
    }

    /// Whether modifier keys are pressed.
    pub(crate) fn holds_modifiers(&self) -> bool {
        self.held().modifiers != 0
    }

    fn hold(&self, key: Key, events: &mut Vec<PendingCall>) -> Key {
        let modifiers = {
            let mut held = self.held();
            held.modifiers |= key.modifier.map_or(0, Modifier::bit);
            held.modifiers
        };
        let key = key.with_modifiers(modifiers);
        events.push(self.key_down(&key, modifiers));
        key
    }

    fn release(&self, key: &Key) -> PendingCall {
        let modifiers = {
            let mut held = self.held();
            held.modifiers &= !key.modifier.map_or(0, Modifier::bit);
            held.modifiers
        };
        self.key_event("keyUp", key, modifiers)
    }

    /// Types into the focused element.
    pub(crate) async fn type_text(&self, text: &str) -> Result<(), BrowserError> {
        let modifiers = self.held().modifiers;
        let mut events = Vec::new();
        for chunk in split_by_key(text) {
            match chunk {
                Chunk::Key(key) => {
                    let key = key.with_modifiers(modifiers);
                    events.extend([self.key_down(&key, modifiers), self.key_event("keyUp", &key, modifiers)]);
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

fn key(command: &str, name: &str) -> Result<Key, BrowserError> {
    Key::from_name(name).ok_or_else(|| {
        BrowserError::BadArgument(format!(
            "{command}: {name:?} is not a key; use a single character or a name such as enter, tab, ctrl, shift, alt, esc, \
             arrowdown, pageup, home, F5"
        ))
    })
}

fn modifier_key(name: &str) -> Result<Key, BrowserError> {
    Key::from_name(name).filter(|key| key.modifier.is_some()).ok_or_else(|| {
        BrowserError::BadArgument(format!(
            "keys: {name:?} is not a modifier; a mouse action accepts ctrl, shift, alt and meta"
        ))
    })
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
