//! The tools and their schemas, named as in Playwright MCP.

use serde_json::{Map, Value, json};

/// Whether a tool changes the page.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    ReadOnly,
    Acting,
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn number(description: &str) -> Value {
    json!({"type": "number", "description": description})
}

fn element() -> Value {
    text("Human-readable description of the element")
}

fn element_ref() -> Value {
    text("The ref of the element, from the page snapshot")
}

fn tool(name: &str, kind: Kind, description: &str, properties: &Value, required: &[&str]) -> Value {
    json!({
        "name": name,
        "description": description,
        "inputSchema": {"type": "object", "properties": properties, "required": required},
        "annotations": {"readOnlyHint": kind == Kind::ReadOnly, "openWorldHint": true},
    })
}

/// How many lines of text a page is read by default.
pub(super) const DEFAULT_TEXT_LINES: usize = 200;

/// Lists the tools. A stateless client names its session with every call, so its tools have an argument for it.
pub(crate) fn list(has_task: bool, is_stateless: bool) -> Vec<Value> {
    use Kind::{Acting, ReadOnly};
    let mut tools = vec![
        tool(
            "browser_navigate",
            Acting,
            "Navigate to a URL",
            &json!({"url": text("The URL to navigate to")}),
            &["url"],
        ),
        tool("browser_navigate_back", Acting, "Go back to the previous page", &json!({}), &[]),
        tool("browser_navigate_forward", Acting, "Go forward to the next page", &json!({}), &[]),
        tool(
            "browser_snapshot",
            ReadOnly,
            "Capture a snapshot of the current page: its address and the elements that can be used, with their refs. Better than a screenshot",
            &json!({}),
            &[],
        ),
        tool(
            "browser_get_text",
            ReadOnly,
            "Read the visible text of the current page",
            &json!({"lines": {"type": "number", "default": DEFAULT_TEXT_LINES, "description": "The number of lines to read from the start"}}),
            &[],
        ),
        tool(
            "browser_take_screenshot",
            ReadOnly,
            "Take a screenshot of the current page. The numbers on it are the refs of elements",
            &json!({"type": {"type": "string", "enum": ["png", "jpeg"], "default": "png", "description": "The image format"}}),
            &[],
        ),
        tool(
            "browser_click",
            Acting,
            "Click an element of the page",
            &json!({
                "element": element(), "ref": element_ref(),
                "doubleClick": {"type": "boolean", "description": "Whether to double-click"},
                "button": {"type": "string", "enum": ["left", "right", "middle"], "description": "The button to click, left by default"},
                "modifiers": {"type": "array", "items": {"type": "string"}, "description": "Keys to hold, such as Shift"},
            }),
            &["ref"],
        ),
        tool(
            "browser_type",
            Acting,
            "Type text into an editable element, in place of what it contains",
            &json!({
                "element": element(), "ref": element_ref(), "text": text("The text to type"),
                "submit": {"type": "boolean", "description": "Whether to press Enter afterwards"},
            }),
            &["ref", "text"],
        ),
        tool(
            "browser_press_key",
            Acting,
            "Press a key or a combination of keys",
            &json!({"key": text("Such as Enter, ArrowLeft, a or Control+a")}),
            &["key"],
        ),
        tool(
            "browser_hover",
            Acting,
            "Move the mouse over an element",
            &json!({"element": element(), "ref": element_ref()}),
            &["ref"],
        ),
        tool(
            "browser_select_option",
            Acting,
            "Select an option of a list by the ref of the option",
            &json!({"element": element(), "ref": element_ref()}),
            &["ref"],
        ),
        tool(
            "browser_drag",
            Acting,
            "Drag one element to another",
            &json!({"startElement": element(), "startRef": element_ref(), "endElement": element(), "endRef": element_ref()}),
            &["startRef", "endRef"],
        ),
        tool(
            "browser_mouse_click_xy",
            Acting,
            "Click at a position of the page",
            &json!({"element": element(), "x": number("X coordinate in pixels"), "y": number("Y coordinate in pixels")}),
            &["x", "y"],
        ),
        tool(
            "browser_mouse_wheel",
            Acting,
            "Scroll the page with the mouse wheel",
            &json!({"deltaX": number("Pixels to the right"), "deltaY": number("Pixels down")}),
            &[],
        ),
        tool(
            "browser_wait_for",
            ReadOnly,
            "Wait for a time, or until a text appears or disappears",
            &json!({
                "time": number("The time to wait in seconds"), "text": text("The text to wait for"),
                "textGone": text("The text that must disappear"),
            }),
            &[],
        ),
        tool(
            "browser_tabs",
            Acting,
            "List, create, close or select a tab",
            &json!({
                "action": {"type": "string", "enum": ["list", "new", "close", "select"], "description": "What to do"},
                "index": number("The tab to close or select, counted from 0; without it, the current tab is closed"),
                "url": text("The URL to open in the new tab"),
            }),
            &["action"],
        ),
        tool(
            "browser_file_upload",
            Acting,
            "Choose files in the file chooser that is open, or that a click on the element opens",
            &json!({
                "files": {
                    "type": "array", "description": "The files",
                    "items": {"type": "object", "required": ["name", "content"], "properties": {
                        "name": text("The name of the file"), "content": text("The content in base64"),
                    }},
                },
                "paths": {
                    "type": "array", "items": {"type": "string"},
                    "description": "Absolute paths of files on the machine of this server, if it was started by the client",
                },
                "ref": element_ref(),
            }),
            &[],
        ),
        tool(
            "browser_close",
            Acting,
            if has_task {
                "Close the browser. This ends the episode without an answer"
            } else {
                "Close the browser. The next tool call opens a new one"
            },
            &json!({}),
            &[],
        ),
    ];
    if has_task {
        tools.push(tool("task_goal", ReadOnly, "Get the task to solve in this session", &json!({}), &[]));
        tools.push(tool(
            "task_submit",
            Acting,
            "Submit the final answer to the task. It is judged, and the session's episode ends",
            &json!({"answer": text("The answer to the task")}),
            &["answer"],
        ));
    }
    if is_stateless {
        tools.iter_mut().for_each(add_session_argument);
    }
    tools
}

/// The argument in which a stateless client names its session.
pub(super) const SESSION_ARGUMENT: &str = "session";

fn add_session_argument(tool: &mut Value) {
    let described = text("The session id that the first tool call returned; omit it to start a new browser");
    if let Some(properties) = tool.pointer_mut("/inputSchema/properties").and_then(Value::as_object_mut) {
        properties.insert(SESSION_ARGUMENT.to_owned(), described);
    }
}

/// Takes the session out of the arguments of a stateless call.
pub(super) fn take_session(arguments: &mut Map<String, Value>) -> Option<String> {
    match arguments.shift_remove(SESSION_ARGUMENT)? {
        Value::String(session) if !session.is_empty() => Some(session),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(has_task: bool) -> Vec<String> {
        list(has_task, false).iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn task_tools_exist_only_with_a_task() {
        assert!(!names(false).contains(&"task_submit".to_owned()));
        assert!(names(true).contains(&"task_submit".to_owned()));
    }

    #[test]
    fn required_arguments_are_described() {
        for tool in list(true, true) {
            let schema = &tool["inputSchema"];
            for name in schema["required"].as_array().unwrap() {
                assert!(schema["properties"].get(name.as_str().unwrap()).is_some(), "{tool}");
            }
            assert!(schema["properties"].get(SESSION_ARGUMENT).is_some());
        }
        assert!(list(true, false).iter().all(|tool| !tool.to_string().contains("session id")));
    }
}
