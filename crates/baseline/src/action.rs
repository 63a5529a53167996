//! What the agent can do, and the words for it.

use serde_json::{Map, Value, json};

use crate::{page::Element, talk::Pointing};

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

/// An action and the reason for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Move {
    pub(crate) action: Action,
    pub(crate) why: String,
}

impl Move {
    pub(crate) fn new(action: Action, why: impl Into<String>) -> Self {
        Self { action, why: why.into() }
    }
}

/// Names longer than this are shortened in sentences.
const NAME: usize = 60;

fn short(name: &str) -> String {
    name.chars().take(NAME).collect()
}

impl Action {
    pub(crate) fn click(element: &Element) -> Self {
        Self::Click { id: element.id.clone(), name: short(&element.text) }
    }

    pub(crate) fn fill(element: &Element, text: &str) -> Self {
        Self::Type { id: element.id.clone(), name: short(&element.text), text: text.to_owned() }
    }

    pub(crate) fn answer(text: &str) -> Self {
        Self::Answer { text: text.to_owned() }
    }

    /// One sentence; by it the agent also knows again what it has done.
    pub(crate) fn sentence(&self) -> String {
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

    /// The arguments of the tool call.
    pub(crate) fn arguments(&self, pointing: Pointing) -> Map<String, Value> {
        let value = match self {
            Self::Click { id, .. } => match pointing {
                Pointing::Marks => json!({"action": "click", "element_id": id}),
                Pointing::Points => json!({"action": "wait", "time": 1}),
            },
            Self::Type { id, text, .. } => match pointing {
                Pointing::Marks => json!({"action": "type", "element_id": id, "text": text}),
                Pointing::Points => json!({"action": "wait", "time": 1}),
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
