//! Builds the chat messages of one turn: the task, a summary of the early steps, the latest steps in full, and the
//! current page.

use std::{collections::HashMap, sync::LazyLock};

use proto::{
    InteractionMode,
    command::Point,
    trajectory::{Observation, Step, Task},
};

use super::{
    action::text_form,
    dialect::parse_reply,
    reply::Reply,
    sanitize::{escape_markers, escape_template_tokens, fenced_content, single_line},
    think_block::split_thinking,
    tool_definition::PromptOptions,
};
use crate::{
    config::ModelType,
    prompts::{OmittedStep, PolicyPrompts, PromptError, PromptVariables, Turn},
};
use client::chat::{Message, Role};

/// The usual [`PromptOptions::window`].
pub const HISTORY_WINDOW: usize = 4;

const MAX_TITLE_CHARS: usize = 160;
const MAX_URL_CHARS: usize = 300;
const MAX_ACTION_CHARS: usize = 240;
/// An outcome may name two URLs.
const MAX_OUTCOME_CHARS: usize = 2 * MAX_URL_CHARS + MAX_ACTION_CHARS;
const MAX_TREE_CHARS: usize = 20_000;
const MAX_PAGE_TEXT_CHARS: usize = 40_000;

/// Builds the messages for the next turn with the built-in prompts.
pub fn build_conversation(
    options: PromptOptions,
    task: &Task,
    history: &[Step],
    current: &Observation,
    page_text: Option<&str>,
) -> Vec<Message> {
    static BUILT_IN: LazyLock<PolicyPrompts> = LazyLock::new(PolicyPrompts::default);
    let built = build_conversation_with(&BUILT_IN, options, task, history, current, page_text);
    debug_assert!(built.is_ok(), "{built:?}");
    built.unwrap_or_default()
}

/// Builds the messages for the next turn, after the steps in `history` and with the page in `current`. `page_text` is
/// the page's text, if the configuration asks for it.
pub fn build_conversation_with(
    prompts: &PolicyPrompts,
    options: PromptOptions,
    task: &Task,
    history: &[Step],
    current: &Observation,
    page_text: Option<&str>,
) -> Result<Vec<Message>, PromptError> {
    ConversationBuilder::default().build(prompts, options, task, history, current, page_text)
}

/// Builds the prompts of one episode. Most messages are in the next prompt again, and they are rendered once.
#[derive(Debug, Default)]
pub struct ConversationBuilder {
    rendered: Option<Rendered>,
}

/// The messages of an episode so far.
#[derive(Debug)]
struct Rendered {
    options: PromptOptions,
    variables: minijinja::Value,
    system: Message,
    /// The first user message, which has the summary of the steps before it, and the number of its step.
    first: Option<(usize, Message)>,
    /// The first steps, which are not sent any more.
    omitted: Vec<OmittedStep>,
    /// The other user messages and the replies of past steps, by the number of the step.
    past: HashMap<usize, PastRound>,
}

#[derive(Debug)]
struct PastRound {
    page: Message,
    reply: Message,
}

impl Rendered {
    fn new(prompts: &PolicyPrompts, options: PromptOptions, task: &Task) -> Result<Self, PromptError> {
        let name = escape_markers(task.task_name.trim());
        let variables = PromptVariables::new(options, name, single_line(&task.website, MAX_URL_CHARS));
        let variables = minijinja::Value::from_serialize(variables);
        let system = Message::text(Role::System, prompts.system(&variables)?);
        Ok(Self { options, variables, system, first: None, omitted: Vec::new(), past: HashMap::new() })
    }

    /// Renders what does not change any more about a step.
    fn render_past(
        &self,
        prompts: &PolicyPrompts,
        task: &Task,
        history: &[Step],
        index: usize,
    ) -> Result<PastRound, PromptError> {
        let (step, options) = (&history[index], self.options);
        let turn = turn(options, index, task, history, &step.observation);
        let reply = prompts.reply(&self.variables, &past_reply(step, options.model_type))?;
        Ok(PastRound {
            page: self.user_message(prompts, &turn, &step.observation)?,
            reply: Message::text(Role::Assistant, reply),
        })
    }

    fn user_message(
        &self,
        prompts: &PolicyPrompts,
        turn: &Turn,
        page: &Observation,
    ) -> Result<Message, PromptError> {
        Ok(Message { role: Role::User, content: prompts.turn(&self.variables, turn, &page.image_path)? })
    }
}

impl ConversationBuilder {
    /// Builds the messages as [`build_conversation_with`] does. Prompts and task are those of earlier calls, and `history` begins
    /// with the steps of earlier calls.
    pub fn build(
        &mut self,
        prompts: &PolicyPrompts,
        options: PromptOptions,
        task: &Task,
        history: &[Step],
        current: &Observation,
        page_text: Option<&str>,
    ) -> Result<Vec<Message>, PromptError> {
        let rendered = match self.rendered.take().filter(|rendered| rendered.options == options) {
            Some(rendered) => self.rendered.insert(rendered),
            None => self.rendered.insert(Rendered::new(prompts, options, task)?),
        };
        let first_shown = history.len().saturating_sub(options.window);
        rendered.past.retain(|index, _| *index >= first_shown);
        for (index, step) in history.iter().enumerate().take(first_shown).skip(rendered.omitted.len()) {
            rendered.omitted.push(OmittedStep::of(index, step));
        }
        for index in first_shown..history.len() {
            if !rendered.past.contains_key(&index) {
                let round = rendered.render_past(prompts, task, history, index)?;
                rendered.past.insert(index, round);
            }
        }
        let page_text = page_text.filter(|text| !text.trim().is_empty());
        let current_turn = Turn {
            elements: numbered_elements(options, current).unwrap_or_default(),
            page_text: page_text
                .map(|text| fenced_content(&text.replace('\t', " | "), MAX_PAGE_TEXT_CHARS))
                .unwrap_or_default(),
            is_current: true,
            ..turn(options, history.len(), task, history, current)
        };
        let mut messages = vec![rendered.system.clone()];
        let summary = || prompts.summary(&rendered.variables, &rendered.omitted);
        if first_shown == history.len() {
            let only_turn = Turn { summary: summary()?, ..current_turn };
            messages.push(rendered.user_message(prompts, &only_turn, current)?);
            return Ok(messages);
        }
        if rendered.first.as_ref().is_none_or(|(index, _)| *index != first_shown) {
            let page = &history[first_shown].observation;
            let first_turn = Turn { summary: summary()?, ..turn(options, first_shown, task, history, page) };
            rendered.first = Some((first_shown, rendered.user_message(prompts, &first_turn, page)?));
        }
        for index in first_shown..history.len() {
            let first = rendered.first.as_ref().filter(|(first, _)| *first == index);
            let Some(round) = rendered.past.get(&index) else { continue };
            messages.push(first.map_or(&round.page, |(_, message)| message).clone());
            messages.push(round.reply.clone());
        }
        messages.push(rendered.user_message(prompts, &current_turn, current)?);
        Ok(messages)
    }
}

impl OmittedStep {
    fn of(index: usize, step: &Step) -> Self {
        let action = step.action.as_ref().map_or_else(|| "nothing".to_owned(), text_form);
        Self {
            number: index + 1,
            title: clean_title(&step.observation),
            url: single_line(&step.observation.url, MAX_URL_CHARS),
            action: single_line(&action, MAX_ACTION_CHARS),
            changed: step.same_as_next_screenshot.map(|is_same| !is_same),
        }
    }
}

/// Returns the variables of a turn that all turns have: the step's number, the outcome of the last action, and the page's
/// title and URL.
fn turn(
    options: PromptOptions,
    index: usize,
    task: &Task,
    history: &[Step],
    observation: &Observation,
) -> Turn {
    let previous = index.checked_sub(1).and_then(|index| history.get(index));
    Turn {
        step: index + 1,
        max_steps: task.max_steps,
        problem: previous.and_then(|step| reply_problem(step, options)).unwrap_or_default(),
        outcome: previous.and_then(stored_outcome).unwrap_or_default(),
        title: clean_title(observation),
        url: single_line(&observation.url, MAX_URL_CHARS),
        ..Turn::default()
    }
}

/// Returns why a reply could not be used; the step then waited instead.
fn reply_problem(step: &Step, options: PromptOptions) -> Option<String> {
    step.action.as_ref().filter(|action| action.key == "wait")?;
    let raw = &step.response.raw_response;
    let reply = match &options.dialect {
        // Whether a reply can be used does not depend on the position of the mouse.
        Some(dialect) => parse_reply(raw, dialect, Point { x: 0.0, y: 0.0 }).0,
        None => Reply::parse(raw, options.mode),
    };
    let problem = reply.problem?;
    Some(single_line(&problem, MAX_ACTION_CHARS))
}

/// Returns what [`describe_outcome`] said about a step.
fn stored_outcome(step: &Step) -> Option<String> {
    let outcome = step.response.answering_tokens.get("observation")?.as_str()?;
    (!outcome.trim().is_empty()).then(|| single_line(outcome, MAX_OUTCOME_CHARS))
}

/// Returns the page's title with its double quotes removed: the prompt puts the title in double quotes.
fn clean_title(observation: &Observation) -> String {
    single_line(&observation.title, MAX_TITLE_CHARS).replace('"', "'")
}

fn numbered_elements(options: PromptOptions, current: &Observation) -> Option<String> {
    let is_wanted = options.include_ac_tree && options.mode == InteractionMode::SetOfMarks;
    let tree = current.ac_tree.as_deref().filter(|tree| is_wanted && !tree.trim().is_empty())?;
    Some(fenced_content(tree, MAX_TREE_CHARS))
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
