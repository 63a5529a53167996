//! Builds conversations as the collector does, for pages defined in tests.
#![allow(dead_code, clippy::unwrap_used, reason = "each test file uses some of the helpers")]

use client::chat;
use proto::{
    InteractionMode,
    trajectory::{Action, Observation, Response, Reward, Step, StepExtras, Task},
};
use rollout::{
    config::{ModelType, PromptVersion},
    policy::{PromptOptions, Reply, build_conversation, describe_outcome},
};
use serde_json::{Map, Value, json};

/// A page that the policy sees.
#[derive(Clone, Default)]
pub(crate) struct TestPage {
    pub(crate) title: &'static str,
    pub(crate) url: &'static str,
    /// One `role name` for each line: `a Home`, `button Go`, `search Find`, `select Kind`, `option Red`, `number Price`, `tick In stock`.
    pub(crate) elements: &'static str,
    pub(crate) text: Option<&'static str>,
}

/// An episode on fixed pages.
pub(crate) struct Episode {
    pub(crate) prompting: PromptOptions,
    task: Task,
    history: Vec<Step>,
}

impl Episode {
    pub(crate) fn new(task: &str, max_steps: i64) -> Self {
        let prompting = PromptOptions {
            mode: InteractionMode::SetOfMarks,
            model_type: ModelType::Instruct,
            version: PromptVersion::Complete,
            include_ac_tree: true,
            window: rollout::policy::HISTORY_WINDOW,
            dialect: None,
        };
        let task = Task {
            task_name: task.to_owned(),
            domain: String::new(),
            subdomain: String::new(),
            website: "http://site.test/".to_owned(),
            difficulty: 1,
            evaluator_reference: Vec::new(),
            reference_answer: None,
            attempt_level: 0,
            task_id: None,
            max_steps,
            trajectory_index: 0,
            extra: Map::new(),
        };
        Self { prompting, task, history: Vec::new() }
    }

    pub(crate) fn vanilla(mut self) -> Self {
        self.prompting.version = PromptVersion::Vanilla;
        self
    }

    /// Returns the chat request for the next step.
    pub(crate) fn request(&self, page: &TestPage) -> Value {
        let messages =
            build_conversation(self.prompting, &self.task, &self.history, &observation(page), page.text);
        json!({"model": baseline::MODEL, "messages": chat::to_json(&messages, &chat::file_url)})
    }

    /// Returns the policy's action for a page, and records a step that changed the page.
    pub(crate) fn act(&mut self, page: &TestPage) -> Action {
        self.act_with_outcome(page, true)
    }

    /// Like [`Episode::act`], with the outcome of the step.
    pub(crate) fn act_with_outcome(&mut self, page: &TestPage, changed: bool) -> Action {
        let text = baseline::reply(&self.request(page)).unwrap();
        let reply = Reply::parse(&text, self.prompting.mode);
        assert_eq!(reply.problem, None, "{text}");
        let mut answering_tokens = reply.answering_tokens();
        answering_tokens
            .insert("observation".to_owned(), describe_outcome(Some(changed), page.url, None).into());
        self.history.push(Step {
            observation: observation(page),
            action: Some(reply.action.clone()),
            response: Response { raw_response: text, answering_tokens, raw_prompt: String::new() },
            reward: Reward::default(),
            same_as_next_screenshot: Some(!changed),
            extras: StepExtras::default(),
        });
        reply.action
    }
}

fn observation(page: &TestPage) -> Observation {
    let tag = |role: &str| match role {
        "search" | "number" | "date" | "text" => format!("input, type={role}"),
        "tick" => "input, type=checkbox".to_owned(),
        other => other.to_owned(),
    };
    let lines = page.elements.lines().map(str::trim).filter(|line| !line.is_empty()).enumerate();
    let elements: Vec<String> = lines
        .map(|(index, line)| {
            let (role, name) = line.split_once(' ').unwrap_or((line, ""));
            format!("id: {}, text: {name}, tag: {}", index + 1, tag(role))
        })
        .collect();
    Observation {
        image_path: String::new(),
        ac_tree: Some(elements.join("\n")),
        title: page.title.to_owned(),
        url: page.url.to_owned(),
    }
}
