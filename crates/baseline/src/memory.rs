//! What the agent keeps between steps. It has no other memory than its own words: the line `Memory:` of its last reply,
//! or, when the form of reply has no such line, the actions it sees that it took.

use serde::{Deserialize, Serialize};

use crate::{page::Page, talk::Talk};

/// An answer that may have to do when the steps run out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Guess {
    pub(crate) answer: String,
    /// In hundredths.
    pub(crate) trust: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Memory {
    /// What was done, and on which page: `click Sports @1f3a`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) tried: Vec<String>,
    /// Filters that were set.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) set: Vec<String>,
    /// A filter was set and the form not yet sent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) unsent: bool,
    /// The thing to look at now, when it was found on the way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) subject: Option<String>,
    /// Words of the task that led there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) used: Vec<String>,
    /// Instructions carried out, and how often the current one.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) orders: usize,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) times: usize,
    /// Marks of the lines that were on the page before the last action.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) before: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) guess: Option<Guess>,
    /// The path of the last page: filters are set on one and gone on another.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) path: String,
    /// The page of the last step, and how far it was scrolled.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) at: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) scrolled: usize,
    /// Scrolling no longer moved the page.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) bottom: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

const MOST_TRIED: usize = 60;
const MOST_LINES: usize = 80;

impl Memory {
    /// What the last reply remembered, brought up to date with where the agent is now.
    pub(crate) fn recall(talk: &Talk) -> Self {
        let line =
            talk.said.last().and_then(|said| said.lines().find_map(|line| line.strip_prefix("Memory: ")));
        let mut memory = match line.and_then(|line| serde_json::from_str(line.trim()).ok()) {
            Some(memory) => memory,
            None => Self::from_actions(talk),
        };
        let here = mark(talk.page.address());
        if memory.at != here {
            memory.scrolled = 0;
            memory.bottom = false;
            memory.unsent = false;
        } else if talk.unchanged && memory.scrolled > 0 {
            memory.bottom = true;
        }
        memory.at = here;
        let path = mark(talk.page.path());
        if memory.path != path {
            memory.set.clear();
        }
        memory.path = path;
        memory
    }

    /// Without a memory of its own the agent still sees the sentences of its last actions.
    fn from_actions(talk: &Talk) -> Self {
        let sentences =
            talk.said.iter().filter_map(|said| said.lines().find_map(|line| line.strip_prefix("Action: ")));
        let tried: Vec<String> = sentences.map(|sentence| sentence.trim().to_owned()).collect();
        let scrolled = tried.iter().rev().take_while(|sentence| sentence.starts_with("scroll")).count();
        let at = mark(talk.page.address());
        Self { tried, scrolled, at, ..Self::default() }
    }

    pub(crate) fn has_tried(&self, action: &str) -> bool {
        let ours = format!("{action} @{}", self.at);
        self.tried.iter().any(|tried| *tried == ours || tried == action)
    }

    /// Tried on any page.
    pub(crate) fn ever_tried(&self, action: &str) -> bool {
        self.tried
            .iter()
            .any(|tried| tried.rsplit_once(" @").map_or(tried.as_str(), |(what, _)| what) == action)
    }

    pub(crate) fn note(&mut self, action: &str) {
        let entry = format!("{action} @{}", self.at);
        if !self.tried.contains(&entry) {
            self.tried.push(entry);
        }
        let extra = self.tried.len().saturating_sub(MOST_TRIED);
        self.tried.drain(..extra);
    }

    pub(crate) fn remember_lines(&mut self, page: &Page) {
        self.before = page.lines.iter().rev().take(MOST_LINES).map(|line| mark(line)).collect();
    }

    /// Lines that were not there before the last action.
    pub(crate) fn new_lines<'a>(&self, page: &'a Page) -> Vec<&'a str> {
        let lines = page.lines.iter().rev().take(MOST_LINES).map(String::as_str);
        let mut new: Vec<&str> = lines.filter(|line| !self.before.contains(&mark(line))).collect();
        new.reverse();
        new
    }

    pub(crate) fn offer(&mut self, answer: &str, trust: f64) {
        let trust = (trust * 100.0).clamp(0.0, 100.0) as u32;
        if !answer.trim().is_empty() && self.guess.as_ref().is_none_or(|guess| guess.trust < trust) {
            self.guess = Some(Guess { answer: answer.trim().chars().take(300).collect(), trust });
        }
    }
}

/// A short mark that stands for a text (FNV-1a, folded to 16 bits).
pub(crate) fn mark(text: &str) -> String {
    let hash =
        text.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("{:04x}", (hash >> 16) ^ (hash & 0xffff))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn talk(said: &[&str], url: &str, outcome: &str) -> Talk {
        let mut messages = vec![json!({"role": "user", "content": "Task: x\nStart website: y\n"})];
        messages.extend(said.iter().map(|said| json!({"role": "assistant", "content": said})));
        messages.push(json!({"role": "user", "content": format!("Step 2 of at most 9.{outcome}\nPage: \"T\" at {url}")}));
        Talk::read(&json!({"messages": messages})).unwrap()
    }

    #[test]
    fn memory_survives_its_own_words() {
        let mut memory = Memory::recall(&talk(&[], "http://a.test/", ""));
        memory.note("click Sports");
        memory.offer("$5", 0.4);
        memory.scrolled = 2;
        let said = format!("Memory: {}\nAction: scroll down", serde_json::to_string(&memory).unwrap());
        let again = Memory::recall(&talk(&[&said], "http://a.test/", ""));
        assert_eq!(again, memory);
        assert!(again.has_tried("click Sports") && !again.has_tried("click Music"));
        let elsewhere = Memory::recall(&talk(&[&said], "http://a.test/b", ""));
        assert!(
            elsewhere.scrolled == 0
                && !elsewhere.has_tried("click Sports")
                && elsewhere.ever_tried("click Sports")
        );
        let stuck =
            Memory::recall(&talk(&[&said], "http://a.test/", " The page did not change; you are at x."));
        assert!(stuck.bottom);
    }

    #[test]
    fn without_the_line_the_actions_are_remembered() {
        let memory = Memory::recall(&talk(&["Action: click Sports\n<tool_call>…"], "u", ""));
        assert!(memory.has_tried("click Sports"));
        let nonsense = Memory::recall(&talk(&["Memory: {\"tried\": 7}"], "u", ""));
        assert!(nonsense.tried.is_empty());
    }

    #[test]
    fn new_lines_are_told_from_old_ones() {
        let mut memory = Memory::default();
        memory.remember_lines(&Page::new("", "", "", Some("a\nb")));
        assert_eq!(memory.new_lines(&Page::new("", "", "", Some("a\ncount 1\nb"))), ["count 1"]);
    }
}
