//! Finds the tool call in an answer: inside tags, or any JSON object that is one.

use std::ops::Range;

use proto::{InteractionMode, trajectory::Action};
use serde_json::{Map, Value};

use super::{
    action_text,
    lenient_json::{self, WorkBudget},
    tool_call::{ToolCallError, action_from_json},
};

const CALL_OPEN: &str = "<tool_call>";
const CALL_CLOSE: &str = "</tool_call>";

/// A tool call found in the answer, usable or not.
pub(super) struct FoundCall {
    pub(super) result: Result<Action, String>,
    /// The call as a JSON object; empty if the model did not write one.
    pub(super) object: Map<String, Value>,
    /// The range of the call with its tags.
    whole: Range<usize>,
}

impl FoundCall {
    pub(super) fn none() -> Self {
        Self { result: Err("the reply has no tool call".into()), object: Map::new(), whole: 0..0 }
    }

    /// Returns the answer without the call and without the code fence around it.
    pub(super) fn removed_from(&self, answer: &str) -> String {
        let before = answer.get(..self.whole.start).unwrap_or_default();
        let after = answer.get(self.whole.end..).unwrap_or_default();
        let fences = ["```json", "```tool_call", "```"];
        let before_fence = fences.iter().find_map(|fence| before.trim_end().strip_suffix(fence));
        match before_fence.zip(after.trim_start().strip_prefix("```")) {
            Some((before, after)) => format!("{before}{after}"),
            None => format!("{before}{after}"),
        }
    }
}

/// Finds the call of an answer: a tagged one if there is any, or else one without tags.
pub(super) fn find_call(answer: &str, mode: InteractionMode, budget: &mut WorkBudget) -> Option<FoundCall> {
    tagged_call(answer, mode, budget).or_else(|| untagged_call(answer, mode, budget))
}

/// Returns the first usable call inside `<tool_call>` tags, or else the first unusable one with its reason.
fn tagged_call(answer: &str, mode: InteractionMode, budget: &mut WorkBudget) -> Option<FoundCall> {
    let mut first_unusable = None;
    for tag in call_tags(answer) {
        let body = &answer[tag.content.clone()];
        budget.spend(body.len());
        let Some(brace) = body.find('{').and_then(|_| body.find(['{', '['])) else {
            if let Some(action) = action_text::find_action(body, mode, budget) {
                return Some(FoundCall { result: Ok(action), object: Map::new(), whole: tag.whole });
            }
            continue;
        };
        let content_end = tag.content.end;
        let may_be_truncated = content_end == answer.len();
        let start = tag.content.start + brace;
        // The closing tag may be part of a JSON string. Then parse beyond it: the JSON determines where the call ends.
        let parsed = lenient_json::parse_prefix(&answer[start..content_end], may_be_truncated, budget)
            .or_else(|| lenient_json::parse_prefix(&answer[start..], true, budget));
        let (result, object, end) = match parsed {
            Some((value, length)) => {
                let result = action_from_json(&value, mode, budget).map_err(reason);
                (result, into_object(value), start + length)
            }
            None => (Err("the tool call is not JSON".to_owned()), Map::new(), content_end),
        };
        let whole_end = if end > content_end { skip_closing_tag(answer, end) } else { tag.whole.end };
        let call = FoundCall { result, object, whole: tag.whole.start..whole_end };
        if call.result.is_ok() {
            return Some(call);
        }
        first_unusable.get_or_insert(call);
    }
    first_unusable
}

/// Returns the object of a call. Models also write a list of calls, of which the first one counts.
fn into_object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        Value::Array(calls) => calls.into_iter().next().map(into_object).unwrap_or_default(),
        _ => Map::new(),
    }
}

fn skip_closing_tag(answer: &str, offset: usize) -> usize {
    let rest = answer[offset..].trim_start();
    let after = rest.strip_prefix(CALL_CLOSE).unwrap_or(&answer[offset..]);
    answer.len() - after.len()
}

fn reason(error: ToolCallError) -> String {
    match error {
        ToolCallError::NotACall => "the tool call names no action".into(),
        ToolCallError::Unusable(reason) => reason,
    }
}

/// A pair of `<tool_call>` tags.
struct CallTag {
    content: Range<usize>,
    whole: Range<usize>,
}

/// Finds the pairs of tags. Without a closing tag, the content ends at the next opening tag or at the end of the text.
fn call_tags(answer: &str) -> Vec<CallTag> {
    let tag = |start: usize, content_end: usize, end: usize| CallTag {
        content: start + CALL_OPEN.len()..content_end,
        whole: start..end,
    };
    let mut tags = Vec::new();
    let mut open = None;
    for bracket in memchr::memchr_iter(b'<', answer.as_bytes()) {
        let rest = &answer[bracket..];
        if rest.starts_with(CALL_OPEN) {
            if let Some(start) = open.replace(bracket) {
                tags.push(tag(start, bracket, bracket));
            }
        } else if rest.starts_with(CALL_CLOSE)
            && let Some(start) = open.take()
        {
            tags.push(tag(start, bracket, bracket + CALL_CLOSE.len()));
        }
    }
    if let Some(start) = open {
        tags.push(tag(start, answer.len(), answer.len()));
    }
    tags
}

/// Finds a call without tags: the first JSON object in the text that is a usable call, or else the first unusable one.
fn untagged_call(answer: &str, mode: InteractionMode, budget: &mut WorkBudget) -> Option<FoundCall> {
    let mut parsed_until = 0;
    let mut first_unusable = None;
    for start in memchr::memchr_iter(b'{', answer.as_bytes()) {
        if start < parsed_until {
            continue;
        }
        if budget.is_exhausted() {
            break;
        }
        let Some((value, length)) = lenient_json::parse_prefix(&answer[start..], true, budget) else {
            continue;
        };
        let range = start..start + length;
        parsed_until = range.end;
        match action_from_json(&value, mode, budget) {
            Ok(action) => {
                return Some(FoundCall { result: Ok(action), object: into_object(value), whole: range });
            }
            Err(ToolCallError::Unusable(problem)) => {
                first_unusable.get_or_insert_with(|| FoundCall {
                    result: Err(problem),
                    object: into_object(value),
                    whole: range,
                });
            }
            Err(ToolCallError::NotACall) => {}
        }
    }
    first_unusable
}
