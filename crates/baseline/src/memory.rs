//! What the policy remembers between steps. The server is stateless, so the memory is JSON in the `Memory:` line of the
//! last reply; if the reply format has no such line, it is reconstructed from the actions in earlier replies.

use serde::{Deserialize, Serialize};

use crate::{conversation::Conversation, page::Page};

/// The best answer so far, given when the steps run out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Guess {
    pub(crate) answer: String,
    /// In percent.
    #[serde(rename = "trust")]
    pub(crate) confidence: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Memory {
    /// Actions, each with the fingerprint of its page: `click Sports @1f3a`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) tried: Vec<String>,
    /// Filters that were set on this page.
    #[serde(rename = "set", skip_serializing_if = "Vec::is_empty")]
    pub(crate) filters: Vec<String>,
    /// Whether filters were set but not yet submitted.
    #[serde(rename = "unsent", skip_serializing_if = "std::ops::Not::not")]
    pub(crate) has_unsent_filters: bool,
    /// The current subject, if it is not the one that the task names first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) subject: Option<String>,
    /// Stems of the task that led to the current subject.
    #[serde(rename = "used", skip_serializing_if = "Vec::is_empty")]
    pub(crate) used_stems: Vec<String>,
    /// Number of completed instructions.
    #[serde(rename = "orders", skip_serializing_if = "is_zero")]
    pub(crate) instructions_done: usize,
    /// How often the current instruction was carried out.
    #[serde(rename = "times", skip_serializing_if = "is_zero")]
    pub(crate) repetitions: usize,
    /// Fingerprints of the page's lines before the last action.
    #[serde(rename = "before", skip_serializing_if = "Vec::is_empty")]
    pub(crate) lines_before: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) guess: Option<Guess>,
    /// Fingerprint of the last page's path. Filters are forgotten when the path changes.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) path: String,
    /// Fingerprint of the last page's URL.
    #[serde(rename = "at", skip_serializing_if = "String::is_empty")]
    pub(crate) page: String,
    /// How often this page was scrolled.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) scrolled: usize,
    /// Whether the last scroll did not move the page.
    #[serde(rename = "bottom", skip_serializing_if = "std::ops::Not::not")]
    pub(crate) at_bottom: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

const MAX_TRIED: usize = 60;
const MAX_LINES: usize = 80;

impl Memory {
    /// Restores the memory from the last reply and updates it for the current page.
    pub(crate) fn restore(conversation: &Conversation) -> Self {
        let line = conversation
            .replies
            .last()
            .and_then(|reply| reply.lines().find_map(|line| line.strip_prefix("Memory: ")));
        let mut memory = match line.and_then(|line| serde_json::from_str(line.trim()).ok()) {
            Some(memory) => memory,
            None => Self::from_actions(conversation),
        };
        let page = fingerprint(conversation.page.url_without_fragment());
        if memory.page != page {
            memory.scrolled = 0;
            memory.at_bottom = false;
            memory.has_unsent_filters = false;
        } else if conversation.page_unchanged && memory.scrolled > 0 {
            memory.at_bottom = true;
        }
        memory.page = page;
        let path = fingerprint(conversation.page.url_without_query());
        if memory.path != path {
            memory.filters.clear();
        }
        memory.path = path;
        memory
    }

    /// Reconstructs the tried actions from the `Action:` lines of earlier replies.
    fn from_actions(conversation: &Conversation) -> Self {
        let actions = conversation
            .replies
            .iter()
            .filter_map(|reply| reply.lines().find_map(|line| line.strip_prefix("Action: ")));
        let tried: Vec<String> = actions.map(|action| action.trim().to_owned()).collect();
        let scrolled = tried.iter().rev().take_while(|action| action.starts_with("scroll")).count();
        let page = fingerprint(conversation.page.url_without_fragment());
        Self { tried, page, scrolled, ..Self::default() }
    }

    /// Whether the action was tried on this page.
    pub(crate) fn has_tried(&self, action: &str) -> bool {
        let on_this_page = format!("{action} @{}", self.page);
        self.tried.iter().any(|tried| *tried == on_this_page || tried == action)
    }

    /// Whether the action was tried on any page.
    pub(crate) fn has_tried_anywhere(&self, action: &str) -> bool {
        self.tried
            .iter()
            .any(|tried| tried.rsplit_once(" @").map_or(tried.as_str(), |(action, _)| action) == action)
    }

    pub(crate) fn record_action(&mut self, action: &str) {
        let entry = format!("{action} @{}", self.page);
        if !self.tried.contains(&entry) {
            self.tried.push(entry);
        }
        let extra = self.tried.len().saturating_sub(MAX_TRIED);
        self.tried.drain(..extra);
    }

    pub(crate) fn remember_lines(&mut self, page: &Page) {
        self.lines_before = page.lines.iter().rev().take(MAX_LINES).map(|line| fingerprint(line)).collect();
    }

    /// Returns the lines that were not on the page before the last action.
    pub(crate) fn new_lines<'a>(&self, page: &'a Page) -> Vec<&'a str> {
        let lines = page.lines.iter().rev().take(MAX_LINES).map(String::as_str);
        let mut new: Vec<&str> =
            lines.filter(|line| !self.lines_before.contains(&fingerprint(line))).collect();
        new.reverse();
        new
    }

    /// Keeps the answer as the guess if it has a higher confidence than the current one.
    pub(crate) fn offer_guess(&mut self, answer: &str, confidence: f64) {
        let confidence = (confidence * 100.0).clamp(0.0, 100.0) as u32;
        if !answer.trim().is_empty() && self.guess.as_ref().is_none_or(|guess| guess.confidence < confidence)
        {
            self.guess = Some(Guess { answer: answer.trim().chars().take(300).collect(), confidence });
        }
    }
}

/// Returns a short hash of a text (FNV-1a, folded to 16 bits).
pub(crate) fn fingerprint(text: &str) -> String {
    let hash =
        text.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("{:04x}", (hash >> 16) ^ (hash & 0xffff))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn conversation(replies: &[&str], url: &str, outcome: &str) -> Conversation {
        let mut messages = vec![json!({"role": "user", "content": "Task: x\nStart website: y\n"})];
        messages.extend(replies.iter().map(|reply| json!({"role": "assistant", "content": reply})));
        messages.push(json!({"role": "user", "content": format!("Step 2 of at most 9.{outcome}\nPage: \"T\" at {url}")}));
        Conversation::parse(&json!({"messages": messages})).unwrap()
    }

    #[test]
    fn memory_round_trips_through_the_reply() {
        let mut memory = Memory::restore(&conversation(&[], "http://a.test/", ""));
        memory.record_action("click Sports");
        memory.offer_guess("$5", 0.4);
        memory.scrolled = 2;
        let reply = format!("Memory: {}\nAction: scroll down", serde_json::to_string(&memory).unwrap());
        let restored = Memory::restore(&conversation(&[&reply], "http://a.test/", ""));
        assert_eq!(restored, memory);
        assert!(restored.has_tried("click Sports") && !restored.has_tried("click Music"));
        let on_other_page = Memory::restore(&conversation(&[&reply], "http://a.test/b", ""));
        assert!(
            on_other_page.scrolled == 0
                && !on_other_page.has_tried("click Sports")
                && on_other_page.has_tried_anywhere("click Sports")
        );
        let stuck = Memory::restore(&conversation(
            &[&reply],
            "http://a.test/",
            " The page did not change; you are at x.",
        ));
        assert!(stuck.at_bottom);
    }

    #[test]
    fn actions_are_restored_without_memory_line() {
        let memory = Memory::restore(&conversation(&["Action: click Sports\n<tool_call>…"], "u", ""));
        assert!(memory.has_tried("click Sports"));
        let invalid = Memory::restore(&conversation(&["Memory: {\"tried\": 7}"], "u", ""));
        assert!(invalid.tried.is_empty());
    }

    #[test]
    fn new_lines_exclude_earlier_lines() {
        let mut memory = Memory::default();
        memory.remember_lines(&Page::new("", "", "", Some("a\nb")));
        assert_eq!(memory.new_lines(&Page::new("", "", "", Some("a\ncount 1\nb"))), ["count 1"]);
    }
}
