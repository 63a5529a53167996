//! Turns in the form of an OpenAI-compatible chat API: an assistant message, its `tool_calls`, or one of them.

use serde_json::{Map, Value, json};

use super::{
    DialectError, Form,
    output::{CallResult, Image, PageState},
    raw::{self, RawAction, RawCall, RawTurn},
    tagged_text,
};
use crate::text::cut;

/// Reads a turn if it has this form. `to_actions` reads the arguments of one function.
pub(super) fn read(
    value: &Value,
    to_actions: impl Fn(&str, &Map<String, Value>) -> Vec<RawAction>,
) -> Result<Option<RawTurn>, DialectError> {
    let (calls, answer) = match value {
        Value::Object(message) if message.get("role").is_some_and(|role| role == "assistant") => {
            let content = message.get("content").and_then(Value::as_str);
            match message.get("tool_calls") {
                Some(Value::Array(calls)) => (calls.iter().collect(), content),
                // A list of content blocks is Anthropic's form.
                None | Some(Value::Null) if content.is_some() => (Vec::new(), content),
                _ => return Ok(None),
            }
        }
        Value::Object(call) if call.contains_key("function") => (vec![value], None),
        Value::Array(calls) if calls.iter().any(|call| call.get("function").is_some()) => {
            (calls.iter().collect(), None)
        }
        _ => return Ok(None),
    };
    let calls: Vec<RawCall> =
        calls.into_iter().map(|call| read_call(call, &to_actions)).collect::<Result<_, _>>()?;
    Ok(Some(RawTurn { calls, answer: answer.map(str::to_owned), form: Form::Chat }))
}

/// Like [`read`]; also reads calls that were left in the text, as `{"name": …, "arguments": …}` in `<tool_call>` tags.
pub(super) fn read_with_text(
    value: &Value,
    to_actions: impl Fn(&str, &Map<String, Value>) -> Vec<RawAction>,
) -> Result<Option<RawTurn>, DialectError> {
    let Some(text) = value.as_str() else { return read(value, to_actions) };
    let blocks = tagged_text::blocks(tagged_text::after_thinking(text).unwrap_or_default(), "tool_call");
    if blocks.is_empty() {
        return Ok(None);
    }
    let call = |block: &str| {
        if let Ok(function @ Value::Object(_)) = serde_json::from_str::<Value>(block) {
            return read_call(&json!({ "function": function }), &to_actions);
        }
        let problem = "the content of <tool_call> must be a JSON object with name and arguments".to_owned();
        Ok(RawCall::new(None, RawAction::unreadable("tool_call", problem)))
    };
    let calls = blocks.into_iter().map(call).collect::<Result<_, _>>()?;
    Ok(Some(RawTurn { calls, answer: None, form: Form::Chat }))
}

fn read_call(
    value: &Value,
    to_actions: &impl Fn(&str, &Map<String, Value>) -> Vec<RawAction>,
) -> Result<RawCall, DialectError> {
    let invalid = || DialectError("action: a tool call must be a JSON object with function".to_owned());
    let call = value.as_object().ok_or_else(invalid)?;
    let function = raw::object(call, "function")?;
    let name = raw::text(function, "name")?;
    let parsed = match function.get("arguments") {
        Some(Value::String(text)) if text.trim().is_empty() => Ok(Value::Object(Map::new())),
        Some(Value::String(text)) => serde_json::from_str(text).map_err(|error| error.to_string()),
        Some(other) => Ok(other.clone()),
        None => Ok(Value::Object(Map::new())),
    };
    let actions = match parsed {
        Ok(Value::Object(arguments)) => to_actions(name, &arguments),
        Ok(_) => {
            vec![RawAction::unreadable(name, format!("the arguments of {} must be a JSON object", cut(name)))]
        }
        Err(error) => {
            vec![RawAction::unreadable(
                name,
                format!("the arguments of {} are not valid JSON: {error}", cut(name)),
            )]
        }
    };
    Ok(RawCall { id: raw::id(call, "id")?, name: cut(name), actions, safety_checks: None })
}

/// Builds one `tool` message for each call.
pub(super) fn output(calls: &[(&super::Call, &CallResult)], page: &PageState, screenshot: &Image) -> Value {
    let last = calls.len().saturating_sub(1);
    let messages = calls.iter().enumerate().map(|(number, (call, result))| {
        let text = match &result.error {
            Some(error) => json!({"url": page.url, "error": error}).to_string(),
            None if result.text.is_some() => result.text.clone().unwrap_or_default(),
            None => {
                let mut text = json!({"url": page.url});
                if call.acknowledged.is_some() {
                    text["safety_acknowledgement"] = "true".into();
                }
                text.to_string()
            }
        };
        let mut content = vec![json!({"type": "text", "text": text})];
        let image = result.image.as_ref().or((number == last).then_some(screenshot));
        content
            .extend(image.map(|image| json!({"type": "image_url", "image_url": {"url": image.data_url()}})));
        let mut message = json!({"role": "tool", "content": content});
        if let Some(id) = &call.id {
            message["tool_call_id"] = id.as_str().into();
        }
        message
    });
    Value::Array(messages.collect())
}
