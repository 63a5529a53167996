//! The schemas of session options and of a storage state.

use proto::session_options::{Permission, ResourceType};
use serde_json::{Value, json};

/// The schema of the body of `/get`. A test compares its names with those that are parsed.
pub(super) fn options() -> Value {
    let host = r"^(\*\.)?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$";
    let number = |min: f64, max: f64| json!({"type": "number", "minimum": min, "maximum": max});
    let integer = |min: u32, max: u32| json!({"type": "integer", "minimum": min, "maximum": max});
    let object = |properties: Value, required: Value| json!({"type": ["object", "null"], "properties": properties, "required": required, "additionalProperties": false});
    let text =
        |pattern: &str, max: u32| json!({"type": ["string", "null"], "pattern": pattern, "maxLength": max});
    let header = r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$";
    let name = json!({"type": ["string", "null"], "minLength": 1, "maxLength": 500});
    let names = json!({"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 500}, "maxItems": 200});
    let properties = json!({
        "viewport": object(json!({"width": integer(200, 3840), "height": integer(200, 2160)}), json!(["width", "height"])),
        "device_scale_factor": {"anyOf": [number(0.5, 4.0), {"type": "null"}]},
        "locale": text("^[A-Za-z0-9]{1,8}(-[A-Za-z0-9]{1,8})*$", 35),
        "timezone_id": text("^[A-Za-z0-9/_+-]+$", 60),
        "color_scheme": {"enum": ["light", "dark", "no-preference", null]},
        "geolocation": object(
            json!({"latitude": number(-90.0, 90.0), "longitude": number(-180.0, 180.0), "accuracy": number(0.0, 1e6)}),
            json!(["latitude", "longitude"]),
        ),
        "user_agent": text("^[^\\u0000-\\u001f\\u007f-\\u009f]+$", 500),
        "extra_http_headers": {
            "type": ["object", "null"], "maxProperties": 50, "propertyNames": {"pattern": header, "maxLength": 100},
            "additionalProperties": {"type": "string", "maxLength": 8192, "pattern": "^[\\t\\u0020-\\u007e]*$"},
        },
        "permissions": {"type": ["array", "null"], "items": {"enum": Permission::NAMES}},
        "blocked_hosts": {"type": ["array", "null"], "items": {"type": "string", "pattern": host, "maxLength": 253}, "maxItems": 1000},
        "blocked_resource_types": {"type": ["array", "null"], "items": {"enum": ResourceType::NAMES}},
        "proxy": object(
            json!({"server": {"type": "string", "pattern": "^(http://)?[A-Za-z0-9.-]+:[1-9][0-9]{0,3}/?$"}, "username": {"type": ["string", "null"]}, "password": {"type": ["string", "null"]}}),
            json!(["server"]),
        ),
        "storage_state": {"anyOf": [{"$ref": "#/components/schemas/StorageState"}, {"type": "null"}]},
        "tabs": {"enum": ["single", "many", null]},
        "downloads": {"enum": ["refuse", "keep", null]},
        "record": {"type": ["boolean", "null"]},
        "network": object(
            json!({
                "record": name, "replay": name, "on_miss": {"enum": ["fail", "404", 404, "live", null]}, "session": name,
                "seed": {"type": ["integer", "null"], "minimum": 0, "maximum": u32::MAX}, "clock": {"enum": ["virtual", "real", null]},
                "keep_secrets": {"type": "boolean"},
                "redact_headers": names, "redact_query": names, "redact_fields": names, "ignore_keys": names, "scored": {"type": ["boolean", "null"]}, "tunnel_hosts": names,
            }),
            json!([]),
        ),
    });
    json!({
        "type": "object", "properties": properties, "additionalProperties": false,
        "description": "How the browser looks to websites, and what the session starts with. The names are Playwright's.",
    })
}

/// The schema of Playwright's storage state.
pub(super) fn storage_state() -> Value {
    let text = json!({"type": "string"});
    let flag = json!({"type": "boolean"});
    let cookie = json!({
        "type": "object", "required": ["name", "value", "domain"],
        "properties": {
            "name": text, "value": text, "domain": text, "path": text, "expires": {"type": "number"}, "httpOnly": flag,
            "secure": flag, "sameSite": {"enum": ["Strict", "Lax", "None"]}, "partitionKey": {"type": ["string", "null"]},
        },
    });
    let item =
        json!({"type": "object", "required": ["name", "value"], "properties": {"name": text, "value": text}});
    let origin = json!({
        "type": "object", "required": ["origin"], "additionalProperties": false,
        "properties": {
            "origin": {"type": "string", "pattern": "^https?://[^/?#@\\\\\\s]+$"}, "localStorage": {"type": "array", "items": item},
            "indexedDB": {"type": "array", "items": {"type": "object"}}, "opfs": {"type": "array", "items": {"type": "object"}},
        },
    });
    json!({
        "type": "object", "additionalProperties": false,
        "properties": {
            "cookies": {"type": "array", "items": cookie, "maxItems": 3000}, "origins": {"type": "array", "items": origin, "maxItems": 100},
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schema_has_the_names_that_are_parsed() {
        let described: Vec<String> = options()["properties"].as_object().unwrap().keys().cloned().collect();
        assert_eq!(described, proto::SessionOptions::names().collect::<Vec<_>>());
    }
}
