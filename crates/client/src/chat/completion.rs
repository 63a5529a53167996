//! Parses a chat completion: the reply with its reasoning in front, and the token data that a trainer may use.

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, SeqAccess, Visitor},
};
use serde_json::{Value, json, value::RawValue};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
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
    /// The version of the policy, if the server states it in the header `x-policy-version`.
    pub policy_version: Option<String>,
}

/// Why a response is not a usable completion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CompletionError {
    /// The message is larger than this many bytes.
    TooLarge(usize),
    Invalid(String),
}

impl From<&str> for CompletionError {
    fn from(reason: &str) -> Self {
        Self::Invalid(reason.to_owned())
    }
}

/// Upper bound of a message as JSON: prompts contain the latest messages, and a trajectory contains all of them.
const MAX_MESSAGE_BYTES: usize = 1 << 20;

/// The parts of a response that are used. The rest is validated but not kept, so that parsing never takes more memory than a
/// few times the size of the response.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "first")]
    choices: Option<Choice<'a>>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    prompt_token_ids: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    finish_reason: Option<&'a RawValue>,
    #[serde(borrow)]
    prompt_token_ids: Option<&'a RawValue>,
    #[serde(borrow)]
    token_ids: Option<&'a RawValue>,
    #[serde(borrow)]
    logprobs: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Logprobs {
    content: Vec<TokenLogprob>,
}

#[derive(Deserialize)]
struct TokenLogprob {
    logprob: f64,
}

/// Reads the first element of a list and skips the others.
fn first<'de, D: Deserializer<'de>>(list: D) -> Result<Option<Choice<'de>>, D::Error> {
    struct First;
    impl<'de> Visitor<'de> for First {
        type Value = Option<Choice<'de>>;

        fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            formatter.write_str("a list of choices")
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            let choice = list.next_element()?;
            while list.next_element::<IgnoredAny>()?.is_some() {}
            Ok(choice)
        }
    }
    list.deserialize_any(First)
}

impl Completion {
    /// Public for the fuzzer.
    #[doc(hidden)]
    pub fn of_body(body: &[u8]) -> Option<Self> {
        Self::read(body).ok()
    }

    pub(super) fn read(body: &[u8]) -> Result<Self, CompletionError> {
        let envelope: Envelope<'_> = serde_json::from_slice(body).map_err(|error| {
            let what = if error.is_data() { "not a chat completion" } else { "not JSON" };
            let error = if body.is_empty() { "it is empty".to_owned() } else { error.to_string() };
            CompletionError::Invalid(format!("{what} ({error})"))
        })?;
        let choice = envelope.choices.ok_or("no choices in it")?;
        let message = choice.message.ok_or("no message in its choice")?;
        if message.get().len() > MAX_MESSAGE_BYTES {
            return Err(CompletionError::TooLarge(MAX_MESSAGE_BYTES));
        }
        let message: Value = lenient(Some(message)).ok_or("its message cannot be read")?;
        Ok(Self {
            text: text(&message),
            finish_reason: lenient(choice.finish_reason),
            usage: envelope.usage.map(|usage| lenient(Some(usage)).unwrap_or_default()),
            prompt_token_ids: lenient(envelope.prompt_token_ids.or(choice.prompt_token_ids)),
            token_ids: lenient(choice.token_ids),
            logprobs: lenient(choice.logprobs)
                .map(|given: Logprobs| given.content.iter().map(|token| token.logprob).collect()),
            policy_version: None,
        })
    }
}

/// Parses optional data; data of an unexpected shape counts as missing.
fn lenient<'a, T: Deserialize<'a>>(raw: Option<&'a RawValue>) -> Option<T> {
    serde_json::from_str(raw?.get()).ok()
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

/// Returns the text of a content field: a string, a list of parts, or nothing.
fn content(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part.get("text")?.as_str()).collect(),
        _ => String::new(),
    }
}

/// Renders a tool call that the server moved from the text into a field, so that the reply is complete.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(message: &Value) -> String {
        let body = json!({"choices": [{"message": message}]});
        Completion::read(body.to_string().as_bytes()).unwrap().text
    }

    #[test]
    fn reply_is_joined_from_all_fields() {
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
    fn token_ids_and_logprobs_are_kept() {
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
    fn unusable_response_is_explained() {
        for (body, wanted) in [
            ("", "it is empty"),
            ("<html>", "not JSON"),
            ("{\"choices\":[{\"message\":{\"content\":\"half", "not JSON"),
            ("{}", "no choices"),
            ("{\"choices\":null}", "no choices"),
            ("{\"choices\":[]}", "no choices"),
            ("{\"choices\":7}", "not a chat completion"),
            ("{\"choices\":[7]}", "not a chat completion"),
            ("{\"choices\":[{}]}", "no message"),
            ("{\"choices\":[{\"message\":null}]}", "no message"),
        ] {
            let error = Completion::read(body.as_bytes()).unwrap_err();
            assert!(
                matches!(&error, CompletionError::Invalid(reason) if reason.contains(wanted)),
                "{body}: {error:?}"
            );
        }
    }

    #[test]
    fn malformed_optional_data_is_ignored() {
        let body = json!({
            "usage": "much", "prompt_token_ids": [1, -2],
            "choices": [{"message": {"content": "x"}, "finish_reason": 3, "token_ids": "3", "logprobs": {"content": null}}, 7],
        });
        let got = Completion::read(body.to_string().as_bytes()).unwrap();
        assert_eq!(
            got,
            Completion { text: "x".into(), usage: Some(Usage::default()), ..Completion::default() }
        );
    }

    #[test]
    fn oversized_message_is_refused() {
        let body = json!({"choices": [{"message": {"content": "x".repeat(MAX_MESSAGE_BYTES)}}]});
        let error = Completion::read(body.to_string().as_bytes()).unwrap_err();
        assert_eq!(error, CompletionError::TooLarge(MAX_MESSAGE_BYTES));
    }
}
