//! The API's own description (OpenAPI 3.1), made from the same table of commands that requests are read with.

use proto::{Command, ErrorCode};
use serde_json::{Map, Value, json};

/// Which tier is described: they differ in `node`, in ids and in `/info`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    Master,
    Node,
    Instance,
}

/// The OpenAPI document of a tier.
pub fn document(tier: Tier) -> Value {
    let mut paths = Map::new();
    for (path, method, operation) in operations(tier) {
        paths.insert(path.to_owned(), json!({ method: operation }));
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": format!("webgym {}", match tier { Tier::Master => "master", Tier::Node => "node", Tier::Instance => "instance" }),
            "version": env!("CARGO_PKG_VERSION"),
            "description": "A farm of isolated browser sessions. Take one with /get, act with /execute or /step, look with /screenshot or /observe, give it back with /reset.",
        },
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "x-api-key"}},
            "schemas": {
                "Error": {
                    "type": "object", "required": ["detail", "code"],
                    "properties": {
                        "detail": {"type": "string"}, "code": {"type": "string", "enum": ErrorCode::ALL.map(ErrorCode::as_str)},
                        "status": {"type": "string"}, "message": {"type": "string"},
                    },
                },
                "Command": command_schema(),
                "Success": {"type": "object", "required": ["status"], "properties": {"status": {"const": "success"}}},
            },
        },
    })
}

fn operations(tier: Tier) -> Vec<(&'static str, &'static str, Value)> {
    let whom = |extra: Vec<Value>| -> Vec<Value> {
        let node = (tier == Tier::Master)
            .then(|| parameter("node", true, json!({"type": "string"}), "The node, as /get gave it"));
        let id = parameter("instance_id", true, json!({"type": "string"}), "The instance, as /get gave it");
        node.into_iter().chain([id]).chain(extra).collect()
    };
    let mode = parameter(
        "interaction_mode",
        false,
        json!({"enum": ["set_of_marks", "coordinates"], "default": "set_of_marks"}),
        "With or without numbered marks",
    );
    let format = parameter(
        "format",
        false,
        json!({"enum": ["png", "jpeg", "webp"], "default": "png"}),
        "The image format",
    );
    let image = json!({"description": "The viewport", "content": {
        "image/png": {"schema": binary()}, "image/jpeg": {"schema": binary()}, "image/webp": {"schema": binary()}}});
    vec![
        (
            "/get",
            "post",
            operation(
                "Take an instance",
                get_parameters(),
                None,
                json_answer("The lease", &got_schema(tier)),
            ),
        ),
        (
            "/reset",
            "post",
            operation(
                "Give an instance back; its slot is made clean",
                whom(vec![]),
                None,
                json_answer("Done", &reference("Success")),
            ),
        ),
        ("/screenshot", "get", operation("A picture of the page", whom(vec![mode, format]), None, image)),
        (
            "/execute",
            "post",
            operation(
                "Carry out one browser command and wait until the page has settled",
                if tier == Tier::Master { vec![] } else { whom(vec![]) },
                Some(execute_body(tier)),
                json_answer("The command's answer", &json!({"type": "object"})),
            ),
        ),
        (
            "/observe",
            "post",
            operation(
                "Look: screenshot, metadata and elements in one round trip",
                vec![],
                Some(observe_body(tier, false)),
                observed(),
            ),
        ),
        (
            "/step",
            "post",
            operation(
                "Act, settle and look in one round trip",
                vec![],
                Some(observe_body(tier, true)),
                observed(),
            ),
        ),
        (
            "/metadata",
            "get",
            operation(
                "The viewport's size",
                whom(vec![]),
                None,
                json_answer(
                    "Size",
                    &json!({
            "type": "object", "required": ["width", "height"], "properties": {"width": {"type": "integer"}, "height": {"type": "integer"}}}),
                ),
            ),
        ),
        (
            "/probe",
            "get",
            operation(
                "Is the browser behind the lease alive?",
                whom(vec![]),
                None,
                json_answer("It is", &reference("Success")),
            ),
        ),
        (
            "/info",
            "get",
            operation(
                "What there is and what is free",
                vec![],
                None,
                json_answer("State", &json!({"type": "object"})),
            ),
        ),
        (
            "/metrics",
            "get",
            operation(
                "Figures for Prometheus",
                vec![],
                None,
                json!({"description": "Figures", "content": {"application/openmetrics-text": {"schema": {"type": "string"}}}}),
            ),
        ),
        ("/healthz", "get", open("The process is up", false)),
        ("/readyz", "get", open("Instances can be had", true)),
    ]
}

fn parameter(name: &str, required: bool, schema: Value, description: &str) -> Value {
    json!({"name": name, "in": "query", "required": required, "schema": schema, "description": description})
}

fn get_parameters() -> Vec<Value> {
    vec![
        parameter(
            "lifetime_mins",
            false,
            json!({"type": "integer", "minimum": 1, "maximum": 60, "default": 60}),
            "Minutes without any request after which the lease ends",
        ),
        parameter(
            "wait_secs",
            false,
            json!({"type": "number", "minimum": 0, "maximum": 3600, "default": 0}),
            "How long to wait in line when all are taken",
        ),
        parameter(
            "idempotency_key",
            false,
            json!({"type": "string", "maxLength": 200}),
            "Asked again with the same key, the same lease is given",
        ),
    ]
}

fn operation(summary: &str, parameters: Vec<Value>, body: Option<Value>, success: Value) -> Value {
    let mut responses = Map::from_iter([("200".to_owned(), success)]);
    for (status, why) in [
        ("400", "The request is wrong; the sentence says how"),
        ("401", "The key is missing or wrong"),
        ("404", "There is nothing here"),
        ("405", "Not with this method"),
        ("413", "The body is too large"),
        ("422", "The element is not there, or the page did not load"),
        ("500", "The browser behind the lease is lost, or a part of ours is broken"),
        ("502", "The node cannot be reached"),
        ("503", "All instances are taken, or the farm is stopping"),
        ("504", "The page did not answer in time"),
    ] {
        responses.insert(
            status.to_owned(),
            json!({"description": why, "content": {"application/json": {"schema": reference("Error")}}}),
        );
    }
    let mut operation = json!({"summary": summary, "parameters": parameters, "responses": responses});
    if let Some(schema) = body {
        operation["requestBody"] =
            json!({"required": true, "content": {"application/json": {"schema": schema}}});
    }
    operation
}

fn open(summary: &str, may_fail: bool) -> Value {
    let mut responses = json!({"200": json_answer("Yes", &json!({"type": "object"}))});
    if may_fail {
        responses["503"] = json_answer("Not now", &json!({"type": "object"}));
    }
    responses["405"] = json!({"description": "Not with this method", "content": {"application/json": {"schema": reference("Error")}}});
    json!({"summary": summary, "security": [], "responses": responses})
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn binary() -> Value {
    json!({"type": "string", "format": "binary"})
}

fn json_answer(description: &str, schema: &Value) -> Value {
    json!({"description": description, "content": {"application/json": {"schema": schema}}})
}

fn got_schema(tier: Tier) -> Value {
    let mut schema = json!({"type": "object", "required": ["instance_id"], "properties": {"instance_id": {"type": "string"}}});
    if tier == Tier::Master {
        schema["required"] = json!(["instance_id", "node"]);
        schema["properties"]["node"] = json!({"type": "string"});
    }
    schema
}

fn address(tier: Tier) -> (Map<String, Value>, Vec<&'static str>) {
    let text = json!({"type": "string"});
    match tier {
        Tier::Master => (
            Map::from_iter([("node".into(), text.clone()), ("instance_id".into(), text)]),
            vec!["node", "instance_id"],
        ),
        Tier::Node | Tier::Instance => (Map::from_iter([("instance_id".into(), text)]), vec![]),
    }
}

fn execute_body(tier: Tier) -> Value {
    let command = command_schema();
    if tier != Tier::Master {
        return command;
    }
    let (address, required) = address(tier);
    let mut properties = address;
    if let Some(commands) = command["properties"].as_object() {
        properties.extend(commands.clone());
    }
    json!({"type": "object", "required": required, "properties": properties, "minProperties": 3, "maxProperties": 3, "additionalProperties": false})
}

fn command_schema() -> Value {
    let properties: Map<String, Value> = Command::names()
        .map(|name| {
            let arguments: Map<String, Value> = Command::accepted_arguments(name)
                .iter()
                .map(|argument| ((*argument).to_owned(), argument_schema(argument)))
                .collect();
            (
                name.to_owned(),
                json!({"type": "object", "properties": arguments, "additionalProperties": false}),
            )
        })
        .collect();
    json!({"type": "object", "properties": properties, "minProperties": 1, "maxProperties": 1, "additionalProperties": false})
}

fn argument_schema(name: &str) -> Value {
    match name {
        "url" | "value" => json!({"type": "string"}),
        "id" => json!({"type": ["string", "integer"]}),
        "press_enter" | "delete_existing" | "full_page" => json!({"type": "boolean"}),
        "direction" => json!({"enum": ["up", "down", "left", "right"]}),
        "keys" => json!({"type": "array", "items": {"type": "string"}, "minItems": 1}),
        "n_lines" => json!({"type": "integer", "minimum": 0}),
        "interaction_mode" => json!({"enum": ["set_of_marks", "coordinates"]}),
        _ => json!({"type": ["number", "string"]}),
    }
}

fn observe_body(tier: Tier, step: bool) -> Value {
    let (mut properties, mut required) = address(tier);
    properties.insert("instance_id".into(), json!({"type": "string"}));
    if !required.contains(&"instance_id") {
        required.push("instance_id");
    }
    if step {
        properties.insert("command".into(), reference("Command"));
        required.push("command");
    }
    properties.insert(
        "interaction_mode".into(),
        json!({"enum": ["set_of_marks", "coordinates"], "default": "set_of_marks"}),
    );
    properties.insert("format".into(), json!({"enum": ["png", "jpeg", "webp"], "default": "png"}));
    properties.insert("include".into(), json!({"type": "array", "items": {"enum": ["screenshot", "metadata", "ac_tree", "rects"]}, "default": ["screenshot", "metadata"]}));
    json!({"type": "object", "required": required, "properties": properties, "additionalProperties": false})
}

fn observed() -> Value {
    let schema = json!({
        "type": "object",
        "required": ["result", "error", "settled", "settle_ms", "screenshot", "metadata", "ac_tree", "screenshot_info", "unchanged"],
        "properties": {
            "result": {"type": ["object", "null"]}, "error": {"type": ["object", "null"]}, "settled": {"type": "boolean"},
            "settle_ms": {"type": "integer"}, "screenshot": {"type": ["object", "null"]}, "metadata": {"type": ["object", "null"]},
            "ac_tree": {"type": ["string", "null"]}, "screenshot_info": {"type": ["object", "null"]}, "unchanged": {"type": "boolean"},
        },
    });
    json!({"description": "What was seen", "content": {"application/json": {"schema": schema}, "application/msgpack": {"schema": binary()}}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_and_every_path_is_described() {
        for tier in [Tier::Master, Tier::Node, Tier::Instance] {
            let document = document(tier);
            for name in Command::names() {
                assert!(
                    document["components"]["schemas"]["Command"]["properties"][name].is_object(),
                    "{name}"
                );
            }
            for path in [
                "/get",
                "/reset",
                "/screenshot",
                "/execute",
                "/metadata",
                "/probe",
                "/info",
                "/observe",
                "/step",
            ] {
                assert!(document["paths"][path].is_object(), "{path}");
            }
        }
    }
}
