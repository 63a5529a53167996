//! What an episode's prompts depend on, and the definition of the tool that the model calls.

use proto::InteractionMode;
use serde_json::{Value, json};

use super::{dialect::DialectOptions, tool_call::tool_name};
use crate::config::{ModelType, PromptVersion};

/// The settings that an episode's prompts depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PromptOptions {
    pub mode: InteractionMode,
    pub model_type: ModelType,
    pub version: PromptVersion,
    pub include_ac_tree: bool,
    /// Number of past steps that are sent with screenshot and reply. Earlier steps are only summarized.
    pub window: usize,
    /// The dialect of the policy; `None` for the built-in actions.
    pub dialect: Option<DialectOptions>,
}

/// Returns the definition of the tool, with its parameters as a JSON schema.
pub fn tool_definition(mode: InteractionMode) -> Value {
    let (description, actions, target_name, target) = match mode {
        InteractionMode::Coordinates => (
            "Performs one browser action, at a position on the screenshot where the action needs one.",
            json!(["left_click", "type", "scroll", "wait", "go_back", "navigate", "answer"]),
            "coordinate",
            json!({
                "type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2,
                "description": "[x, y] on the 1000 by 1000 grid. Required for left_click and type. For scroll: the position to scroll at, instead of scrolling the whole page.",
            }),
        ),
        InteractionMode::SetOfMarks => (
            "Performs one browser action, on a numbered element of the screenshot where the action needs one.",
            json!(["click", "type", "hover", "scroll", "wait", "go_back", "navigate", "answer"]),
            "element_id",
            json!({
                "type": "string",
                "description": "The number of the element. Required for click, type and hover. For scroll: the element to scroll, instead of the whole page.",
            }),
        ),
    };
    let mut properties = json!({
        "action": {"type": "string", "enum": actions, "description": ACTIONS},
    });
    properties[target_name] = target;
    properties["text"] = json!({"type": "string", "description": "For type: the text to enter. For answer: the answer to the task."});
    properties["direction"] = json!({"type": "string", "enum": ["up", "down", "left", "right"], "description": "For scroll: the direction to scroll in."});
    properties["url"] = json!({"type": "string", "description": "For navigate: the address to open."});
    properties["time"] = json!({"type": "number", "description": "For wait: the number of seconds."});
    json!({"type": "function", "function": {
        "name": tool_name(mode),
        "description": description,
        "parameters": {"type": "object", "properties": properties, "required": ["action"]},
    }})
}

const ACTIONS: &str = "The action to take. wait gives the page more time; go_back returns to the previous page; navigate opens an \
                       address; answer ends the task.";
