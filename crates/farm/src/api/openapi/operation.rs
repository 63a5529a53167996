//! Building blocks for the description of an operation.

use serde_json::{Map, Value, json};

/// The error responses that every operation can return.
const ERRORS: [(&str, &str); 10] = [
    ("400", "The request is invalid; `detail` explains why"),
    ("401", "The API key is missing or wrong"),
    ("404", "There is nothing at this path"),
    ("405", "The method is not allowed"),
    ("413", "The body is too large"),
    ("422", "The element does not exist, or the page did not load"),
    ("500", "The browser of the lease is lost, or an internal error"),
    ("502", "The node cannot be reached"),
    ("503", "All instances are leased, or the farm is stopping"),
    ("504", "The page did not answer in time"),
];

pub(super) struct Operation {
    /// Unique in a document; generated clients name their functions after it.
    id: &'static str,
    summary: &'static str,
    parameters: Vec<Value>,
    body: Option<Value>,
    body_required: bool,
    body_type: &'static str,
    response: Value,
}

impl Operation {
    pub(super) fn new(id: &'static str, summary: &'static str) -> Self {
        Self {
            id,
            summary,
            parameters: Vec::new(),
            body: None,
            body_required: true,
            body_type: "application/json",
            response: Value::Null,
        }
    }

    pub(super) fn parameters(mut self, more: Vec<Value>) -> Self {
        self.parameters.extend(more);
        self
    }

    pub(super) fn body(mut self, schema: Value) -> Self {
        self.body = Some(schema);
        self
    }

    pub(super) fn optional_body(self, schema: Value) -> Self {
        Self { body_required: false, ..self.body(schema) }
    }

    /// A body of any bytes.
    pub(super) fn file_body(self) -> Self {
        let schema = json!({"type": "string", "format": "binary"});
        Self { body_type: "application/octet-stream", ..self.body(schema) }
    }

    pub(super) fn response(mut self, response: Value) -> Self {
        self.response = response;
        self
    }

    pub(super) fn build(self) -> Value {
        let mut responses = Map::from_iter([("200".to_owned(), self.response)]);
        responses.extend(ERRORS.map(|(status, description)| (status.to_owned(), error(description))));
        let mut operation = json!({
            "operationId": self.id, "summary": self.summary, "parameters": self.parameters, "responses": responses,
        });
        if let Some(schema) = self.body {
            let content = json!({self.body_type: {"schema": schema}});
            operation["requestBody"] = json!({"required": self.body_required, "content": content});
        }
        operation
    }
}

fn error(description: &str) -> Value {
    json_response(description, &reference("Error"))
}

/// Describes an operation that needs no key.
pub(super) fn public(id: &str, summary: &str, may_fail: bool) -> Value {
    let object = |required: &[&str]| {
        let properties = json!({"status": {"type": "string"}, "detail": {"type": "string"}});
        json!({"type": "object", "required": required, "properties": properties})
    };
    let mut responses = json!({
        "200": json_response("Yes", &object(&["status"])),
        "405": error("The method is not allowed"),
    });
    if may_fail {
        responses["503"] = json_response("Not now", &object(&["status", "detail"]));
    }
    json!({"operationId": id, "summary": summary, "security": [], "responses": responses})
}

pub(super) fn parameter(name: &str, required: bool, schema: &Value, description: &str) -> Value {
    json!({"name": name, "in": "query", "required": required, "schema": schema, "description": description})
}

pub(super) fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

pub(super) fn json_response(description: &str, schema: &Value) -> Value {
    json!({"description": description, "content": {"application/json": {"schema": schema}}})
}
