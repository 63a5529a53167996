//! Parameters, request bodies and responses, by tier.

use serde_json::{Map, Value, json};

use super::{
    Tier, commands,
    operation::{json_response, parameter, reference},
};
use crate::recording::RecordingPart;

/// The schema of a name that `/get` returned.
pub(super) fn name() -> Value {
    json!({"type": "string", "minLength": 1})
}

fn binary() -> Value {
    json!({"type": "string", "format": "binary"})
}

fn modes() -> Value {
    json!(["set_of_marks", "coordinates"])
}

pub(super) fn get_parameters() -> Vec<Value> {
    let lifetime = "Minutes without a request after which the lease ends; each node has its own maximum, which 0 stands for";
    let wait = "Seconds to wait in the queue while all instances are leased. Default: a few seconds if an instance is just starting, else none";
    vec![
        parameter("lifetime_mins", false, &json!({"type": "integer", "minimum": 0, "default": 60}), lifetime),
        parameter("wait_secs", false, &json!({"type": "number", "minimum": 0, "maximum": 3600}), wait),
        parameter(
            "idempotency_key",
            false,
            &json!({"type": "string", "maxLength": 200}),
            "A repeated request with the same key gets the same lease",
        ),
    ]
}

pub(super) fn fork_parameters() -> Vec<Value> {
    let steps = "How many of its commands are carried out again; default: all";
    let mut all = get_parameters();
    all.push(parameter("steps", false, &json!({"type": "integer", "minimum": 0}), steps));
    all
}

pub(super) fn screenshot_parameters() -> Vec<Value> {
    let mode = json!({"type": "string", "enum": modes(), "default": "set_of_marks"});
    let format = json!({"type": "string", "enum": ["png", "jpeg", "jpg", "webp"], "default": "png"});
    vec![
        parameter(
            "interaction_mode",
            false,
            &mode,
            "With numbered marks (set_of_marks) or without (coordinates)",
        ),
        parameter("format", false, &format, "Image format"),
    ]
}

pub(super) fn screenshot() -> Value {
    let schema = json!({"schema": binary()});
    let content = json!({"image/png": schema, "image/jpeg": schema, "image/webp": schema});
    json!({"description": "A screenshot of the viewport", "content": content})
}

/// The path parameter of `/files/{name}`.
pub(super) fn file_name() -> Value {
    let schema = json!({"type": "string", "minLength": 1, "maxLength": 200});
    json!({"name": "name", "in": "path", "required": true, "schema": schema, "description": "The name of the file"})
}

pub(super) fn files() -> Value {
    let file = json!({
        "type": "object", "required": ["name", "size", "kind"],
        "properties": {
            "name": name(), "size": {"type": "integer", "minimum": 0}, "kind": {"enum": ["upload", "download"]},
            "url": {"type": "string"}, "state": {"enum": ["in_progress", "complete", "failed", "too_large"]},
        },
    });
    let schema = json!({"type": "object", "required": ["files"], "properties": {"files": {"type": "array", "items": file}}});
    json_response("The files", &schema)
}

pub(super) fn file_content() -> Value {
    json!({"description": "The content", "content": {"application/octet-stream": {"schema": binary()}}})
}

pub(super) fn recording_name() -> Value {
    let names: Vec<&str> = RecordingPart::ALL.into_iter().map(RecordingPart::name).collect();
    json!({"name": "name", "in": "path", "required": true, "schema": {"enum": names}, "description": "The part"})
}

pub(super) fn network_report() -> Value {
    let count = json!({"type": "integer", "minimum": 0});
    let counts = json!({
        "type": "object", "required": ["exact", "normalised", "scored", "missed"],
        "properties": {"exact": count, "normalised": count, "scored": count, "missed": count},
    });
    let request = json!({
        "type": "object", "required": ["method", "url", "match"],
        "properties": {
            "method": {"type": "string"}, "url": {"type": "string"},
            "match": {"enum": ["exact", "normalised", "scored", "missed"]}, "score": {"type": "number"},
        },
    });
    let schema = json!({
        "type": "object", "required": ["recorded", "unrecorded", "tunnelled", "matches", "sites", "requests"],
        "properties": {
            "record": {"type": "string"}, "replay": {"type": "string"}, "recorded": count, "unrecorded": count,
            "tunnelled": {"type": "array", "items": {"type": "string"}}, "matches": counts,
            "sites": {"type": "object", "additionalProperties": counts},
            "requests": {"type": "array", "items": request, "maxItems": 2000},
        },
    });
    json_response("What was recorded, and how requests were answered", &schema)
}

pub(super) fn recording() -> Value {
    let content: Map<String, Value> = RecordingPart::ALL
        .into_iter()
        .map(|part| {
            let schema = if part == RecordingPart::Frames { binary() } else { json!({}) };
            (part.content_type().to_owned(), json!({ "schema": schema }))
        })
        .collect();
    json!({"description": "The part so far: index, JPEG frames, console messages as JSON lines, or requests as HAR", "content": content})
}

pub(super) fn metrics() -> Value {
    json!({"description": "Metrics in the OpenMetrics text format", "content": {"application/openmetrics-text": {"schema": {"type": "string"}}}})
}

/// The response of `/get`.
pub(super) fn lease(tier: Tier) -> Value {
    let mut properties = Map::from_iter([("instance_id".to_owned(), name())]);
    if tier == Tier::Master {
        properties.insert("node".into(), name());
    }
    let required: Vec<String> = properties.keys().cloned().collect();
    let addresses = [
        ("cdp_url", "Where CDP clients connect; contains a secret. Absent if the node has no CDP endpoint"),
        (
            "live_url",
            "Where a person can watch the lease; contains a secret. Absent if the node has no live view",
        ),
        ("live_control_url", "Where a person can watch the lease and act in it; contains another secret"),
    ];
    for (field, description) in addresses {
        properties.insert(field.into(), json!({"type": "string", "description": description}));
    }
    json_response("The lease", &json!({"type": "object", "required": required, "properties": properties}))
}

pub(super) fn drained() -> Value {
    let schema = json!({
        "type": "object", "required": ["status", "draining", "in_use"],
        "properties": {
            "status": {"const": "success"}, "draining": {"type": "boolean"}, "id": {"type": "string"}, "in_use": {"type": "integer", "minimum": 0},
        },
    });
    json_response("Progress of draining", &schema)
}

pub(super) fn info(tier: Tier) -> Value {
    let ids = json!({"type": "array", "items": name()});
    let count = json!({"type": "integer", "minimum": 0});
    let schema = match tier {
        Tier::Master => {
            let properties = json!({
                "url": name(), "hash": name(), "healthy": {"type": "boolean"}, "capacity": count, "available": count,
                "instances": ids, "starting": count, "dead": count,
                "held_back": {"type": "string"}, "dead_because": {"type": "string"}, "version": {"type": "string"}, "draining": {"type": "boolean"}, "id": {"type": "string"},
            });
            let required = json!(["url", "hash", "healthy", "capacity", "available", "instances"]);
            let node = json!({"type": "object", "required": required, "properties": properties});
            json!({"type": "object", "required": ["nodes"], "properties": {"nodes": {"type": "array", "items": node}}})
        }
        Tier::Node => json!({
            "type": "object", "required": ["available", "capacity", "in_use"],
            "properties": {
                "available": count, "capacity": count, "in_use": ids, "starting": count, "dead": count,
                "waiting": count, "held_back": {"type": "string"}, "dead_because": {"type": "string"}, "version": {"type": "string"}, "draining": {"type": "boolean"}, "id": {"type": "string"},
            },
        }),
        Tier::Instance => json!({
            "type": "object", "required": ["in_lease", "ready"],
            "properties": {"in_lease": {"type": "boolean"}, "ready": {"type": "boolean"}},
        }),
    };
    json_response("Capacity and leases", &schema)
}

/// The properties of a body that identify the instance.
pub(super) fn address(tier: Tier) -> Map<String, Value> {
    let mut address = Map::from_iter([("instance_id".to_owned(), name())]);
    if tier == Tier::Master {
        address.insert("node".into(), name());
    }
    address
}

pub(super) fn execute(tier: Tier) -> Value {
    if tier != Tier::Master {
        return commands::schema();
    }
    let mut properties = address(tier);
    properties.extend(commands::properties());
    json!({
        "type": "object", "required": ["node", "instance_id"], "properties": properties,
        "minProperties": 3, "maxProperties": 3, "additionalProperties": false,
    })
}

pub(super) fn observe(tier: Tier, step: bool) -> Value {
    let mut properties = address(tier);
    if step {
        properties.insert("command".into(), reference("Command"));
    }
    let required: Vec<String> = properties.keys().cloned().collect();
    let include = json!({"enum": ["screenshot", "metadata", "ac_tree", "rects"]});
    properties.extend([
        ("interaction_mode".to_owned(), json!({"enum": ["set_of_marks", "coordinates", null]})),
        ("format".to_owned(), json!({"enum": ["png", "jpeg", "jpg", "webp", null]})),
        (
            "include".to_owned(),
            json!({"type": "array", "items": include, "default": ["screenshot", "metadata"]}),
        ),
    ]);
    json!({"type": "object", "required": required, "properties": properties, "additionalProperties": false})
}

pub(super) fn observed() -> Value {
    let any_object = json!({"type": ["object", "null"], "additionalProperties": true});
    let object = |properties: Value, required: &[&str]| json!({"type": ["object", "null"], "properties": properties, "required": required});
    let (text, count) = (json!({"type": "string"}), json!({"type": "integer", "minimum": 0}));
    let mut properties = json!({
        "result": any_object, "settled": {"type": "boolean"}, "settle_ms": count,
        "error": object(json!({"code": text, "detail": text}), &["code", "detail"]),
        "screenshot": object(
            json!({"format": {"enum": ["png", "jpeg", "webp"]}, "width": count, "height": count, "data": {"type": "string", "description": "The image in base64"}}),
            &["format", "width", "height", "data"],
        ),
        "metadata": object(json!({"title": text, "url": text}), &["title", "url"]),
        "ac_tree": {"type": ["string", "null"]}, "screenshot_info": any_object, "unchanged": {"type": "boolean"},
    });
    let required: Vec<String> = properties.as_object().into_iter().flat_map(Map::keys).cloned().collect();
    let tab = json!({
        "type": "object", "required": ["id", "title", "url", "current"],
        "properties": {"id": text, "title": text, "url": text, "current": {"type": "boolean"}},
    });
    properties["tabs"] =
        json!({"type": "array", "items": tab, "description": "Only for sessions with many tabs"});
    let schema = json!({"type": "object", "required": required, "properties": properties});
    let content =
        json!({"application/json": {"schema": schema}, "application/msgpack": {"schema": binary()}});
    json!({"description": "The observation", "content": content})
}
