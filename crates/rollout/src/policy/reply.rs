//! Parses a model's reply into thinking, sections and an action. Tolerates errors of form; a reply without a usable
//! action becomes a wait together with the reason. The cost is linear in the length of the reply.

use proto::{InteractionMode, trajectory::Action};
use serde_json::{Map, Value, json};

use super::{
    action::wait_action,
    action_text,
    call_search::{FoundCall, find_call},
    headings::{Layout, Sections},
    lenient_json::WorkBudget,
    think_block::split_thinking,
};

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
    /// The tool call as a JSON object; empty if the reply has none.
    pub tool_call: Map<String, Value>,
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
            .find_map(|area| find_call(&area, mode, &mut budget))
            .unwrap_or_else(FoundCall::none);
        let thought = call.removed_from(answer);
        budget.spend(2 * thought.len());
        let sections = Sections::parse(&thought);
        let (mut action, problem) = match call.result {
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
        let sentence = sections.action.split(['\n', '<']).next().unwrap_or_default().trim();
        if !sentence.is_empty() {
            sentence.clone_into(&mut action.action_string);
        }
        let reply = Self {
            thinking: split.thinking,
            memory: sections.memory,
            progress: sections.progress,
            intention: sections.intention,
            action_sentence: sections.action,
            tool_call: call.object,
            thought: thought.trim().to_owned(),
            action,
            problem,
        };
        (reply, budget.spent)
    }

    /// Returns the fields that trajectories store. The observation is filled in after the action.
    pub fn answering_tokens(&self) -> Map<String, Value> {
        let fields = [
            ("thought", json!(self.thought)),
            ("action", json!(self.action_sentence)),
            ("tool_call", json!(self.tool_call)),
            ("thinking", json!(self.thinking)),
            ("observation", json!("")),
            ("memory", json!(self.memory)),
            ("progress", json!(self.progress)),
            ("intention", json!(self.intention)),
        ];
        fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}
