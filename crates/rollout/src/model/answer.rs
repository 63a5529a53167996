//! What a model answered: its text with its reasoning in front, and what a trainer may want beside it.

use serde_json::{Value, json};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Completion {
    /// The reply; reasoning that the server split off is put back in front as `<think>…</think>`.
    pub text: String,
    pub finish_reason: Option<String>,
    pub usage: Option<Usage>,
    pub prompt_token_ids: Option<Vec<u32>>,
    pub token_ids: Option<Vec<u32>>,
    pub logprobs: Option<Vec<f64>>,
}

impl Completion {
    pub(super) fn read(body: &[u8]) -> Result<Self, String> {
        let answer: Value =
            serde_json::from_slice(body).map_err(|problem| format!("not JSON ({problem})"))?;
        let choice = answer.get("choices").and_then(|choices| choices.get(0)).ok_or("no choices in it")?;
        let message = choice.get("message").ok_or("no message in its choice")?;
        Ok(Self {
            text: text(message),
            finish_reason: choice.get("finish_reason").and_then(Value::as_str).map(str::to_owned),
            usage: answer.get("usage").map(usage),
            prompt_token_ids: ids(answer.get("prompt_token_ids").or_else(|| choice.get("prompt_token_ids"))),
            token_ids: ids(choice.get("token_ids")),
            logprobs: logprobs(choice.get("logprobs")),
        })
    }
}

fn text(message: &Value) -> String {
    let reasoning = ["reasoning_content", "reasoning"].iter().find_map(|name| message.get(*name)?.as_str());
    let reasoning = reasoning.map(|text| text.replace("<think>", "").replace("</think>", ""));
    let mut text = match reasoning.as_deref().map(str::trim).filter(|text| !text.is_empty()) {
        Some(reasoning) => format!("<think>\n{reasoning}\n</think>\n\n"),
        None => String::new(),
    };
    text.push_str(&content(message.get("content").unwrap_or(&Value::Null)));
    for call in message.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
        text.push_str(&tool_call(call));
    }
    text
}

/// Content is text, a list of parts, or nothing.
fn content(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part.get("text")?.as_str()).collect(),
        _ => String::new(),
    }
}

/// A server that parses tool calls itself takes them out of the text; they are put back.
fn tool_call(call: &Value) -> String {
    let function = call.get("function").unwrap_or(call);
    let name = function.get("name").and_then(Value::as_str).unwrap_or_default();
    let arguments = match function.get("arguments") {
        Some(Value::String(text)) => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
        Some(other) => other.clone(),
        None => json!({}),
    };
    format!("\n<tool_call>\n{}\n</tool_call>", json!({"name": name, "arguments": arguments}))
}

fn usage(usage: &Value) -> Usage {
    let count = |name: &str| usage.get(name).and_then(Value::as_u64).unwrap_or(0);
    Usage { prompt_tokens: count("prompt_tokens"), completion_tokens: count("completion_tokens") }
}

fn ids(value: Option<&Value>) -> Option<Vec<u32>> {
    let list = value?.as_array()?;
    list.iter().map(|id| id.as_u64().and_then(|id| u32::try_from(id).ok())).collect()
}

fn logprobs(value: Option<&Value>) -> Option<Vec<f64>> {
    let list = value?.get("content")?.as_array()?;
    list.iter().map(|token| token.get("logprob")?.as_f64()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(message: &Value) -> String {
        let body = json!({"choices": [{"message": message}]});
        Completion::read(body.to_string().as_bytes()).unwrap().text
    }

    #[test]
    fn the_reply_is_whole_however_the_server_split_it() {
        for (message, wanted) in [
            (json!({"content": "hi"}), "hi"),
            (json!({"content": null}), ""),
            (json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}), "ab"),
            (json!({"content": "hi", "reasoning_content": "why"}), "<think>\nwhy\n</think>\n\nhi"),
            (json!({"content": "hi", "reasoning": " why</think> "}), "<think>\nwhy\n</think>\n\nhi"),
            (json!({"content": "hi", "reasoning": null}), "hi"),
            (
                json!({"content": null, "tool_calls": [{"function": {"name": "f", "arguments": "{\"a\":1}"}}]}),
                "\n<tool_call>\n{\"name\":\"f\",\"arguments\":{\"a\":1}}\n</tool_call>",
            ),
        ] {
            assert_eq!(read(&message), wanted, "{message}");
        }
    }

    #[test]
    fn tokens_and_probabilities_are_kept() {
        let body = json!({
            "prompt_token_ids": [1, 2], "usage": {"prompt_tokens": 2, "completion_tokens": 1},
            "choices": [{"message": {"content": "x"}, "finish_reason": "stop", "token_ids": [3],
                         "logprobs": {"content": [{"token": "x", "logprob": -0.5}]}}],
        });
        let got = Completion::read(body.to_string().as_bytes()).unwrap();
        assert_eq!((got.prompt_token_ids, got.token_ids), (Some(vec![1, 2]), Some(vec![3])));
        assert_eq!(got.logprobs, Some(vec![-0.5]));
        assert_eq!(got.usage, Some(Usage { prompt_tokens: 2, completion_tokens: 1 }));
        assert_eq!(got.finish_reason.as_deref(), Some("stop"));
    }

    #[test]
    fn an_answer_that_is_none_is_explained() {
        for (body, wanted) in
            [("<html>", "not JSON"), ("{}", "no choices"), ("{\"choices\":[{}]}", "no message")]
        {
            assert!(Completion::read(body.as_bytes()).unwrap_err().contains(wanted));
        }
    }
}
