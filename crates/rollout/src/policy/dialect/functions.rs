//! The functions of the dialects that call functions, as definitions for the field `tools` of a chat request.

use proto::dialect::Version;
use serde_json::{Map, Value, json};

fn function(name: &str, description: &str, properties: &Value, required: &[&str]) -> Value {
    json!({"type": "function", "function": {
        "name": name,
        "description": description,
        "parameters": {"type": "object", "properties": properties, "required": required},
    }})
}

/// The function `computer` with OpenAI's actions.
pub(super) fn openai() -> Vec<Value> {
    let integer = json!({"type": "integer"});
    let keys = json!({"type": "array", "items": {"type": "string"}});
    let point = json!({"type": "object", "properties": {"x": integer, "y": integer}, "required": ["x", "y"]});
    let action = json!({
        "type": "object",
        "properties": {
            "type": {"type": "string", "enum": [
                "click", "double_click", "drag", "keypress", "move", "screenshot", "scroll", "type", "wait",
            ]},
            "x": integer, "y": integer,
            "button": {"type": "string", "enum": ["left", "right", "wheel", "back", "forward"], "description": "For click. back and forward move in the history of the browser."},
            "keys": {"type": "array", "items": keys["items"], "description": "For keypress: the keys of a chord, such as [\"CTRL\", \"A\"]. For mouse actions: modifiers to hold."},
            "path": {"type": "array", "items": point, "description": "For drag: at least two points."},
            "scroll_x": {"type": "integer", "description": "For scroll: pixels to the right."},
            "scroll_y": {"type": "integer", "description": "For scroll: pixels down."},
            "text": {"type": "string", "description": "For type: the text to type into the focused element."},
        },
        "required": ["type"],
    });
    let actions = json!({"actions": {"type": "array", "items": action, "minItems": 1}});
    let description = "Carries out computer actions in order and returns a screenshot. Positions are pixels of the screenshot.";
    vec![function("computer", description, &actions, &["actions"])]
}

/// The function `computer` with the actions of Anthropic's tool. `zoom` and `cursor_position` are left out: the model gets a
/// screenshot in every turn.
pub(super) fn anthropic(version: Option<Version>) -> Vec<Value> {
    let mut actions = vec![
        "key",
        "type",
        "mouse_move",
        "left_click",
        "left_click_drag",
        "right_click",
        "middle_click",
        "double_click",
        "screenshot",
    ];
    if version != Some(Version::Computer20241022) {
        actions.extend(["left_mouse_down", "left_mouse_up", "scroll", "hold_key", "wait", "triple_click"]);
    }
    let pair = |description: &str| json!({"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2, "description": description});
    let properties = json!({
        "action": {"type": "string", "enum": actions},
        "coordinate": pair("[x, y] in pixels of the screenshot."),
        "start_coordinate": pair("For left_click_drag: where the drag starts."),
        "text": {"type": "string", "description": "For type: the text. For key and hold_key: a key or chord, such as ctrl+s. For clicks and scroll: modifiers to hold."},
        "scroll_direction": {"type": "string", "enum": ["up", "down", "left", "right"]},
        "scroll_amount": {"type": "integer", "description": "For scroll: notches of the mouse wheel."},
        "duration": {"type": "number", "description": "For wait and hold_key: seconds."},
    });
    let description = "Uses mouse and keyboard, and returns a screenshot.";
    vec![function("computer", description, &properties, &["action"])]
}

/// The predefined functions of Gemini's browser environment.
pub(super) fn gemini(version: Option<Version>) -> Vec<Value> {
    let legacy = version == Some(Version::GeminiLegacy);
    let functions = if legacy { GEMINI_LEGACY } else { GEMINI_CURRENT };
    // The legacy function takes a chord as text.
    let argument =
        |name: &str| if legacy && name == "keys" { json!({"type": "string"}) } else { gemini_argument(name) };
    functions
        .iter()
        .map(|(name, description, arguments)| {
            let mut properties: Map<String, Value> =
                arguments.iter().map(|name| ((*name).to_owned(), argument(name))).collect();
            if !legacy {
                properties.insert(
                    "intent".to_owned(),
                    json!({"type": "string", "description": "Why this is done."}),
                );
            }
            let optional =
                ["press_enter", "clear_before_typing", "seconds", "magnitude", "magnitude_in_pixels"];
            let required: Vec<&str> =
                arguments.iter().copied().filter(|name| !optional.contains(name)).collect();
            function(name, description, &properties.into(), &required)
        })
        .collect()
}

fn gemini_argument(name: &str) -> Value {
    match name {
        "text" | "key" | "url" => json!({"type": "string"}),
        "press_enter" | "clear_before_typing" => json!({"type": "boolean"}),
        "keys" => json!({"type": "array", "items": {"type": "string"}}),
        "direction" => json!({"type": "string", "enum": ["up", "down", "left", "right"]}),
        "seconds" => json!({"type": "integer"}),
        _ => json!({"type": "integer", "minimum": 0, "maximum": 999}),
    }
}

type GeminiFunction = (&'static str, &'static str, &'static [&'static str]);

const GEMINI_CURRENT: &[GeminiFunction] = &[
    ("click", "Clicks.", &["x", "y"]),
    ("double_click", "Double-clicks.", &["x", "y"]),
    ("triple_click", "Triple-clicks.", &["x", "y"]),
    ("middle_click", "Clicks with the middle button.", &["x", "y"]),
    ("right_click", "Clicks with the right button.", &["x", "y"]),
    ("mouse_down", "Presses the left button and holds it.", &["x", "y"]),
    ("mouse_up", "Releases the left button.", &["x", "y"]),
    ("move", "Moves the mouse.", &["x", "y"]),
    ("type", "Types into the focused element.", &["text", "press_enter"]),
    ("drag_and_drop", "Drags from one point to another.", &["start_x", "start_y", "end_x", "end_y"]),
    ("wait", "Waits.", &["seconds"]),
    ("press_key", "Presses a key.", &["key"]),
    ("key_down", "Presses a key and holds it.", &["key"]),
    ("key_up", "Releases a key.", &["key"]),
    ("hotkey", "Presses keys together.", &["keys"]),
    ("take_screenshot", "Takes a screenshot.", &[]),
    ("scroll", "Scrolls at a point.", &["x", "y", "direction", "magnitude_in_pixels"]),
    ("go_back", "Goes back in the history.", &[]),
    ("navigate", "Opens an address.", &["url"]),
    ("go_forward", "Goes forward in the history.", &[]),
];

const GEMINI_LEGACY: &[GeminiFunction] = &[
    ("open_web_browser", "Shows the browser, which is open.", &[]),
    ("wait_5_seconds", "Waits five seconds.", &[]),
    ("go_back", "Goes back in the history.", &[]),
    ("go_forward", "Goes forward in the history.", &[]),
    ("search", "Opens a search engine.", &[]),
    ("navigate", "Opens an address.", &["url"]),
    ("click_at", "Clicks.", &["x", "y"]),
    ("hover_at", "Moves the mouse.", &["x", "y"]),
    (
        "type_text_at",
        "Clicks, clears the field and types.",
        &["x", "y", "text", "press_enter", "clear_before_typing"],
    ),
    ("key_combination", "Presses keys together, such as control+c.", &["keys"]),
    ("scroll_document", "Scrolls the page.", &["direction"]),
    ("scroll_at", "Scrolls at a point.", &["x", "y", "direction", "magnitude"]),
    ("drag_and_drop", "Drags from one point to another.", &["x", "y", "destination_x", "destination_y"]),
];
