//! The pages that describe the environment: its name, the schemas of actions, observations and state, and the OpenAPI document.

use proto::Command;
use serde_json::{Map, Value, json};

use crate::action::ACTION_TEXT;

/// The version of OpenEnv's HTTP interface that the OpenAPI document declares.
const INTERFACE_VERSION: &str = "1.0.0";

pub(super) fn metadata() -> Value {
    json!({
        "name": crate::ENVIRONMENT_NAME,
        "description": "Web tasks in real browsers: each session is an episode with a browser, a task and a reward.",
        "version": env!("CARGO_PKG_VERSION"),
        "author": null, "readme_content": null, "documentation_url": null,
    })
}

pub(super) fn schema() -> Value {
    json!({"action": action(), "observation": observation(), "state": state()})
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn action() -> Value {
    let commands = Command::names().collect::<Vec<_>>().join(", ");
    json!({
        "title": "WebAction", "type": "object",
        "description": format!(
            "One action. {ACTION_TEXT} accepts every form as text. Instead of it, an object may have answer (a string), tool_call \
             (the call of the prompts' tool), or exactly one command with its arguments: {commands}."
        ),
        "properties": {
            ACTION_TEXT: text(
                "BrowserGym calls such as click('12'), fill('3', 'text'), goto('https://…') and send_msg_to_user('answer'), where \
                 '12' is the number of an element; a reply of a model with a tool call; or an action as JSON."
            ),
            "metadata": {"type": "object", "additionalProperties": true, "description": "Not interpreted."},
        },
        "required": [ACTION_TEXT],
    })
}

fn observation() -> Value {
    json!({
        "title": "WebObservation", "type": "object",
        "properties": {
            "goal": text("The task."),
            "url": text("The address of the page."),
            "title": text("The title of the page."),
            "text": text("The numbered elements of the page, one per line."),
            "axtree_txt": text("The same as text."),
            "pruned_html": text("Always empty."),
            "error": text("Why the last action failed; empty if it did not."),
            "last_action_error": {"type": "boolean"},
            "result": {"description": "The result of a command that has one."},
            "screenshot_base64": text("The screenshot in base64, unless the reset asked for none."),
            "screenshot_format": {"type": "string", "enum": ["png", "jpeg", "webp"]},
            "done": {"type": "boolean"},
            "reward": {"type": ["number", "null"], "description": "Null after the end: the episode must be masked."},
            "metadata": {"type": "object", "additionalProperties": true},
        },
        "required": ["goal", "url", "text"],
    })
}

fn state() -> Value {
    json!({
        "title": "WebState", "type": "object", "additionalProperties": true,
        "properties": {
            "episode_id": {"type": ["string", "null"]},
            "step_count": {"type": "integer", "minimum": 0},
            "task_id": {"type": ["string", "null"]},
            "split": {"type": "string"},
            "goal": {"type": "string"},
            "current_url": {"type": "string"},
            "max_steps": {"type": ["integer", "null"]},
            "cum_reward": {"type": "number"},
            "done": {"type": "boolean"},
        },
    })
}

pub(super) fn openapi() -> Value {
    let described = |summary: &str, body: Option<Value>| {
        let mut operation = json!({
            "summary": summary,
            "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": {}}}}},
        });
        if let Some(body) = body {
            operation["requestBody"] =
                json!({"required": true, "content": {"application/json": {"schema": body}}});
        }
        operation
    };
    let get = |summary: &str| json!({"get": described(summary, None)});
    let post = |summary: &str, body: Value| json!({"post": described(summary, Some(body))});
    let split = json!({"split": {"type": "string"}});
    let of_split = json!({"type": "object", "properties": split, "required": ["split"]});
    let by_index = json!({
        "type": "object", "required": ["split", "index"],
        "properties": {"split": {"type": "string"}, "index": {"type": "integer"}},
    });
    let range = json!({
        "type": "object", "required": ["split"],
        "properties": {
            "split": {"type": "string"}, "start": {"type": ["integer", "null"]}, "stop": {"type": ["integer", "null"]},
        },
    });
    let mut paths = Map::new();
    let mut add = |path: &str, item: Value| paths.insert(path.to_owned(), item);
    add("/health", get("Check that the server runs"));
    add("/readyz", get("Check that episodes can start"));
    add("/metrics", get("Metrics for Prometheus"));
    add("/metadata", get("Name and description of the environment"));
    add("/schema", get("Schemas of actions, observations and state"));
    add("/list_environments", get("Names of the environments"));
    let name = crate::ENVIRONMENT_NAME;
    add(&format!("/{name}/splits"), get("List the splits"));
    add(&format!("/{name}/tasks"), post("List the tasks of a split", of_split.clone()));
    add(&format!("/{name}/num_tasks"), post("Count the tasks of a split", of_split));
    add(&format!("/{name}/task"), post("Get a task by its index", by_index));
    add(&format!("/{name}/task_range"), post("List a range of tasks", range));
    add("/mcp", post("MCP over streamable HTTP", json!({"type": "object"})));
    json!({
        "openapi": "3.1.0",
        "info": {"title": "webgym environment", "version": INTERFACE_VERSION},
        "paths": paths,
    })
}
