//! The shapes of the chat API: completion, list of models, error.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};

use crate::Reply;

/// The name under which the policy is served.
pub const MODEL: &str = "baseline";

/// Tells the answers of one process apart.
static NEXT: AtomicU64 = AtomicU64::new(1);

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

/// The model asked for, when it is not ours. No name at all asks for whatever there is.
pub(crate) fn other_model(request: &Value) -> Option<&str> {
    request.get("model").and_then(Value::as_str).filter(|name| !name.is_empty() && *name != MODEL)
}

pub(crate) fn completion(request: &Value, reply: &Reply) -> Value {
    let mut message = json!({"role": "assistant", "content": reply.content});
    if let Some(reasoning) = &reply.reasoning {
        message["reasoning_content"] = json!(reasoning);
    }
    let prompt = words_in(request.get("messages").unwrap_or(&Value::Null));
    let said = count(&reply.content) + reply.reasoning.as_deref().map_or(0, count);
    json!({
        "id": format!("chatcmpl-baseline-{}", NEXT.fetch_add(1, Ordering::Relaxed)),
        "object": "chat.completion",
        "created": now(),
        "model": MODEL,
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": "stop"}],
        // There are no tokens here: words are counted instead.
        "usage": {"prompt_tokens": prompt, "completion_tokens": said, "total_tokens": prompt + said},
    })
}

fn count(text: &str) -> usize {
    text.split_whitespace().count()
}

/// Words of all texts in the messages; pictures count nothing, for they are not looked at.
fn words_in(messages: &Value) -> usize {
    let content = |message: &Value| match message.get("content") {
        Some(Value::String(text)) => count(text),
        Some(Value::Array(parts)) => {
            parts.iter().filter_map(|part| part.get("text")?.as_str()).map(count).sum()
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

pub(crate) fn error(status: u16, words: &str, parameter: Option<&str>) -> Value {
    let kind = match status {
        404 => "NotFoundError",
        500.. => "InternalServerError",
        _ => "BadRequestError",
    };
    json!({"error": {"message": words, "type": kind, "param": parameter, "code": status}})
}
