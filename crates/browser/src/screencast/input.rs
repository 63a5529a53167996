//! The input of a person who watches a screencast and has taken over. The events reach the page through the same pipeline as
//! those of commands; they are sent at once, without waiting for the page.

use cdp::protocol as p;
use serde::Deserialize;
use serde_json::json;

use super::Screencast;

/// Longer names of keys do not exist.
const MAX_KEY_CHARS: usize = 32;
/// The largest turn of a wheel, in CSS pixels.
const MAX_WHEEL: f64 = 5000.0;
/// The bits Alt, Control and Meta of `modifiers`: with one of them a key types nothing.
const COMMAND_MODIFIERS: u8 = 1 | 2 | 4;

/// What a person does. Points are CSS pixels of the viewport; `buttons` and `modifiers` are the bits of the protocol.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum PersonInput {
    Mouse {
        event: MouseEvent,
        x: f64,
        y: f64,
        #[serde(default)]
        button: MouseButton,
        #[serde(default)]
        buttons: u8,
        #[serde(default)]
        modifiers: u8,
        /// 2 for the second click of a double click.
        #[serde(default)]
        clicks: u8,
    },
    Wheel {
        x: f64,
        y: f64,
        dx: f64,
        dy: f64,
        #[serde(default)]
        modifiers: u8,
    },
    Key {
        event: KeyEvent,
        key: String,
        #[serde(default)]
        code: String,
        /// The Windows virtual key code.
        #[serde(default)]
        key_code: u16,
        #[serde(default)]
        modifiers: u8,
        #[serde(default)]
        repeat: bool,
    },
    /// Text without keys: pasted, or written with an input method.
    Text {
        text: String,
    },
    Reload,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MouseEvent {
    Move,
    Down,
    Up,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MouseButton {
    #[default]
    None,
    Left,
    Middle,
    Right,
}

impl MouseButton {
    const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Left => "left",
            Self::Middle => "middle",
            Self::Right => "right",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyEvent {
    Down,
    Up,
}

impl PersonInput {
    /// Whether it may open or close a window.
    fn is_action(&self) -> bool {
        match self {
            Self::Mouse { event, .. } => *event == MouseEvent::Down,
            Self::Key { event, .. } => *event == KeyEvent::Down,
            Self::Wheel { .. } | Self::Text { .. } => false,
            Self::Reload => true,
        }
    }

    /// The call that carries it out. Public for the fuzzer.
    #[doc(hidden)]
    pub fn call(&self, viewport: (u32, u32)) -> (cdp::Method, serde_json::Value) {
        let place = |x: f64, y: f64| (inside(x, viewport.0), inside(y, viewport.1));
        match self {
            Self::Mouse { event, x, y, button, buttons, modifiers, clicks } => {
                let ((x, y), kind) = (place(*x, *y), mouse_event(*event));
                let params = json!({
                    "type": kind, "x": x, "y": y, "button": button.as_str(), "buttons": buttons, "modifiers": modifiers & 15,
                    "clickCount": clicks,
                });
                (p::INPUT_DISPATCH_MOUSE_EVENT, params)
            }
            Self::Wheel { x, y, dx, dy, modifiers } => {
                let ((x, y), turn) = (place(*x, *y), |by: f64| by.clamp(-MAX_WHEEL, MAX_WHEEL));
                let params = json!({
                    "type": "mouseWheel", "x": x, "y": y, "deltaX": turn(*dx), "deltaY": turn(*dy), "modifiers": modifiers & 15,
                });
                (p::INPUT_DISPATCH_MOUSE_EVENT, params)
            }
            Self::Key { event, key, code, key_code, modifiers, repeat } => {
                let cut = |text: &str| text.chars().take(MAX_KEY_CHARS).collect::<String>();
                let mut params = json!({
                    "type": "keyUp", "key": cut(key), "code": cut(code), "windowsVirtualKeyCode": key_code,
                    "modifiers": modifiers & 15, "autoRepeat": repeat,
                });
                if *event == KeyEvent::Down {
                    let text = typed_text(key, *modifiers);
                    params["type"] = if text.is_some() { "keyDown" } else { "rawKeyDown" }.into();
                    if let Some(text) = text {
                        params["text"] = text.clone().into();
                        params["unmodifiedText"] = text.into();
                    }
                }
                (p::INPUT_DISPATCH_KEY_EVENT, params)
            }
            Self::Text { text } => (p::INPUT_INSERT_TEXT, json!({"text": text})),
            Self::Reload => (p::PAGE_RELOAD, json!({})),
        }
    }
}

const fn mouse_event(event: MouseEvent) -> &'static str {
    match event {
        MouseEvent::Move => "mouseMoved",
        MouseEvent::Down => "mousePressed",
        MouseEvent::Up => "mouseReleased",
    }
}

fn inside(value: f64, size: u32) -> f64 {
    value.max(0.0).min(f64::from(size.saturating_sub(1)))
}

/// Returns what a key types.
fn typed_text(key: &str, modifiers: u8) -> Option<String> {
    if modifiers & COMMAND_MODIFIERS != 0 {
        return None;
    }
    match key {
        "Enter" => Some("\r".to_owned()),
        _ if key.chars().count() == 1 => Some(key.to_owned()),
        _ => None,
    }
}

impl Screencast {
    /// Sends the input of a person to the page that is shown. Returns whether there is one.
    pub fn send_input(&self, input: &PersonInput) -> bool {
        let Some(session) = self.page().clone() else { return false };
        if input.is_action() {
            self.tenant.context().begin_action();
        }
        let (method, params) = input.call(self.tenant.viewport());
        session.send_no_reply(method, &params);
        true
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn call(message: &Value) -> (&'static str, Value) {
        let input: PersonInput = serde_json::from_value(message.clone()).unwrap();
        let (method, params) = input.call((1280, 768));
        (method.name(), params)
    }

    #[test]
    fn points_stay_inside_the_viewport() {
        let (method, params) = call(
            &json!({"type": "mouse", "event": "down", "x": 9e9, "y": -1, "button": "left", "buttons": 1, "clicks": 1}),
        );
        assert_eq!(
            (method, &params["x"], &params["y"]),
            ("Input.dispatchMouseEvent", &json!(1279.0), &json!(0.0))
        );
        let (_, wheel) = call(&json!({"type": "wheel", "x": 1, "y": 1, "dx": 0, "dy": 1e30}));
        assert_eq!(wheel["deltaY"], json!(MAX_WHEEL));
    }

    #[test]
    fn keys_type_text_unless_a_command_modifier_is_held() {
        let key = |key: &str, modifiers: u8| {
            let (_, params) =
                call(&json!({"type": "key", "event": "down", "key": key, "modifiers": modifiers}));
            (params["type"].as_str().unwrap().to_owned(), params["text"].as_str().map(str::to_owned))
        };
        assert_eq!(key("a", 0), ("keyDown".into(), Some("a".into())));
        assert_eq!(key("A", 8), ("keyDown".into(), Some("A".into())));
        assert_eq!(key("a", 2), ("rawKeyDown".into(), None));
        assert_eq!(key("Enter", 0), ("keyDown".into(), Some("\r".into())));
        assert_eq!(key("ArrowDown", 0), ("rawKeyDown".into(), None));
    }

    #[test]
    fn unknown_input_is_refused() {
        for wrong in [
            json!({"type": "evaluate"}),
            json!({"type": "mouse"}),
            json!({"type": "text", "text": "x", "a": 1}),
        ] {
            assert!(serde_json::from_value::<PersonInput>(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
