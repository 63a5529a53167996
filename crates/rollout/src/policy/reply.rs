//! Reads a model's reply: what it thought, what it said, what it wants to do. Forgiving in form, strict in meaning: a
//! reply without a usable action waits, and says why. Linear in the length of the reply.

use std::borrow::Cow;

use proto::{InteractionMode, trajectory::Action};
use serde_json::{Map, Value, json};

use super::{
    call::{self, NoAction},
    lenient::{self, Work},
    text_form, thinking, words,
};

const CALL_OPEN: &str = "<tool_call>";
const CALL_CLOSE: &str = "</tool_call>";

/// A reply, taken apart.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// Inside the think block.
    pub thinking: String,
    /// What was said beside the tool call.
    pub thought: String,
    pub memory: String,
    pub progress: String,
    pub intention: String,
    /// The sentence after `Action:`.
    pub action_sentence: String,
    /// The tool call as it was written.
    pub tool_call: String,
    pub action: Action,
    /// Why the action is only a wait, when it is not the model's wish.
    pub problem: Option<String>,
}

impl Reply {
    pub fn parse(text: &str, mode: InteractionMode) -> Self {
        Self::parse_counted(text, mode).0
    }

    /// Also tells how many bytes were looked at, for those who want to know that it is linear.
    pub fn parse_counted(text: &str, mode: InteractionMode) -> (Self, usize) {
        let mut work = Work::for_length(text.len());
        let split = thinking::split(text);
        let answer = split.answer.as_str();
        work.spend(2 * text.len());
        let places = Places::of(answer);
        work.spend(2 * text.len());
        let found = places
            .in_order()
            .into_iter()
            .find_map(|place| {
                tagged_call(&place, mode, &mut work).or_else(|| loose_call(&place, mode, &mut work))
            })
            .unwrap_or_else(Found::nothing);
        let said = found.without(answer);
        work.spend(2 * said.len());
        let sections = Sections::read(&said);
        let (action, problem) = match found.result {
            Ok(action) => (action, None),
            Err(problem) => {
                // The call that was taken out may have stood anywhere: what is left is laid out anew.
                let places = Places::of(&said).in_order();
                match places.iter().find_map(|place| text_form::find(place, mode, &mut work)) {
                    Some(action) => (action, None),
                    None if split.unfinished => {
                        (words::wait(), Some("the reply ended while thinking".to_owned()))
                    }
                    None => (words::wait(), Some(problem)),
                }
            }
        };
        let reply = Self {
            thinking: split.thinking,
            memory: sections.memory,
            progress: sections.progress,
            intention: sections.intention,
            action_sentence: sections.action,
            tool_call: answer.get(found.from..found.to).unwrap_or_default().to_owned(),
            thought: said.trim().to_owned(),
            action,
            problem,
        };
        (reply, work.steps)
    }

    /// The fields as trajectories hold them; the environment's observation comes later.
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

/// Where a call may stand. What a model puts under Memory, Progress or Intention is told, not done: it may quote a page
/// that shows a call of its own. Where such headings are, only what follows the one for the action counts.
struct Places<'a> {
    answer: &'a str,
    /// Where the action's heading is.
    action: Option<usize>,
    /// Others come before it.
    tells: bool,
}

impl<'a> Places<'a> {
    /// The action's heading is the first that comes after one of each other kind: a quoted one stands among those, and
    /// that of a next turn, made up by the model, comes later.
    fn of(answer: &'a str) -> Self {
        let mut telling = [None; 3];
        let mut actions = Vec::new();
        let mut start = 0;
        for line in answer.split_inclusive('\n') {
            // As we asked for it: a key of a call, in small letters, is no heading.
            let asked = line.trim_start_matches(DRESSING).starts_with(char::is_uppercase);
            match heading(line).filter(|_| asked).map(|(heading, _)| heading) {
                Some(Heading::Memory) => drop(telling[0].get_or_insert(start)),
                Some(Heading::Progress) => drop(telling[1].get_or_insert(start)),
                Some(Heading::Intention) => drop(telling[2].get_or_insert(start)),
                Some(Heading::Action) => actions.push(start),
                None => {}
            }
            start += line.len();
        }
        let last_kind = telling.iter().flatten().max().copied().unwrap_or(0);
        let action = actions.iter().find(|at| **at >= last_kind).or(actions.first()).copied();
        let tells = telling.iter().flatten().any(|at| action.is_some_and(|action| *at < action));
        Self { answer, action, tells }
    }

    /// The answer with everything else blanked out, so that offsets stay what they are.
    fn in_order(&self) -> Vec<Cow<'a, str>> {
        let Some(action) = self.action else { return vec![Cow::Borrowed(self.answer)] };
        let mut places = vec![Cow::Owned(" ".repeat(action) + &self.answer[action..])];
        if !self.tells {
            places.push(Cow::Borrowed(&self.answer[..action]));
        }
        places
    }
}

/// A tool call in the answer, usable or not: its JSON, and all that belongs to it (tags).
struct Found {
    result: Result<Action, String>,
    from: usize,
    to: usize,
    whole: std::ops::Range<usize>,
}

impl Found {
    fn nothing() -> Self {
        Self { result: Err("the reply has no tool call".into()), from: 0, to: 0, whole: 0..0 }
    }

    /// The answer without the call and without the code fence around it.
    fn without(&self, answer: &str) -> String {
        let before = answer.get(..self.whole.start).unwrap_or_default();
        let after = answer.get(self.whole.end..).unwrap_or_default();
        let fences = ["```json", "```tool_call", "```"];
        let opened = fences.iter().find_map(|fence| before.trim_end().strip_suffix(fence));
        match opened.zip(after.trim_start().strip_prefix("```")) {
            Some((before, after)) => format!("{before}{after}"),
            None => format!("{before}{after}"),
        }
    }
}

/// The first usable call inside `<tool_call>` tags; failing that, the first unusable one with its reason.
fn tagged_call(answer: &str, mode: InteractionMode, work: &mut Work) -> Option<Found> {
    let mut first_bad = None;
    for (open, inner_end, whole_end) in regions(answer) {
        let inner = open + CALL_OPEN.len();
        let body = &answer[inner..inner_end];
        work.spend(body.len());
        let Some(brace) = body.find('{').and_then(|_| body.find(['{', '['])) else {
            if let Some(action) = text_form::find(body, mode, work) {
                return Some(Found {
                    result: Ok(action),
                    from: inner,
                    to: inner_end,
                    whole: open..whole_end,
                });
            }
            continue;
        };
        let cut = inner_end == answer.len();
        let start = inner + brace;
        // A closing tag inside a string closes nothing: then the JSON itself tells where it ends.
        let read = lenient::read(&answer[start..inner_end], cut, work)
            .or_else(|| lenient::read(&answer[start..], true, work));
        let (result, to) = match read {
            Some((value, length)) => (call::from_json(&value, mode, work).map_err(reason), start + length),
            None => (Err("the tool call is not JSON".to_owned()), inner_end),
        };
        let whole = open..if to > inner_end { past_closing_tag(answer, to) } else { whole_end };
        let found = Found { result, from: start, to, whole };
        if found.result.is_ok() {
            return Some(found);
        }
        first_bad.get_or_insert(found);
    }
    first_bad
}

fn past_closing_tag(answer: &str, at: usize) -> usize {
    let rest = answer[at..].trim_start();
    let closed = rest.strip_prefix(CALL_CLOSE).unwrap_or(&answer[at..]);
    answer.len() - closed.len()
}

fn reason(problem: NoAction) -> String {
    match problem {
        NoAction::NotACall => "the tool call names no action".into(),
        NoAction::Unusable(reason) => reason,
    }
}

/// Stretches between the tags: where each opens, where its inside ends, where it ends. A missing closing tag ends at the
/// next opening one or with the text.
fn regions(answer: &str) -> Vec<(usize, usize, usize)> {
    let mut regions = Vec::new();
    let mut open = None;
    for at in memchr::memchr_iter(b'<', answer.as_bytes()) {
        let rest = &answer[at..];
        if rest.starts_with(CALL_OPEN) {
            if let Some(start) = open.replace(at) {
                regions.push((start, at, at));
            }
        } else if rest.starts_with(CALL_CLOSE)
            && let Some(start) = open.take()
        {
            regions.push((start, at, at + CALL_CLOSE.len()));
        }
    }
    if let Some(start) = open {
        regions.push((start, answer.len(), answer.len()));
    }
    regions
}

/// A call without tags: any JSON object in the text that is one.
fn loose_call(answer: &str, mode: InteractionMode, work: &mut Work) -> Option<Found> {
    let mut skip_to = 0;
    let mut first_bad = None;
    for at in memchr::memchr_iter(b'{', answer.as_bytes()) {
        if at < skip_to {
            continue;
        }
        if work.exhausted() {
            break;
        }
        let Some((value, length)) = lenient::read(&answer[at..], true, work) else { continue };
        let to = at + length;
        match call::from_json(&value, mode, work) {
            Ok(action) => return Some(Found { result: Ok(action), from: at, to, whole: at..to }),
            Err(NoAction::Unusable(problem)) => {
                first_bad.get_or_insert(Found { result: Err(problem), from: at, to, whole: at..to });
            }
            Err(NoAction::NotACall) => {}
        }
        skip_to = to;
    }
    first_bad
}

/// The parts of an answer under their headings.
#[derive(Default)]
struct Sections {
    memory: String,
    progress: String,
    intention: String,
    action: String,
}

impl Sections {
    fn read(text: &str) -> Self {
        let mut sections = Self::default();
        let mut current = None;
        for line in text.lines() {
            if let Some((heading, rest)) = heading(line) {
                current = Some(heading);
                sections.add(heading, rest);
            } else if let Some(heading) = current {
                sections.add(heading, line);
            }
        }
        for part in
            [&mut sections.memory, &mut sections.progress, &mut sections.intention, &mut sections.action]
        {
            *part = part.trim().trim_end_matches("```json").trim_end_matches("```").trim_end().to_owned();
        }
        sections
    }

    fn add(&mut self, heading: Heading, line: &str) {
        let part = match heading {
            Heading::Memory => &mut self.memory,
            Heading::Progress => &mut self.progress,
            Heading::Intention => &mut self.intention,
            Heading::Action => &mut self.action,
        };
        if !part.is_empty() {
            part.push('\n');
        }
        part.push_str(line);
    }
}

#[derive(Clone, Copy)]
enum Heading {
    Memory,
    Progress,
    Intention,
    Action,
}

/// Markup before a heading.
const DRESSING: [char; 5] = [' ', '\t', '*', '#', '-'];

/// `Memory: …`, `**Memory:** …`, `## Memory: …`.
fn heading(line: &str) -> Option<(Heading, &str)> {
    let line = line.trim_start_matches(DRESSING);
    let (word, rest) = line.split_at_checked(line.find(':')?)?;
    let rest = rest[1..].trim_start_matches('*').trim();
    let word = word.trim_end_matches(['*', ' ']);
    let known = [
        ("memory", Heading::Memory),
        ("progress", Heading::Progress),
        ("intention", Heading::Intention),
        ("action", Heading::Action),
    ];
    known.into_iter().find(|(name, _)| word.eq_ignore_ascii_case(name)).map(|(_, heading)| (heading, rest))
}
