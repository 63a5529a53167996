//! The pieces an operation's description is put together from.

use serde_json::{Map, Value, json};

/// Every way a call can fail, the same for all of them.
const FAILURES: [(&str, &str); 10] = [
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
];

pub(super) struct Operation {
    summary: &'static str,
    parameters: Vec<Value>,
    body: Option<Value>,
    answer: Value,
}

impl Operation {
    pub(super) fn new(summary: &'static str) -> Self {
        Self { summary, parameters: Vec::new(), body: None, answer: Value::Null }
    }

    pub(super) fn parameters(mut self, more: Vec<Value>) -> Self {
        self.parameters.extend(more);
        self
    }

    pub(super) fn body(mut self, schema: Value) -> Self {
        self.body = Some(schema);
        self
    }

    pub(super) fn answer(mut self, answer: Value) -> Self {
        self.answer = answer;
        self
    }

    pub(super) fn build(self) -> Value {
        let mut responses = Map::from_iter([("200".to_owned(), self.answer)]);
        responses.extend(FAILURES.map(|(status, why)| (status.to_owned(), failure(why))));
        let mut operation =
            json!({"summary": self.summary, "parameters": self.parameters, "responses": responses});
        if let Some(schema) = self.body {
            let content = json!({"application/json": {"schema": schema}});
            operation["requestBody"] = json!({"required": true, "content": content});
        }
        operation
    }
}

fn failure(why: &str) -> Value {
    json_answer(why, &reference("Error"))
}

/// A question that needs no key.
pub(super) fn open(summary: &str, may_fail: bool) -> Value {
    let mut responses = json!({
        "200": json_answer("Yes", &json!({"type": "object", "required": ["status"]})),
        "405": failure("Not with this method"),
    });
    if may_fail {
        responses["503"] =
            json_answer("Not now", &json!({"type": "object", "required": ["status", "detail"]}));
    }
    json!({"summary": summary, "security": [], "responses": responses})
}

pub(super) fn parameter(name: &str, required: bool, schema: Value, description: &str) -> Value {
    json!({"name": name, "in": "query", "required": required, "schema": schema, "description": description})
}

pub(super) fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

pub(super) fn json_answer(description: &str, schema: &Value) -> Value {
    json!({"description": description, "content": {"application/json": {"schema": schema}}})
}
