//! Parses a model's reply into thinking, sections and an action. Tolerates errors of form; a reply without a usable
//! action becomes a wait together with the reason. The cost is linear in the length of the reply.

use std::{borrow::Cow, ops::Range};

use proto::{InteractionMode, trajectory::Action};
use serde_json::{Map, Value, json};

use super::{
    action::wait_action,
    action_text,
    lenient_json::{self, WorkBudget},
    think_block::split_thinking,
    tool_call::{CallError, action_from_json},
};

const CALL_OPEN: &str = "<tool_call>";
const CALL_CLOSE: &str = "</tool_call>";

/// A parsed reply.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// The content of the think block.
    pub thinking: String,
    /// The answer without the tool call.
    pub thought: String,
    pub memory: String,
    pub progress: String,
    pub intention: String,
    /// The sentence after `Action:`.
    pub action_sentence: String,
    /// The tool call as the model wrote it.
    pub tool_call: String,
    pub action: Action,
    /// The reason why the reply could not be used and the action is a wait instead.
    pub problem: Option<String>,
}

impl Reply {
    pub fn parse(text: &str, mode: InteractionMode) -> Self {
        Self::parse_counted(text, mode).0
    }

    /// Parses a reply and also returns the number of bytes read, so that tests can check that the cost is linear.
    pub fn parse_counted(text: &str, mode: InteractionMode) -> (Self, usize) {
        let mut budget = WorkBudget::for_length(text.len());
        let split = split_thinking(text);
        let answer = split.answer.as_str();
        budget.spend(2 * text.len());
        let layout = Layout::of(answer);
        budget.spend(2 * text.len());
        let call = layout
            .search_areas()
            .into_iter()
            .find_map(|area| {
                tagged_call(&area, mode, &mut budget).or_else(|| untagged_call(&area, mode, &mut budget))
            })
            .unwrap_or_else(FoundCall::none);
        let thought = call.removed_from(answer);
        budget.spend(2 * thought.len());
        let sections = Sections::parse(&thought);
        let (action, problem) = match call.result {
            Ok(action) => (action, None),
            Err(problem) => {
                // Removing the unusable call has changed the offsets, so the layout is determined again.
                let areas = Layout::of(&thought).search_areas();
                match areas.iter().find_map(|area| action_text::find_action(area, mode, &mut budget)) {
                    Some(action) => (action, None),
                    None if split.is_unfinished => {
                        (wait_action(), Some("the reply ended while thinking".to_owned()))
                    }
                    None => (wait_action(), Some(problem)),
                }
            }
        };
        let reply = Self {
            thinking: split.thinking,
            memory: sections.memory,
            progress: sections.progress,
            intention: sections.intention,
            action_sentence: sections.action,
            tool_call: answer.get(call.json).unwrap_or_default().to_owned(),
            thought: thought.trim().to_owned(),
            action,
            problem,
        };
        (reply, budget.spent)
    }

    /// Returns the fields that trajectories store. The observation is filled in after the action.
    pub fn answering_tokens(&self) -> Map<String, Value> {
        let fields = [
            ("thought", &self.thought),
            ("action", &self.action_sentence),
            ("tool_call", &self.tool_call),
            ("thinking", &self.thinking),
            ("observation", &String::new()),
            ("memory", &self.memory),
            ("progress", &self.progress),
            ("intention", &self.intention),
        ];
        fields.into_iter().map(|(name, text)| (name.to_owned(), json!(text))).collect()
    }
}

/// The position of the headings in an answer, which decides where a tool call is looked for. Text under Memory, Progress
/// or Intention may quote a page that shows a tool call, so with such headings only the text after the Action heading
/// counts.
struct Layout<'a> {
    answer: &'a str,
    /// The offset of the Action heading.
    action: Option<usize>,
    /// Whether another heading comes before the Action heading.
    has_earlier_heading: bool,
}

impl<'a> Layout<'a> {
    /// Finds the headings. The Action heading is the first one after the first heading of each other kind: one before
    /// that may be quoted in a section, and one later may belong to a next turn that the model made up.
    fn of(answer: &'a str) -> Self {
        let mut first_of_kind = [None; 3];
        let mut actions = Vec::new();
        let mut start = 0;
        for line in answer.split_inclusive('\n') {
            // The prompt asks for capitalized headings; in lower case it may be a key of the tool call.
            let is_capitalized = line.trim_start_matches(MARKUP).starts_with(char::is_uppercase);
            match heading(line).filter(|_| is_capitalized).map(|(heading, _)| heading) {
                Some(Heading::Memory) => drop(first_of_kind[0].get_or_insert(start)),
                Some(Heading::Progress) => drop(first_of_kind[1].get_or_insert(start)),
                Some(Heading::Intention) => drop(first_of_kind[2].get_or_insert(start)),
                Some(Heading::Action) => actions.push(start),
                None => {}
            }
            start += line.len();
        }
        let last_kind = first_of_kind.iter().flatten().max().copied().unwrap_or(0);
        let action = actions.iter().find(|offset| **offset >= last_kind).or(actions.first()).copied();
        let has_earlier_heading =
            first_of_kind.iter().flatten().any(|offset| action.is_some_and(|action| *offset < action));
        Self { answer, action, has_earlier_heading }
    }

    /// Returns the parts of the answer that may contain a call, in the order in which they are searched. Text before a
    /// part is replaced by spaces, so that offsets stay valid.
    fn search_areas(&self) -> Vec<Cow<'a, str>> {
        let Some(action) = self.action else { return vec![Cow::Borrowed(self.answer)] };
        let mut areas = vec![Cow::Owned(" ".repeat(action) + &self.answer[action..])];
        if !self.has_earlier_heading {
            areas.push(Cow::Borrowed(&self.answer[..action]));
        }
        areas
    }
}

/// A tool call found in the answer, usable or not.
struct FoundCall {
    result: Result<Action, String>,
    /// The range of the call itself.
    json: Range<usize>,
    /// The range of the call with its tags.
    whole: Range<usize>,
}

impl FoundCall {
    fn none() -> Self {
        Self { result: Err("the reply has no tool call".into()), json: 0..0, whole: 0..0 }
    }

    /// Returns the answer without the call and without the code fence around it.
    fn removed_from(&self, answer: &str) -> String {
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

/// Returns the first usable call inside `<tool_call>` tags, or else the first unusable one with its reason.
fn tagged_call(answer: &str, mode: InteractionMode, budget: &mut WorkBudget) -> Option<FoundCall> {
    let mut first_unusable = None;
    for tag in call_tags(answer) {
        let body = &answer[tag.content.clone()];
        budget.spend(body.len());
        let Some(brace) = body.find('{').and_then(|_| body.find(['{', '['])) else {
            if let Some(action) = action_text::find_action(body, mode, budget) {
                return Some(FoundCall { result: Ok(action), json: tag.content, whole: tag.whole });
            }
            continue;
        };
        let content_end = tag.content.end;
        let may_be_truncated = content_end == answer.len();
        let start = tag.content.start + brace;
        // The closing tag may be part of a JSON string. Then parse beyond it: the JSON determines where the call ends.
        let parsed = lenient_json::parse_prefix(&answer[start..content_end], may_be_truncated, budget)
            .or_else(|| lenient_json::parse_prefix(&answer[start..], true, budget));
        let (result, end) = match parsed {
            Some((value, length)) => (action_from_json(&value, mode, budget).map_err(reason), start + length),
            None => (Err("the tool call is not JSON".to_owned()), content_end),
        };
        let whole_end = if end > content_end { skip_closing_tag(answer, end) } else { tag.whole.end };
        let call = FoundCall { result, json: start..end, whole: tag.whole.start..whole_end };
        if call.result.is_ok() {
            return Some(call);
        }
        first_unusable.get_or_insert(call);
    }
    first_unusable
}

fn skip_closing_tag(answer: &str, offset: usize) -> usize {
    let rest = answer[offset..].trim_start();
    let after = rest.strip_prefix(CALL_CLOSE).unwrap_or(&answer[offset..]);
    answer.len() - after.len()
}

fn reason(error: CallError) -> String {
    match error {
        CallError::NotACall => "the tool call names no action".into(),
        CallError::Unusable(reason) => reason,
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
                return Some(FoundCall { result: Ok(action), json: range.clone(), whole: range });
            }
            Err(CallError::Unusable(problem)) => {
                first_unusable.get_or_insert(FoundCall {
                    result: Err(problem),
                    json: range.clone(),
                    whole: range,
                });
            }
            Err(CallError::NotACall) => {}
        }
    }
    first_unusable
}

/// The sections of an answer, by heading.
#[derive(Default)]
struct Sections {
    memory: String,
    progress: String,
    intention: String,
    action: String,
}

impl Sections {
    fn parse(text: &str) -> Self {
        let mut sections = Self::default();
        let mut current = None;
        for line in text.lines() {
            if let Some((heading, rest)) = heading(line) {
                current = Some(heading);
                sections.push_line(heading, rest);
            } else if let Some(heading) = current {
                sections.push_line(heading, line);
            }
        }
        for section in
            [&mut sections.memory, &mut sections.progress, &mut sections.intention, &mut sections.action]
        {
            *section =
                section.trim().trim_end_matches("```json").trim_end_matches("```").trim_end().to_owned();
        }
        sections
    }

    fn push_line(&mut self, heading: Heading, line: &str) {
        let section = match heading {
            Heading::Memory => &mut self.memory,
            Heading::Progress => &mut self.progress,
            Heading::Intention => &mut self.intention,
            Heading::Action => &mut self.action,
        };
        if !section.is_empty() {
            section.push('\n');
        }
        section.push_str(line);
    }
}

#[derive(Clone, Copy)]
enum Heading {
    Memory,
    Progress,
    Intention,
    Action,
}

/// Characters of markup that may come before a heading.
const MARKUP: [char; 5] = [' ', '\t', '*', '#', '-'];

/// Parses a heading (`Memory: …`, `**Memory:** …`, `## Memory: …`) and the text after it.
fn heading(line: &str) -> Option<(Heading, &str)> {
    let line = line.trim_start_matches(MARKUP);
    let (name, rest) = line.split_at_checked(line.find(':')?)?;
    let rest = rest[1..].trim_start_matches('*').trim();
    let name = name.trim_end_matches(['*', ' ']);
    let known = [
        ("memory", Heading::Memory),
        ("progress", Heading::Progress),
        ("intention", Heading::Intention),
        ("action", Heading::Action),
    ];
    known.into_iter().find(|(known, _)| name.eq_ignore_ascii_case(known)).map(|(_, heading)| (heading, rest))
}
