//! Builds the chat messages of one turn: the task, a summary of the early steps, the latest steps in full, and the
//! current page.

use std::path::PathBuf;

use proto::{
    InteractionMode,
    trajectory::{Observation, Step, Task},
};
use serde_json::Value;

use super::{
    reply::Reply,
    sanitize::{escape_markers, escape_template_tokens, fenced_content, single_line},
    system_prompt::{PromptOptions, system_prompt},
    think_block::split_thinking,
};
use crate::config::ModelType;
use client::chat::{Message, Part, Role};

/// Number of past steps that are sent with screenshot and reply. Earlier steps are only summarized.
pub const HISTORY_WINDOW: usize = 4;

const MAX_TITLE_CHARS: usize = 160;
const MAX_URL_CHARS: usize = 300;
const MAX_ACTION_CHARS: usize = 240;
const MAX_TREE_CHARS: usize = 20_000;
const MAX_PAGE_TEXT_CHARS: usize = 40_000;

/// Builds the messages for the next turn, after the steps in `history` and with the page in `current`. `page_text` is
/// the page's text, if the configuration asks for it.
pub fn build_conversation(
    options: PromptOptions,
    task: &Task,
    history: &[Step],
    current: &Observation,
    page_text: Option<&str>,
) -> Vec<Message> {
    let first_shown = history.len().saturating_sub(HISTORY_WINDOW);
    let mut messages = vec![Message::text(Role::System, system_prompt(options))];
    let mut opening = Some(task_and_summary(task, &history[..first_shown]));
    for (index, step) in history.iter().enumerate().skip(first_shown) {
        let header = turn_header(options, index, task, history, &step.observation);
        messages.push(user_message(opening.take(), &header, &step.observation));
        messages.push(Message::text(Role::Assistant, past_reply(step, options.model_type)));
    }
    let mut text = turn_header(options, history.len(), task, history, current);
    if let Some(elements) = numbered_elements(options, current) {
        text.push_str(&elements);
    }
    if let Some(page_text) = page_text.filter(|text| !text.trim().is_empty()) {
        let page_text = fenced_content(&page_text.replace('\t', " | "), MAX_PAGE_TEXT_CHARS);
        text.extend(["\nText of the page:\n```\n", &page_text, "\n```"]);
    }
    messages.push(user_message(opening.take(), &text, current));
    messages
}

/// Returns the task, and a summary of the steps that are not sent any more.
fn task_and_summary(task: &Task, omitted: &[Step]) -> String {
    let mut text = format!(
        "Task: {}\nStart website: {}\n",
        escape_markers(task.task_name.trim()),
        single_line(&task.website, MAX_URL_CHARS)
    );
    if !omitted.is_empty() {
        text.push_str("\nEarlier steps, no longer shown:\n");
        for (index, step) in omitted.iter().enumerate() {
            text.push_str(&step_summary(index, step));
        }
    }
    text.push('\n');
    text
}

fn step_summary(index: usize, step: &Step) -> String {
    let action = step.action.as_ref().map_or("nothing", |action| action.action_string.as_str());
    let effect = match step.same_as_next_screenshot {
        Some(true) => "; the page did not change",
        Some(false) => "; the page changed",
        None => "",
    };
    format!(
        "{}. on {}: {}{effect}\n",
        index + 1,
        quoted_title(&step.observation),
        single_line(action, MAX_ACTION_CHARS)
    )
}

/// Returns the text above a screenshot: the step's number, the outcome of the last action, and the page's title and URL.
fn turn_header(
    options: PromptOptions,
    index: usize,
    task: &Task,
    history: &[Step],
    observation: &Observation,
) -> String {
    let mut text = match task.max_steps {
        max_steps if max_steps > 0 => format!("Step {} of at most {max_steps}.", index + 1),
        _ => format!("Step {}.", index + 1),
    };
    if let Some(previous) = index.checked_sub(1).and_then(|index| history.get(index)) {
        text.push_str(&step_outcome(previous, options.mode));
    }
    text.extend([
        "\nPage: ",
        &quoted_title(observation),
        " at ",
        &single_line(&observation.url, MAX_URL_CHARS),
    ]);
    text
}

fn step_outcome(step: &Step, mode: InteractionMode) -> String {
    let mut text = String::new();
    let waited = step.action.as_ref().is_some_and(|action| action.key == "wait");
    if waited && let Some(problem) = Reply::parse(&step.response.raw_response, mode).problem {
        text.extend([
            " Your last reply could not be used (",
            &single_line(&problem, MAX_ACTION_CHARS),
            "), so nothing was done.",
        ]);
    }
    if let Some(Value::String(observation)) = step.response.answering_tokens.get("observation")
        && !observation.trim().is_empty()
    {
        text.extend([" ", &single_line(observation, MAX_URL_CHARS + MAX_ACTION_CHARS)]);
    }
    text
}

/// Returns the page's title in double quotes; double quotes inside it are replaced.
fn quoted_title(observation: &Observation) -> String {
    format!("\"{}\"", single_line(&observation.title, MAX_TITLE_CHARS).replace('"', "'"))
}

fn numbered_elements(options: PromptOptions, current: &Observation) -> Option<String> {
    let is_wanted = options.include_ac_tree && options.mode == InteractionMode::SetOfMarks;
    let tree = current.ac_tree.as_deref().filter(|tree| is_wanted && !tree.trim().is_empty())?;
    Some(format!("\nNumbered elements:\n```\n{}\n```", fenced_content(tree, MAX_TREE_CHARS)))
}

fn user_message(opening: Option<String>, text: &str, observation: &Observation) -> Message {
    let mut content = vec![Part::Text(opening.unwrap_or_default() + text)];
    if !observation.image_path.is_empty() {
        content.push(Part::Image(PathBuf::from(&observation.image_path)));
    }
    Message { role: Role::User, content }
}

fn past_reply(step: &Step, model: ModelType) -> String {
    let raw = &step.response.raw_response;
    let reply = match model {
        ModelType::Think => split_thinking(raw).answer,
        ModelType::Instruct => raw.trim().to_owned(),
    };
    if reply.is_empty() { "(no reply)".to_owned() } else { escape_template_tokens(&reply) }
}

/// Describes the outcome of an action in a sentence, which is stored with the reply and sent to the model in the next
/// turn.
pub fn describe_outcome(changed: Option<bool>, url: &str, failed_navigation: Option<&str>) -> String {
    let url = single_line(url, MAX_URL_CHARS);
    if let Some(target) = failed_navigation {
        let target = single_line(target, MAX_URL_CHARS);
        return format!("The page {target} could not be opened; you are still at {url}.");
    }
    match changed {
        Some(true) => format!("The page changed; you are at {url}."),
        Some(false) => format!("The page did not change; you are at {url}."),
        None => format!("You are at {url}."),
    }
}
