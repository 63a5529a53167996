//! A target as the browser describes it.

use serde_json::{Map, Value};

/// The description of a target of this tenant.
#[derive(Clone, Debug)]
pub(crate) struct Target(Map<String, Value>);

impl Target {
    pub(crate) fn new(info: Map<String, Value>) -> Self {
        Self(info)
    }

    pub(crate) fn text(&self, field: &str) -> &str {
        self.0.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    pub(crate) fn id(&self) -> &str {
        self.text("targetId")
    }

    pub(crate) fn kind(&self) -> &str {
        self.text("type")
    }

    pub(crate) fn context(&self) -> &str {
        self.text("browserContextId")
    }

    /// The description for a client. `attached` is about its own sessions: ours are always attached.
    pub(crate) fn describe(&self, attached: bool) -> Value {
        let mut info = self.0.clone();
        info.insert("attached".to_owned(), attached.into());
        Value::Object(info)
    }
}
