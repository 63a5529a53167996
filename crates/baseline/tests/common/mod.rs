//! Conversations as the collector builds them, for pages written down here.
#![allow(dead_code, clippy::unwrap_used, reason = "a helper of tests; each test file uses its part")]

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

/// A page in front of the agent.
#[derive(Clone, Default)]
pub(crate) struct Seen {
    pub(crate) title: &'static str,
    pub(crate) url: &'static str,
    /// `role name` a line: `a Home`, `button Go`, `search Find`, `select Kind`, `option Red`, `number Price`, `tick In stock`.
    pub(crate) elements: &'static str,
    pub(crate) text: Option<&'static str>,
}

/// An episode played against pages that do not move by themselves.
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

    /// The request for the next turn.
    pub(crate) fn request(&self, seen: &Seen) -> Value {
        let messages =
            build_conversation(self.prompting, &self.task, &self.history, &observation(seen), seen.text);
        json!({"model": baseline::MODEL, "messages": chat::to_json(&messages, &chat::file_url)})
    }

    /// What the agent does about a page; the step goes into the history, with the page found changed.
    pub(crate) fn act(&mut self, seen: &Seen) -> Action {
        self.act_and(seen, true)
    }

    pub(crate) fn act_and(&mut self, seen: &Seen, changed: bool) -> Action {
        let said = baseline::reply(&self.request(seen)).unwrap();
        let reply = Reply::parse(&said, self.prompting.mode);
        assert_eq!(reply.problem, None, "{said}");
        let mut answering_tokens = reply.answering_tokens();
        answering_tokens
            .insert("observation".to_owned(), describe_outcome(Some(changed), seen.url, None).into());
        self.history.push(Step {
            observation: observation(seen),
            action: Some(reply.action.clone()),
            response: Response { raw_response: said, answering_tokens, raw_prompt: String::new() },
            reward: Reward::default(),
            same_as_next_screenshot: Some(!changed),
            extras: StepExtras::default(),
        });
        reply.action
    }
}

fn observation(seen: &Seen) -> Observation {
    let tag = |role: &str| match role {
        "search" | "number" | "date" | "text" => format!("input, type={role}"),
        "tick" => "input, type=checkbox".to_owned(),
        other => other.to_owned(),
    };
    let lines = seen.elements.lines().map(str::trim).filter(|line| !line.is_empty()).enumerate();
    let tree: Vec<String> = lines
        .map(|(place, line)| {
            let (role, name) = line.split_once(' ').unwrap_or((line, ""));
            format!("id: {}, text: {name}, tag: {}", place + 1, tag(role))
        })
        .collect();
    Observation {
        image_path: String::new(),
        ac_tree: Some(tree.join("\n")),
        title: seen.title.to_owned(),
        url: seen.url.to_owned(),
    }
}

/// `Click [3]`, `ANSWER [$5]`: the action in one line.
pub(crate) fn told(action: &Action) -> &str {
    &action.action_string
}
