//! The tool `computer_use` of Qwen-VL: the names and types of its arguments are those of the models' training, the descriptions
//! are ours. A model that needs the trained sentences gets them from a prompt template of your own.

use proto::dialect::{Size, Version};
use serde_json::{Value, json};

/// The actions with their descriptions, and whether Qwen2.5-VL has them.
const ACTIONS: [(&str, &str, bool); 14] = [
    ("key", "Presses `keys` together, then releases them.", true),
    ("type", "Types `text` into the focused element.", true),
    ("mouse_move", "Moves the mouse to `coordinate`.", true),
    ("left_click", "Clicks at `coordinate`.", true),
    ("left_click_drag", "Drags from the position of the mouse to `coordinate`.", true),
    ("right_click", "Clicks with the right button at `coordinate`.", true),
    ("middle_click", "Clicks with the middle button at `coordinate`.", true),
    ("double_click", "Double-clicks at `coordinate`.", true),
    ("triple_click", "Triple-clicks at `coordinate`.", false),
    ("scroll", "Turns the mouse wheel by `pixels`.", true),
    ("hscroll", "Scrolls sideways by `pixels`.", false),
    ("wait", "Waits for `time` seconds.", true),
    ("terminate", "Ends the task with `status`.", true),
    ("answer", "Gives `text` as the answer.", false),
];

/// Returns the definition of the function, with the resolution that the model is told.
pub(super) fn definition(version: Option<Version>, resolution: Size) -> Value {
    let is_old = version == Some(Version::Qwen25);
    let known: Vec<_> = ACTIONS.iter().filter(|(_, _, in_old)| *in_old || !is_old).collect();
    let names: Vec<&str> = known.iter().map(|(name, _, _)| *name).collect();
    let mut actions = "What to do:".to_owned();
    for (name, text, _) in known {
        actions.extend(["\n* `", name, "`: ", text]);
    }
    let description = format!(
        "Operates a web page with mouse and keyboard. The screenshot is {} pixels wide and {} high. Find the position of an element on the newest screenshot and click its centre. If a page is still loading, wait and look again.",
        resolution.width, resolution.height
    );
    let text = if is_old { "For type." } else { "For type and answer." };
    let pixels = if is_old {
        "For scroll: positive is up, negative is down."
    } else {
        "For scroll: positive is up, negative is down. For hscroll: positive is right, negative is left."
    };
    json!({"type": "function", "function": {
        "name": "computer_use",
        "description": description,
        "parameters": {
            "properties": {
                "action": {"description": actions, "enum": names, "type": "string"},
                "keys": {"description": "For key.", "type": "array"},
                "text": {"description": text, "type": "string"},
                "coordinate": {"description": "[x, y]: pixels from the left and from the top edge.", "type": "array"},
                "pixels": {"description": pixels, "type": "number"},
                "time": {"description": "For wait.", "type": "number"},
                "status": {"description": "For terminate.", "type": "string", "enum": ["success", "failure"]},
            },
            "required": ["action"],
            "type": "object",
        },
    }})
}
