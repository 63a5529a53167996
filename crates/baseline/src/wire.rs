//! The JSON bodies of the chat API: completion, list of models, error.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};

use crate::Reply;

/// The model name of the policy.
pub const MODEL: &str = "baseline";

/// The number in the id of the next completion.
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

/// Returns the requested model if it is not ours. A request without a model name is accepted.
pub(crate) fn other_model(request: &Value) -> Option<&str> {
    request.get("model").and_then(Value::as_str).filter(|name| !name.is_empty() && *name != MODEL)
}

pub(crate) fn completion(request: &Value, reply: &Reply) -> Value {
    let mut message = json!({"role": "assistant", "content": reply.content});
    if let Some(reasoning) = &reply.reasoning {
        message["reasoning_content"] = json!(reasoning);
    }
    let prompt = count_prompt_words(request.get("messages").unwrap_or(&Value::Null));
    let completion = count_words(&reply.content) + reply.reasoning.as_deref().map_or(0, count_words);
    json!({
        "id": format!("chatcmpl-baseline-{}", NEXT_ID.fetch_add(1, Ordering::Relaxed)),
        "object": "chat.completion",
        "created": now(),
        "model": MODEL,
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": "stop"}],
        // The policy has no tokenizer, so words are counted.
        "usage": {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion},
    })
}

fn count_words(text: &str) -> usize {
    text.split_whitespace().count()
}

/// Counts the words of all messages. Images are ignored, as the policy does not read them.
fn count_prompt_words(messages: &Value) -> usize {
    let content = |message: &Value| match message.get("content") {
        Some(Value::String(text)) => count_words(text),
        Some(Value::Array(parts)) => {
            parts.iter().filter_map(|part| part.get("text")?.as_str()).map(count_words).sum()
        }
        _ => 0,
    };
    messages.as_array().into_iter().flatten().map(content).sum()
}

pub(crate) fn models() -> Value {
    json!({"object": "list", "data": [
        {"id": MODEL, "object": "model", "created": now(), "owned_by": "webgym", "root": MODEL, "parent": null},
    ]})
}

pub(crate) fn error(status: u16, message: &str, parameter: Option<&str>) -> Value {
    let kind = match status {
        404 => "NotFoundError",
        500.. => "InternalServerError",
        _ => "BadRequestError",
    };
    json!({"error": {"message": message, "type": kind, "param": parameter, "code": status}})
}
