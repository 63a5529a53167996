//! A request for a chat completion.

use serde_json::{Map, Value, json};

use super::Message;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChatRequest {
    pub model: String,
    pub messages: Vec<Message>,
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    pub top_k: Option<i64>,
    pub min_p: Option<f64>,
    pub max_tokens: Option<u32>,
    /// How closely the server looks at images: `low`, `high` or `auto`. Not every server knows this setting.
    pub image_detail: Option<&'static str>,
    pub logprobs: bool,
    /// Asks vLLM for the token ids of prompt and completion.
    pub return_token_ids: bool,
    /// Further fields that a server understands.
    pub extra: Map<String, Value>,
}

impl ChatRequest {
    pub fn has_images(&self) -> bool {
        self.messages.iter().any(|message| message.images().next().is_some())
    }

    /// Returns the request without its messages.
    pub(super) fn settings(&self) -> Map<String, Value> {
        let mut fields = Map::new();
        fields.insert("model".into(), json!(self.model));
        let numbers = [
            ("temperature", self.temperature.map(Value::from)),
            ("top_p", self.top_p.map(Value::from)),
            ("top_k", self.top_k.map(Value::from)),
            ("min_p", self.min_p.map(Value::from)),
            ("max_tokens", self.max_tokens.map(Value::from)),
        ];
        for (name, value) in numbers {
            fields.extend(value.map(|value| (name.to_owned(), value)));
        }
        for (name, wanted) in [("logprobs", self.logprobs), ("return_token_ids", self.return_token_ids)] {
            if wanted {
                fields.insert(name.into(), json!(true));
            }
        }
        fields.extend(self.extra.clone());
        fields
    }
}
