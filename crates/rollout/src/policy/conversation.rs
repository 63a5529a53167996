//! Builds the messages of one turn: the task, a summary of what is long past, the last rounds in full, the page as it is.

use std::path::PathBuf;

use proto::{
    InteractionMode,
    trajectory::{Observation, Step, Task},
};
use serde_json::Value;

use super::{
    neutral::{block, line, neutral, without_tokens},
    prompt::{Prompting, system},
    reply::Reply,
    thinking,
};
use crate::config::ModelType;
use client::chat::{Message, Part, Role};

/// Rounds kept as picture and reply beside the current picture.
pub const WINDOW: usize = 4;

const TITLE: usize = 160;
const ADDRESS: usize = 300;
const SENTENCE: usize = 240;
const TREE: usize = 20_000;
const PAGE_TEXT: usize = 40_000;

/// The messages for the next turn of an episode that has gone through `history` and now sees `current`, whose text is
/// given where the configuration asks for it.
pub fn conversation(
    prompting: Prompting,
    task: &Task,
    history: &[Step],
    current: &Observation,
    page_text: Option<&str>,
) -> Vec<Message> {
    let old = history.len().saturating_sub(WINDOW);
    let mut messages = vec![Message::text(Role::System, system(prompting))];
    let mut opening = Some(first_words(task, &history[..old]));
    for (number, step) in history.iter().enumerate().skip(old) {
        let words = turn(prompting, number, task, history, &step.observation);
        messages.push(user(opening.take(), &words, &step.observation));
        messages.push(Message::text(Role::Assistant, earlier_reply(step, prompting.model_type)));
    }
    let mut words = turn(prompting, history.len(), task, history, current);
    if let Some(tree) = tree(prompting, current) {
        words.push_str(&tree);
    }
    if let Some(text) = page_text.filter(|text| !text.trim().is_empty()) {
        words.push_str(&format!(
            "\nText of the page:\n```\n{}\n```",
            block(&text.replace('\t', " | "), PAGE_TEXT)
        ));
    }
    messages.push(user(opening.take(), &words, current));
    messages
}

/// The task, and the rounds that are no longer shown.
fn first_words(task: &Task, old: &[Step]) -> String {
    let mut text = format!(
        "Task: {}\nStart website: {}\n",
        neutral(task.task_name.trim()),
        line(&task.website, ADDRESS)
    );
    if !old.is_empty() {
        text.push_str("\nEarlier steps, no longer shown:\n");
        for (number, step) in old.iter().enumerate() {
            text.push_str(&summary(number, step));
        }
    }
    text.push('\n');
    text
}

fn summary(number: usize, step: &Step) -> String {
    let action = step.action.as_ref().map_or("nothing", |action| action.action_string.as_str());
    let effect = match step.same_as_next_screenshot {
        Some(true) => "; the page did not change",
        Some(false) => "; the page changed",
        None => "",
    };
    format!("{}. on {}: {}{effect}\n", number + 1, title(&step.observation), line(action, SENTENCE))
}

/// What stands above a picture: which step it is, what came of the last action, which page it shows.
fn turn(prompting: Prompting, number: usize, task: &Task, history: &[Step], seen: &Observation) -> String {
    let mut text = match task.max_steps {
        most if most > 0 => format!("Step {} of at most {most}.", number + 1),
        _ => format!("Step {}.", number + 1),
    };
    if let Some(before) = number.checked_sub(1).and_then(|index| history.get(index)) {
        text.push_str(&outcome(before, prompting.mode));
    }
    text.extend(["\nPage: ", &title(seen), " at ", &line(&seen.url, ADDRESS)]);
    text
}

fn outcome(before: &Step, mode: InteractionMode) -> String {
    let mut text = String::new();
    let waited = before.action.as_ref().is_some_and(|action| action.key == "wait");
    if waited && let Some(problem) = Reply::parse(&before.response.raw_response, mode).problem {
        text.extend([
            " Your last reply could not be used (",
            &line(&problem, SENTENCE),
            "), so nothing was done.",
        ]);
    }
    if let Some(Value::String(observation)) = before.response.answering_tokens.get("observation")
        && !observation.trim().is_empty()
    {
        text.extend([" ", &line(observation, ADDRESS + SENTENCE)]);
    }
    text
}

/// In quotes that it cannot leave.
fn title(seen: &Observation) -> String {
    format!("\"{}\"", line(&seen.title, TITLE).replace('"', "'"))
}

fn tree(prompting: Prompting, current: &Observation) -> Option<String> {
    let wanted = prompting.include_ac_tree && prompting.mode == InteractionMode::SetOfMarks;
    let tree = current.ac_tree.as_deref().filter(|tree| wanted && !tree.trim().is_empty())?;
    Some(format!("\nNumbered elements:\n```\n{}\n```", block(tree, TREE)))
}

fn user(opening: Option<String>, words: &str, seen: &Observation) -> Message {
    let mut content = vec![Part::Text(opening.unwrap_or_default() + words)];
    if !seen.image_path.is_empty() {
        content.push(Part::Image(PathBuf::from(&seen.image_path)));
    }
    Message { role: Role::User, content }
}

fn earlier_reply(step: &Step, model: ModelType) -> String {
    let raw = &step.response.raw_response;
    let said = match model {
        ModelType::Think => thinking::split(raw).answer,
        ModelType::Instruct => raw.trim().to_owned(),
    };
    if said.is_empty() { "(no reply)".to_owned() } else { without_tokens(&said) }
}

/// The environment's words about what an action did: told to the model at the next turn and kept with the reply.
pub fn observed(changed: Option<bool>, url: &str, failed_navigation: Option<&str>) -> String {
    let url = line(url, ADDRESS);
    if let Some(target) = failed_navigation {
        return format!("The page {} could not be opened; you are still at {url}.", line(target, ADDRESS));
    }
    match changed {
        Some(true) => format!("The page changed; you are at {url}."),
        Some(false) => format!("The page did not change; you are at {url}."),
        None => format!("You are at {url}."),
    }
}
