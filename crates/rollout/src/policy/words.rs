//! The words models use for actions and arguments, and the one form we keep them in.

use proto::trajectory::Action;
use serde_json::{Map, Value, json};

/// What an agent can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ActionKey {
    Click,
    Type,
    Scroll,
    Hover,
    HoverAndScroll,
    Wait,
    GoBack,
    Navigate,
    TabAndEnter,
    Answer,
}

impl ActionKey {
    pub const ALL: [Self; 10] = [
        Self::Click,
        Self::Type,
        Self::Scroll,
        Self::Hover,
        Self::HoverAndScroll,
        Self::Wait,
        Self::GoBack,
        Self::Navigate,
        Self::TabAndEnter,
        Self::Answer,
    ];

    /// The key as trajectories hold it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Click => "click",
            Self::Type => "type",
            Self::Scroll => "scroll",
            Self::Hover => "hover",
            Self::HoverAndScroll => "hover_and_scroll",
            Self::Wait => "wait",
            Self::GoBack => Action::GO_BACK,
            Self::Navigate => "navigate",
            Self::TabAndEnter => "tabandenter",
            Self::Answer => Action::ANSWER,
        }
    }

    pub fn from_key(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == key)
    }

    /// The word at the start of the action's sentence.
    pub(super) const fn verb(self) -> &'static str {
        match self {
            Self::Click => "Click",
            Self::Type => "Type",
            Self::Scroll => "Scroll",
            Self::Hover => "Hover",
            Self::HoverAndScroll => "HoverAndScroll",
            Self::Wait => "Wait",
            Self::GoBack => "GoBack",
            Self::Navigate => "Navigate",
            Self::TabAndEnter => "TabAndEnter",
            Self::Answer => "ANSWER",
        }
    }

    /// The action that a model's word stands for; spelling, case and separators do not matter.
    pub(super) fn from_word(word: &str) -> Option<Self> {
        if word.len() > 40 {
            return None;
        }
        let bare: String =
            word.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
        Some(match bare.as_str() {
            "click" | "leftclick" | "clickelement" | "tap" | "doubleclick" | "select" | "selectoption" => {
                Self::Click
            }
            "type" | "typetext" | "input" | "inputtext" | "fill" | "write" => Self::Type,
            "scroll" | "scrolldown" | "scrollup" | "scrollleft" | "scrollright" => Self::Scroll,
            "hover" | "mousemove" | "movemouse" => Self::Hover,
            "hoverandscroll" => Self::HoverAndScroll,
            "wait" | "sleep" | "pause" => Self::Wait,
            "goback" | "back" | "navigateback" => Self::GoBack,
            "navigate" | "goto" | "gotourl" | "open" | "openurl" | "visit" | "visitpage" => Self::Navigate,
            "tabandenter" => Self::TabAndEnter,
            "answer" | "finalanswer" | "finish" | "finished" | "done" | "terminate" | "submitanswer" => {
                Self::Answer
            }
            _ => return None,
        })
    }
}

/// A model's word may carry the direction: `scroll_down`.
pub(super) fn direction_in(word: &str) -> Option<&'static str> {
    let word = word.to_ascii_lowercase();
    ["down", "up", "left", "right"].into_iter().find(|direction| word.ends_with(direction))
}

/// An action with its arguments in their one form, and the sentence for it.
pub(super) fn action(key: ActionKey, arguments: Map<String, Value>) -> Action {
    let action_string = sentence(key, &arguments);
    Action { key: key.as_str().to_owned(), arguments, action_string }
}

/// `Type [512, 300] [hello]`: verb, target, further argument; parses back to the same action.
fn sentence(key: ActionKey, arguments: &Map<String, Value>) -> String {
    let mut text = key.verb().to_owned();
    let mut part = |value: String| text.extend([" [", &value, "]"]);
    if let Some(Value::Array(numbers)) = arguments.get("coordinate") {
        part(numbers.iter().map(Value::to_string).collect::<Vec<_>>().join(", "));
    }
    for name in ["element_id", "direction", "text", "url", "goback_to"] {
        if let Some(Value::String(value)) = arguments.get(name) {
            part(value.clone());
        }
    }
    if let Some(time) = arguments.get("time") {
        part(time.to_string());
    }
    text
}

/// What an unusable reply becomes.
pub(super) fn wait() -> Action {
    action(ActionKey::Wait, Map::new())
}

/// Numbers out of whatever a model calls a point: numbers, texts, lists of lists.
pub(super) fn numbers(value: &Value, found: &mut Vec<f64>) {
    match value {
        Value::Number(number) => found.extend(number.as_f64()),
        Value::String(text) => found.extend(
            text.split(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-')))
                .filter_map(|part| part.parse::<f64>().ok())
                .filter(|number| number.is_finite()),
        ),
        Value::Array(list) => list.iter().for_each(|item| numbers(item, found)),
        Value::Object(map) => map.values().for_each(|item| numbers(item, found)),
        Value::Null | Value::Bool(_) => {}
    }
}

/// A point (two numbers) or a box (four), as JSON with whole numbers where they are whole.
pub(super) fn coordinate(value: &Value) -> Option<Value> {
    let mut found = Vec::new();
    numbers(value, &mut found);
    let whole = |number: &f64| {
        let number = plain(*number);
        if number.fract() == 0.0 { json!(number as i64) } else { json!(number) }
    };
    matches!(found.len(), 2 | 4).then(|| found.iter().map(whole).collect())
}

/// A number that can be written without an exponent, as the sentence of an action must be; no point on a screen and no
/// wait needs more.
fn plain(number: f64) -> f64 {
    (number.clamp(-1e6, 1e6) * 1000.0).round() / 1000.0
}

/// The number of a marked element: `12`, `"12"`, `"[12]"`, `[12]`.
pub(super) fn element_id(value: &Value) -> Option<String> {
    match value {
        Value::Number(number) => number.as_u64().map(|id| id.to_string()),
        Value::String(text) => {
            let bare = text.trim().trim_matches(['[', ']', '#', '(', ')', '<', '>', ' ']);
            (!bare.is_empty() && bare.len() <= 9 && bare.bytes().all(|b| b.is_ascii_digit()))
                .then(|| bare.to_owned())
        }
        Value::Array(list) if list.len() == 1 => element_id(&list[0]),
        _ => None,
    }
}

/// Text out of a value; structures as JSON.
pub(super) fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// Seconds out of `3`, `"3"`, `"3 seconds"`.
pub(super) fn seconds(value: &Value) -> Option<f64> {
    let mut found = Vec::new();
    numbers(value, &mut found);
    found.first().copied().filter(|seconds| *seconds >= 0.0).map(plain)
}
