//! The keyboard. Text is typed key by key, with all the events a person's typing fires; characters no key has
//! are inserted as an input method would.

use std::time::Duration;

use cdp::{PendingCall, protocol as p};
use proto::command::Fill;
use serde::Deserialize;
use serde_json::json;

use super::keys::Key;
use crate::{error::BrowserError, page::Page};

/// How many keystrokes are sent before the first is waited for.
const BURST: usize = 200;

/// How the focused field elapsed a value that is not typed: `done` names what it was.
#[derive(Deserialize)]
struct Whole {
    done: Option<String>,
    refused: Option<String>,
}

impl Page {
    /// Input is over when the page has handled it, which a hung page never does.
    pub(crate) async fn finish_input<I: IntoIterator<Item = PendingCall>>(
        &self,
        events: I,
    ) -> Result<(), BrowserError> {
        let events: Vec<PendingCall> = events.into_iter().collect();
        let limit = self.input_limit();
        for event in events {
            match event.within(limit).await {
                Ok(_) => {}
                Err(cdp::CallError::Deadline { after, .. }) => {
                    return Err(BrowserError::Timeout { what: "it does not react to input".into(), after });
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn input_limit(&self) -> Duration {
        INPUT_LIMIT.min(self.options().operation_timeout)
    }

    fn key(&self, kind: &str, key: &Key, modifiers: u32) -> PendingCall {
        let mut params = json!({
            "type": kind, "key": key.name, "code": key.code, "windowsVirtualKeyCode": key.virtual_code, "modifiers": modifiers,
        });
        if let (Some(text), true) = (&key.text, kind == "keyDown") {
            params["text"] = text.as_str().into();
            params["unmodifiedText"] = text.as_str().into();
        }
        self.session().send(p::INPUT_DISPATCH_KEY_EVENT, &params)
    }

    fn down(&self, key: &Key, modifiers: u32) -> PendingCall {
        self.key(if key.text.is_some() { "keyDown" } else { "rawKeyDown" }, key, modifiers)
    }

    /// Presses in order, releases in reverse.
    pub(crate) async fn press(&self, names: &[&str]) -> Result<(), BrowserError> {
        let unknown = |name: &str| {
            BrowserError::BadArgument(format!(
                "keypress: {name:?} is not a key; use a single character or a name such as enter, tab, ctrl, shift, alt, esc, \
                 arrowdown, pageup, home, F5"
            ))
        };
        let keys: Vec<Key> = names
            .iter()
            .map(|name| Key::named(name).ok_or_else(|| unknown(name)))
            .collect::<Result<_, _>>()?;
        let mut held = 0;
        let mut events = Vec::new();
        let mut pressed = Vec::new();
        for key in keys {
            held |= key.modifier.map_or(0, super::keys::Modifier::bit);
            let key = key.with(held);
            events.push(self.down(&key, held));
            pressed.push(key);
        }
        for key in pressed.iter().rev() {
            held &= !key.modifier.map_or(0, super::keys::Modifier::bit);
            events.push(self.key("keyUp", key, held));
        }
        self.finish_input(events).await
    }

    /// Types into whatever has the focus.
    pub(crate) async fn type_text(&self, text: &str) -> Result<(), BrowserError> {
        let mut events = Vec::new();
        for piece in pieces(text) {
            match piece {
                Piece::Key(key) => events.extend([self.down(&key, 0), self.key("keyUp", &key, 0)]),
                Piece::Text(text) => {
                    events.push(self.session().send(p::INPUT_INSERT_TEXT, &json!({"text": text})));
                }
            }
            if events.len() >= BURST {
                self.finish_input(std::mem::take(&mut events)).await?;
            }
        }
        self.finish_input(events).await
    }

    /// Fills the field that has the focus, in the page or in the frame of this agent.
    pub(crate) async fn fill(&self, fill: &Fill, agent: Option<i64>) -> Result<(), BrowserError> {
        let limit = self.options().operation_timeout;
        let whole: Whole = self.ask_agent(limit, "fillWhole", agent, &json!([fill.value])).await?;
        if let Some(why) = whole.refused {
            return Err(BrowserError::BadArgument(format!("cannot fill this field: {why}")));
        }
        match whole.done.as_deref() {
            Some("select") => return Ok(()),
            Some(_) => {}
            None => self.fill_by_keys(fill).await?,
        }
        if fill.press_enter {
            self.press(&["enter"]).await?;
        }
        Ok(())
    }

    async fn fill_by_keys(&self, fill: &Fill) -> Result<(), BrowserError> {
        if fill.delete_existing {
            self.press(&["ctrl", "a"]).await?;
            self.press(&["backspace"]).await?;
        }
        self.type_text(&fill.value).await
    }
}

const INPUT_LIMIT: Duration = Duration::from_secs(10);

enum Piece {
    Key(Key),
    Text(String),
}

/// Runs of characters without a key go in together, so that emoji and combining marks stay whole.
fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    // A Windows line break is one Enter, not two.
    for character in text.replace("\r\n", "\n").chars() {
        match (Key::character(character), pieces.last_mut()) {
            (Some(key), _) => pieces.push(Piece::Key(key)),
            (None, Some(Piece::Text(run))) => run.push(character),
            (None, _) => pieces.push(Piece::Text(character.to_string())),
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_key_stays_together() {
        let kinds: Vec<String> = pieces("aé漢👩‍🚀b\r\n")
            .iter()
            .map(|piece| match piece {
                Piece::Key(key) => key.name.clone(),
                Piece::Text(text) => format!("<{text}>"),
            })
            .collect();
        assert_eq!(kinds, ["a", "<é漢👩‍🚀>", "b", "Enter"]);
    }
}
