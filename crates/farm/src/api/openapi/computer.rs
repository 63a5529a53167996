//! The schemas of `/computer`.

use proto::dialect::{Dialect, Version};
use serde_json::{Map, Value, json};

use super::operation::json_response;

/// The schema of the body; `address` identifies the instance.
pub(super) fn request(address: Map<String, Value>) -> Value {
    let mut required: Vec<String> = address.keys().cloned().collect();
    required.extend(["dialect".to_owned(), "action".to_owned()]);
    let mut properties = address;
    let side = json!({"type": "integer", "minimum": 64, "maximum": 4096});
    let versions: Vec<Value> =
        Version::ALL.into_iter().map(|version| version.as_str().into()).chain([Value::Null]).collect();
    let described = json!({
        "dialect": {"enum": Dialect::ALL.map(Dialect::as_str)},
        "version": {"enum": versions, "description": "The version of the dialect; the default accepts the actions of all versions"},
        "action": {
            "type": ["object", "array", "string"], "items": {},
            "description": "What the model emitted: the provider's item, message or list of them, one action, or text",
        },
        "display": {
            "type": ["object", "null"], "required": ["width", "height"], "properties": {"width": side, "height": side},
            "additionalProperties": false,
            "description": "The size of the screenshots that the model is shown; default: the viewport, whose aspect ratio it must have",
        },
        "acknowledge_safety_checks": {
            "type": ["boolean", "null"], "default": false,
            "description": "Carry out calls with pending safety checks, and acknowledge them",
        },
    });
    properties.extend(described.as_object().cloned().unwrap_or_default());
    json!({"type": "object", "required": required, "properties": properties, "additionalProperties": false})
}

pub(super) fn response() -> Value {
    let or_null = |properties: Value, required: &[&str]| json!({"type": ["object", "null"], "properties": properties, "required": required});
    let text = json!({"type": "string"});
    let properties = json!({
        "output": {"type": ["object", "array", "null"], "items": {}, "description": "What to send back to the model, in its dialect"},
        "commands": {"type": "array", "items": {"type": "object"}, "description": "The commands that were carried out"},
        "finished": or_null(json!({"answer": text, "success": {"type": "boolean"}}), &["answer", "success"]),
        "error": or_null(json!({"code": text, "detail": text}), &["code", "detail"]),
        "screenshot": {
            "type": "object", "required": ["format", "width", "height", "data"],
            "properties": {"format": {"const": "png"}, "width": {"type": "integer"}, "height": {"type": "integer"}, "data": text},
        },
        "scale": {
            "type": "object", "required": ["x", "y"], "properties": {"x": {"type": "number"}, "y": {"type": "number"}},
            "description": "Pixels of the screenshot for each CSS pixel",
        },
        "metadata": {"type": "object", "required": ["title", "url"], "properties": {"title": text, "url": text}},
    });
    let required: Vec<&String> = properties.as_object().into_iter().flat_map(Map::keys).collect();
    let schema = json!({"type": "object", "required": required, "properties": properties});
    json_response("The result of the turn; `error` is set if it was not carried out completely", &schema)
}
