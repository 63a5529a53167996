//! The actions an agent can take: their keys in trajectories, the names models use for them, and their text form.

use proto::{InteractionMode, trajectory::Action};
use serde_json::{Map, Value};

/// Longer names are not compared with the known ones.
const MAX_NAME_BYTES: usize = 40;

/// The kind of an action.
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

    /// Returns the key that trajectories use.
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

    /// Returns the first word of the action's text form.
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

    /// Returns the action for a name that models use, ignoring case and separators.
    pub(super) fn from_model_name(name: &str) -> Option<Self> {
        if name.len() > MAX_NAME_BYTES {
            return None;
        }
        let normalized: String =
            name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
        Some(match normalized.as_str() {
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

/// Where to go back to, unless the action names the start page.
const LAST_PAGE: &str = "last_page";

/// Creates an action from its key and normalized arguments. Its sentence is its text form, until the reply gives one.
pub(super) fn new_action(key: ActionKey, mut arguments: Map<String, Value>) -> Action {
    if key == ActionKey::GoBack {
        arguments.entry("goback_to").or_insert_with(|| LAST_PAGE.into());
    }
    let mut action = Action { key: key.as_str().to_owned(), arguments, action_string: String::new() };
    action.action_string = text_form(&action);
    action
}

/// Returns the verb and the arguments in brackets, as in `Type [512, 300] [hello]`. Parses back to the same action. An
/// action that no model chooses, such as an error, is returned as its sentence.
pub fn text_form(action: &Action) -> String {
    let Some(key) = ActionKey::from_key(&action.key) else { return action.action_string.clone() };
    let mut text = key.verb().to_owned();
    let mut push_argument = |value: &str| text.extend([" [", value, "]"]);
    if let Some(Value::Array(numbers)) = action.coordinates() {
        push_argument(&numbers.iter().map(Value::to_string).collect::<Vec<_>>().join(", "));
    }
    let named = |name: &str| action.arguments.get(name);
    let goback_to = named("goback_to").filter(|to| *to != LAST_PAGE);
    let texts = [named("element_id"), named("direction"), action.text(), named("url"), goback_to];
    for value in texts.into_iter().flatten().filter_map(Value::as_str) {
        push_argument(value);
    }
    if let Some(time) = named("time") {
        push_argument(&time.to_string());
    }
    text
}

/// Returns the name of the argument that holds the text of an action, as the Python system names it.
pub(super) const fn text_argument(key: ActionKey, mode: InteractionMode) -> &'static str {
    match (key, mode) {
        (ActionKey::Type, InteractionMode::Coordinates) => Action::TEXT,
        _ => Action::CONTENT,
    }
}

/// Returns the action that replaces an unusable reply: a wait.
pub(super) fn wait_action() -> Action {
    new_action(ActionKey::Wait, Map::new())
}
