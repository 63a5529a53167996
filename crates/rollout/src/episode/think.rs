//! Asking the policy: builds the conversation, waits for the reply, reads it.

use std::time::Instant;

use proto::trajectory::{Action, Observation, Response, Reward, Step as Record, StepExtras, Trajectory};
use serde_json::{Map, Value};

use super::{Ending, Episode, View};
use crate::{
    policy::{PromptOptions, Reply, build_conversation},
    run::event::{Event, Stage},
};
use client::chat::{self, Completion, ModelError};

/// A reply and what it was a reply to.
pub(super) struct Thought {
    pub(super) action: Action,
    response: Response,
    extras: StepExtras,
}

impl Episode {
    pub(super) async fn think(&mut self, seen: &View) -> Result<Thought, Ending> {
        self.at(Stage::Policy);
        let since = Instant::now();
        let context = &self.context;
        let prompting = context.settings.prompting;
        let messages =
            build_conversation(prompting, &self.task, &self.steps, &seen.observation, seen.text.as_deref());
        let request = context.settings.policy.request(&context.settings.model, messages);
        // Waiting for a session may take as long as the task does; each attempt has its own limit.
        let answered = context.policy.converse(request, self.deadline).await;
        let (completion, raw_prompt) = answered.map_err(|error| {
            self.trouble(Stage::Policy, &error.to_string());
            no_reply(&error)
        })?;
        let took = self.took(Stage::Policy, since);
        Ok(self.understand(completion, raw_prompt, took))
    }

    fn understand(&self, completion: Completion, raw_prompt: String, took: f64) -> Thought {
        let reply = Reply::parse(&completion.text, self.context.settings.prompting.mode);
        let answering_tokens = reply.answering_tokens();
        Thought {
            action: reply.action,
            response: Response { raw_response: completion.text, answering_tokens, raw_prompt },
            extras: StepExtras {
                prompt_token_ids: completion.prompt_token_ids,
                token_ids: completion.token_ids,
                logprobs: completion.logprobs,
                timings_ms: Map::from_iter([("policy".to_owned(), Value::from(took))]),
            },
        }
    }

    /// Puts the step into the record, before it is acted on.
    pub(super) fn record(&mut self, observation: Observation, thought: Thought) {
        let words = |name: &str| thought.response.answering_tokens.get(name).and_then(Value::as_str);
        self.context.announcer.announce(&Event::Decided {
            index: self.index(),
            action: thought.action.action_string.clone(),
            thought: words("thought").or_else(|| words("thinking")).unwrap_or_default().to_owned(),
        });
        self.steps.push(Record {
            observation,
            action: Some(thought.action),
            response: thought.response,
            reward: Reward::default(),
            same_as_next_screenshot: None,
            extras: thought.extras,
        });
    }
}

/// Writes the prompts back into the steps of a finished episode. A prompt is made of the steps before it and of what was
/// seen, so it need not be kept in memory while thousands of episodes run.
pub(crate) fn prompts(prompting: PromptOptions, trajectory: &mut Trajectory) {
    let Trajectory { task, steps, .. } = trajectory;
    for number in 0..steps.len() {
        let step = &steps[number];
        if step.response.raw_prompt.is_empty() && !step.response.raw_response.is_empty() {
            let messages = build_conversation(prompting, task, &steps[..number], &step.observation, None);
            steps[number].response.raw_prompt = chat::raw_prompt(&messages);
        }
    }
}

/// A server that will not have our key, our model or our address will not have them next time either.
fn no_reply(error: &ModelError) -> Ending {
    match error {
        ModelError::Refused { status: 401 | 403 | 404, .. } | ModelError::Setup(_) => {
            Ending::PolicyRefuses(error.to_string())
        }
        other => Ending::PolicyLost(other.to_string()),
    }
}
