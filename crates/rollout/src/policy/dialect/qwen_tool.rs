//! The tool `computer_use` of Qwen-VL. The texts are those of the models' training, from `agent_function_call.py` of
//! QwenLM/Qwen2.5-VL and QwenLM/Qwen3-VL (Apache-2.0).

use proto::dialect::{Size, Version};
use serde_json::{Value, json};

const DESCRIPTION: &str = "Use a mouse and keyboard to interact with a computer, and take screenshots.
* This is an interface to a desktop GUI. You do not have access to a terminal or applications menu. You must click on desktop icons to start applications.
* Some applications may take time to start or process actions, so you may need to wait and take successive screenshots to see the results of your actions. E.g. if you click on Firefox and a window doesn't open, try wait and taking another screenshot.
* The screen's resolution is {RESOLUTION}.
* Whenever you intend to move the cursor to click on an element like an icon, you should consult a screenshot to determine the coordinates of the element before moving the cursor.
* If you tried clicking on a program or link but it failed to load, even after waiting, try adjusting your cursor position so that the tip of the cursor visually falls on the element that you want to click.
* Make sure to click any buttons, links, icons, etc with the cursor tip in the center of the element. Don't click boxes on their edges{EDGES}.";

/// The actions with their descriptions in Qwen2.5-VL and in Qwen3-VL; an empty one is not in that version.
const ACTIONS: [(&str, &str, &str); 14] = [
    (
        "key",
        "Performs key down presses on the arguments passed in order, then performs key releases in reverse order.",
        "Performs key down presses on the arguments passed in order, then performs key releases in reverse order.",
    ),
    ("type", "Type a string of text on the keyboard.", "Type a string of text on the keyboard."),
    (
        "mouse_move",
        "Move the cursor to a specified (x, y) pixel coordinate on the screen.",
        "Move the cursor to a specified (x, y) pixel coordinate on the screen.",
    ),
    (
        "left_click",
        "Click the left mouse button.",
        "Click the left mouse button at a specified (x, y) pixel coordinate on the screen.",
    ),
    (
        "left_click_drag",
        "Click and drag the cursor to a specified (x, y) pixel coordinate on the screen.",
        "Click and drag the cursor to a specified (x, y) pixel coordinate on the screen.",
    ),
    (
        "right_click",
        "Click the right mouse button.",
        "Click the right mouse button at a specified (x, y) pixel coordinate on the screen.",
    ),
    (
        "middle_click",
        "Click the middle mouse button.",
        "Click the middle mouse button at a specified (x, y) pixel coordinate on the screen.",
    ),
    (
        "double_click",
        "Double-click the left mouse button.",
        "Double-click the left mouse button at a specified (x, y) pixel coordinate on the screen.",
    ),
    (
        "triple_click",
        "",
        "Triple-click the left mouse button at a specified (x, y) pixel coordinate on the screen (simulated as double-click since it's the closest action).",
    ),
    (
        "scroll",
        "Performs a scroll of the mouse scroll wheel.",
        "Performs a scroll of the mouse scroll wheel.",
    ),
    ("hscroll", "", "Performs a horizontal scroll (mapped to regular scroll)."),
    (
        "wait",
        "Wait specified seconds for the change to happen.",
        "Wait specified seconds for the change to happen.",
    ),
    (
        "terminate",
        "Terminate the current task and report its completion status.",
        "Terminate the current task and report its completion status.",
    ),
    ("answer", "", "Answer a question."),
];

/// Returns the definition of the function, with the resolution that the model is told.
pub(super) fn definition(version: Option<Version>, resolution: Size) -> Value {
    let is_old = version == Some(Version::Qwen25);
    let resolution = format!("{}x{}", resolution.width, resolution.height);
    let description = DESCRIPTION
        .replace("{RESOLUTION}", &resolution)
        .replace("{EDGES}", if is_old { " unless asked" } else { "" });
    let texts = ACTIONS.map(|(name, old, new)| (name, if is_old { old } else { new }));
    let known: Vec<(&str, &str)> = texts.into_iter().filter(|(_, text)| !text.is_empty()).collect();
    let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
    let mut actions = "The action to perform. The available actions are:".to_owned();
    for (name, text) in &known {
        actions.extend(["\n* `", name, "`: ", text]);
    }
    let [text, coordinate, pixels] = if is_old {
        [
            "Required only by `action=type`.",
            " Required only by `action=mouse_move` and `action=left_click_drag`.",
            "",
        ]
    } else {
        ["Required only by `action=type` and `action=answer`.", "", " and `action=hscroll`"]
    };
    json!({"type": "function", "function": {
        "name": "computer_use",
        "description": description,
        "parameters": {
            "properties": {
                "action": {"description": actions, "enum": names, "type": "string"},
                "keys": {"description": "Required only by `action=key`.", "type": "array"},
                "text": {"description": text, "type": "string"},
                "coordinate": {
                    "description": format!("(x, y): The x (pixels from the left edge) and y (pixels from the top edge) coordinates to move the mouse to.{coordinate}"),
                    "type": "array",
                },
                "pixels": {
                    "description": format!("The amount of scrolling to perform. Positive values scroll up, negative values scroll down. Required only by `action=scroll`{pixels}."),
                    "type": "number",
                },
                "time": {"description": "The seconds to wait. Required only by `action=wait`.", "type": "number"},
                "status": {
                    "description": "The status of the task. Required only by `action=terminate`.", "type": "string",
                    "enum": ["success", "failure"],
                },
            },
            "required": ["action"],
            "type": "object",
        },
    }})
}
