//! The actions of the policy, their descriptions and their tool calls.

use serde_json::{Map, Value, json};

use crate::{conversation::Targeting, page::Element};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Click { id: String, name: String },
    Type { id: String, name: String, text: String },
    ScrollDown,
    Back,
    Navigate { url: String },
    Wait,
    Answer { text: String },
}

/// An action and the reason for it, which the reply shows as its intention.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) action: Action,
    pub(crate) reason: String,
}

impl Decision {
    pub(crate) fn new(action: Action, reason: impl Into<String>) -> Self {
        Self { action, reason: reason.into() }
    }
}

/// Longer element names are cut in descriptions.
const MAX_NAME_CHARS: usize = 60;

fn shorten(name: &str) -> String {
    name.chars().take(MAX_NAME_CHARS).collect()
}

impl Action {
    pub(crate) fn click(element: &Element) -> Self {
        Self::Click { id: element.id.clone(), name: shorten(&element.text) }
    }

    pub(crate) fn type_text(element: &Element, text: &str) -> Self {
        Self::Type { id: element.id.clone(), name: shorten(&element.text), text: text.to_owned() }
    }

    pub(crate) fn answer(text: &str) -> Self {
        Self::Answer { text: text.to_owned() }
    }

    /// Describes the action in one sentence. The memory also identifies actions by it.
    pub(crate) fn description(&self) -> String {
        match self {
            Self::Click { name, .. } => format!("click “{name}”"),
            Self::Type { name, text, .. } => format!("type “{text}” into “{name}”"),
            Self::ScrollDown => "scroll down".to_owned(),
            Self::Back => "go back".to_owned(),
            Self::Navigate { url } => format!("open {url}"),
            Self::Wait => "wait".to_owned(),
            Self::Answer { text } => format!("answer “{text}”"),
        }
    }

    /// Returns the arguments of the tool call.
    pub(crate) fn tool_arguments(&self, targeting: Targeting) -> Map<String, Value> {
        let value = match self {
            Self::Click { id, .. } => match targeting {
                Targeting::Marks => json!({"action": "click", "element_id": id}),
                Targeting::Coordinates => json!({"action": "wait", "time": 1}),
            },
            Self::Type { id, text, .. } => match targeting {
                Targeting::Marks => json!({"action": "type", "element_id": id, "text": text}),
                Targeting::Coordinates => json!({"action": "wait", "time": 1}),
            },
            Self::ScrollDown => json!({"action": "scroll", "direction": "down"}),
            Self::Back => json!({"action": "go_back"}),
            Self::Navigate { url } => json!({"action": "navigate", "url": url}),
            Self::Wait => json!({"action": "wait", "time": 1}),
            Self::Answer { text } => json!({"action": "answer", "text": text}),
        };
        value.as_object().cloned().unwrap_or_default()
    }
}
