//! From a conversation to a reply: what the task wants, what is remembered, which move is next, and the words for it.

use serde_json::{Value, json};

use crate::{
    action::{Action, Move},
    goal::Goal,
    memory::Memory,
    skills::{Scene, choose},
    talk::{BadRequest, Form, Pointing, Talk},
};

/// A reply in its two parts, as a server with a reasoning parser gives them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Only when the conversation asks to think.
    pub reasoning: Option<String>,
    pub content: String,
}

/// The reply to a chat request. The same request always gets the same reply.
pub fn decide(request: &Value) -> Result<Reply, BadRequest> {
    let talk = Talk::read(request)?;
    let goal = Goal::read(&talk.task);
    let mut memory = Memory::recall(&talk);
    let next = match talk.form.pointing {
        Pointing::Marks => {
            let left = talk.most.map_or(usize::MAX, |most| (most + 1).saturating_sub(talk.step));
            let scene =
                &mut Scene { goal: &goal, page: &talk.page, memory: &mut memory, start: &talk.start, left };
            choose(scene)
        }
        Pointing::Points => without_eyes(&talk, &mut memory),
    };
    Ok(write(&talk.form, &goal, &memory, &next))
}

/// The same as one text, thoughts in front.
pub fn reply(request: &Value) -> Result<String, BadRequest> {
    let Reply { reasoning, content } = decide(request)?;
    Ok(match reasoning {
        Some(reasoning) => format!("<think>\n{reasoning}\n</think>\n\n{content}"),
        None => content,
    })
}

/// By coordinates there is nothing to go by but pictures, and this agent does not look at pictures.
fn without_eyes(talk: &Talk, memory: &mut Memory) -> Move {
    if !talk.is_last() && talk.step <= 2 && !memory.bottom {
        memory.scrolled += 1;
        return Move::new(Action::ScrollDown, "there may be more below, not that it can be seen from here");
    }
    let answer = format!(
        "I cannot tell: I read numbered elements and text, not pictures. All I know is that the page is called “{}”.",
        talk.page.title
    );
    Move::new(Action::answer(&answer), "without numbered elements this agent is blind")
}

fn write(form: &Form, goal: &Goal, memory: &Memory, next: &Move) -> Reply {
    let action = plain(&next.action.sentence());
    let call = json!({"name": form.tool, "arguments": next.action.arguments(form.pointing)});
    // Inside JSON text this is the same sign, and no tag.
    let call = format!("<tool_call>\n{}\n</tool_call>", call.to_string().replace('<', "\\u003c"));
    let content = if form.complete {
        let notes = serde_json::to_string(memory).unwrap_or_default();
        let progress = plain(&progress(goal, memory, &next.action));
        format!(
            "Memory: {}\nProgress: {progress}\nIntention: {}\nAction: {action}\n{call}",
            notes.replace('<', "\\u003c"),
            plain(&next.why)
        )
    } else {
        format!("Action: {action}\n{call}")
    };
    let reasoning = form.thinks.then(|| plain(&format!("I will {action}, because {}.", next.why)));
    Reply { reasoning, content }
}

fn progress(goal: &Goal, memory: &Memory, action: &Action) -> String {
    if matches!(action, Action::Answer { .. }) {
        return "finished".to_owned();
    }
    let mut parts = Vec::new();
    if !goal.orders.is_empty() {
        parts.push(format!(
            "{} of {} instructions carried out",
            memory.orders.min(goal.orders.len()),
            goal.orders.len()
        ));
    }
    if !memory.set.is_empty() {
        parts.push(format!("filters set: {}", memory.set.join(", ")));
    }
    if let Some(subject) = &memory.subject {
        parts.push(format!("now looking for {subject}"));
    }
    if let Some(guess) = &memory.guess {
        parts.push(format!("best guess so far: {}", guess.answer));
    }
    if parts.is_empty() { "nothing found yet".to_owned() } else { parts.join("; ") }
}

/// Words of a page on one line that cannot pass for a tag.
fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('<', "‹")
}
