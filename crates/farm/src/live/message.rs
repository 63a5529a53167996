//! The messages between a viewer and the farm. Frames are binary messages; everything else is JSON.

use browser::{PageInfo, PersonInput};
use proto::Command;
use serde::Deserialize;
use serde_json::{Value, json};

use super::console::NewEntries;
use crate::pool::{LeaseUsage, ViewerGuard};

/// A message of a viewer.
#[derive(Debug, PartialEq)]
pub(crate) enum ViewerMessage {
    /// The last frame is drawn; the next one may be sent.
    Ack,
    Input(PersonInput),
    /// A command as of `/execute`, under the same rules.
    Command(Command),
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum Other {
    Ack,
    Navigate { url: String },
    Back,
    Forward,
}

impl ViewerMessage {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let invalid = |error: serde_json::Error| format!("this message is not valid: {error}");
        let message: Value = serde_json::from_str(text).map_err(invalid)?;
        match message["type"].as_str() {
            Some("ack" | "navigate" | "back" | "forward") => {
                Ok(match serde_json::from_value(message).map_err(invalid)? {
                    Other::Ack => Self::Ack,
                    Other::Navigate { url } => Self::Command(Command::VisitPage { url }),
                    Other::Back => Self::Command(Command::Back),
                    Other::Forward => Self::Command(Command::Forward),
                })
            }
            _ => serde_json::from_value(message).map(Self::Input).map_err(|error| {
                format!("{}; other types are ack, navigate, back and forward", invalid(error))
            }),
        }
    }
}

/// The first message: what the viewer may do, and the size of the page.
pub(crate) fn hello(viewer: &ViewerGuard) -> Value {
    let (width, height) = viewer.tenant().viewport();
    json!({
        "type": "hello", "instance_id": viewer.id(), "control": viewer.can_control(),
        "viewport": {"width": width, "height": height},
    })
}

pub(crate) fn page(page: &PageInfo) -> Value {
    json!({"type": "page", "url": page.url, "title": page.title})
}

pub(crate) fn console(new: &NewEntries) -> Value {
    let entries: Vec<Value> = new
        .entries
        .iter()
        .map(|entry| {
            json!({"level": entry.level, "text": entry.text, "url": entry.url, "line": entry.line, "time": entry.time})
        })
        .collect();
    json!({"type": "console", "missed": new.missed, "entries": entries})
}

pub(crate) fn lease(usage: &LeaseUsage) -> Value {
    json!({
        "type": "lease", "age_secs": usage.age.as_secs(), "unused_secs": usage.unused.as_secs(),
        "lifetime_secs": usage.lifetime.as_secs(), "acting": usage.is_acting, "cdp_connections": usage.cdp_connections,
        "viewers": usage.viewers, "controllers": usage.controllers,
    })
}

/// A command of the viewer has succeeded.
pub(crate) fn done() -> Value {
    json!({"type": "done"})
}

pub(crate) fn error(detail: &str) -> Value {
    json!({"type": "error", "detail": detail})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_told_apart() {
        assert_eq!(ViewerMessage::parse(r#"{"type":"ack"}"#), Ok(ViewerMessage::Ack));
        let url = "https://a.test/".to_owned();
        let visit = ViewerMessage::parse(r#"{"type":"navigate","url":"https://a.test/"}"#);
        assert_eq!(visit, Ok(ViewerMessage::Command(Command::VisitPage { url })));
        let text = ViewerMessage::parse(r#"{"type":"text","text":"x"}"#);
        assert_eq!(text, Ok(ViewerMessage::Input(PersonInput::Text { text: "x".into() })));
        for wrong in ["", "[]", "{}", r#"{"type":"evaluate"}"#, "\"ack\""] {
            assert!(ViewerMessage::parse(wrong).is_err(), "{wrong}");
        }
    }
}
