//! Decides on the reply to a conversation: parses the goal, restores the memory, chooses an action and formats it.

use serde_json::{Value, json};

use crate::{
    action::{Action, Decision},
    conversation::{BadRequest, Conversation, ReplyFormat, Targeting},
    goal::Goal,
    memory::Memory,
    skills::{SkillContext, choose},
};

/// A reply in two parts, like that of a server with a reasoning parser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Present only if the prompt asks for reasoning.
    pub reasoning: Option<String>,
    pub content: String,
}

/// Returns the reply to a chat request. The same request always gets the same reply.
pub fn decide(request: &Value) -> Result<Reply, BadRequest> {
    let conversation = Conversation::parse(request)?;
    let goal = Goal::parse(&conversation.task);
    let mut memory = Memory::restore(&conversation);
    let decision = match conversation.format.targeting {
        Targeting::Marks => {
            let steps_left =
                conversation.max_steps.map_or(usize::MAX, |max| (max + 1).saturating_sub(conversation.step));
            choose(&mut SkillContext {
                goal: &goal,
                page: &conversation.page,
                memory: &mut memory,
                start_url: &conversation.start_url,
                steps_left,
            })
        }
        Targeting::Coordinates => decide_without_elements(&conversation, &mut memory),
    };
    Ok(format_reply(&conversation.format, &goal, &memory, &decision))
}

/// Returns the reply as one text that begins with the reasoning.
pub fn reply(request: &Value) -> Result<String, BadRequest> {
    let Reply { reasoning, content } = decide(request)?;
    Ok(match reasoning {
        Some(reasoning) => format!("<think>\n{reasoning}\n</think>\n\n{content}"),
        None => content,
    })
}

/// In coordinate mode there are only screenshots, which this policy cannot read: scrolls twice, then gives up.
fn decide_without_elements(conversation: &Conversation, memory: &mut Memory) -> Decision {
    if !conversation.is_last_step() && conversation.step <= 2 && !memory.at_bottom {
        memory.scrolled += 1;
        return Decision::new(Action::ScrollDown, "there may be more content below");
    }
    let answer = format!(
        "I cannot tell: I read numbered elements and text, not images. All I know is that the page is called “{}”.",
        conversation.page.title
    );
    Decision::new(Action::answer(&answer), "this policy cannot act without numbered elements")
}

fn format_reply(format: &ReplyFormat, goal: &Goal, memory: &Memory, decision: &Decision) -> Reply {
    let action = single_line(&decision.action.description());
    let call = json!({"name": format.tool, "arguments": decision.action.tool_arguments(format.targeting)});
    // The JSON escape of `<`, so that text of a page cannot look like a tag.
    let call = format!("<tool_call>\n{}\n</tool_call>", call.to_string().replace('<', "\\u003c"));
    let content = if format.complete {
        let memory_json = serde_json::to_string(memory).unwrap_or_default();
        let progress = single_line(&progress(goal, memory, &decision.action));
        format!(
            "Memory: {}\nProgress: {progress}\nIntention: {}\nAction: {action}\n{call}",
            memory_json.replace('<', "\\u003c"),
            single_line(&decision.reason)
        )
    } else {
        format!("Action: {action}\n{call}")
    };
    let reasoning =
        format.reasoning.then(|| single_line(&format!("I will {action}, because {}.", decision.reason)));
    Reply { reasoning, content }
}

fn progress(goal: &Goal, memory: &Memory, action: &Action) -> String {
    if matches!(action, Action::Answer { .. }) {
        return "finished".to_owned();
    }
    let mut parts = Vec::new();
    if !goal.instructions.is_empty() {
        parts.push(format!(
            "{} of {} instructions carried out",
            memory.instructions_done.min(goal.instructions.len()),
            goal.instructions.len()
        ));
    }
    if !memory.filters.is_empty() {
        parts.push(format!("filters set: {}", memory.filters.join(", ")));
    }
    if let Some(subject) = &memory.subject {
        parts.push(format!("now looking for {subject}"));
    }
    if let Some(guess) = &memory.guess {
        parts.push(format!("best guess so far: {}", guess.answer));
    }
    if parts.is_empty() { "nothing found yet".to_owned() } else { parts.join("; ") }
}

/// Joins a text to one line and replaces `<`, so that text of a page cannot look like a tag.
fn single_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('<', "‹")
}
