//! Asks the policy for the next action: builds the conversation, waits for the completion and parses it.

use std::time::Instant;

use client::chat::{Completion, ModelError};
use proto::trajectory::{Action, Observation, Response, Reward, Step as Record, StepExtras};
use serde_json::{Map, Value};

use super::{Ending, Episode, attempt::View};
use crate::{
    policy::{Reply, parse_reply, text_form},
    run::event::{Event, Stage},
};

/// The policy's choice of an action, with its prompt and completion.
pub(super) struct Decision {
    pub(super) action: Action,
    pub(super) response: Response,
    pub(super) extras: StepExtras,
}

/// Why there is no completion.
enum Failure {
    /// A template of the user failed.
    Prompt(String),
    Model(ModelError),
}

impl Episode {
    pub(super) async fn decide(&mut self, view: &View) -> Result<Decision, Ending> {
        self.enter_stage(Stage::Policy);
        // The time of a call has no pause in it.
        self.context.pause.wait_until_running().await;
        let since = Instant::now();
        let completed = loop {
            match self.complete_despite_pauses(view).await {
                // Fewer screenshots of past steps may fit.
                Err(Failure::Model(ModelError::PromptTooLarge { .. })) if self.shrink_window() => {}
                other => break other,
            }
        };
        let (completion, raw_prompt) = completed.map_err(|failure| match failure {
            Failure::Prompt(reason) => Ending::PromptFailed(reason),
            Failure::Model(error) => {
                self.announce_failure(Stage::Policy, &error.to_string());
                ending_of(&error, self.steps.is_empty())
            }
        })?;
        let millis = self.announce_duration(Stage::Policy, since);
        Ok(self.parse(completion, raw_prompt, millis))
    }

    /// Asks for a completion. A call that fails while, or because, the run was paused is made again: it may have waited in
    /// vain, or been dropped by a server that loads new weights.
    async fn complete_despite_pauses(&mut self, view: &View) -> Result<(Completion, String), Failure> {
        let pause = self.context.pause.clone();
        loop {
            pause.wait_until_running().await;
            let count = pause.count();
            match self.complete(view).await {
                Err(Failure::Model(error))
                    if pause.count() > count && is_transient(&error) && !self.deadline.has_passed() =>
                {
                    tracing::debug!(%error, task = self.index(), "a policy call failed during a pause");
                }
                completed => return completed,
            }
        }
    }

    async fn complete(&mut self, view: &View) -> Result<(Completion, String), Failure> {
        let settings = &self.context.settings;
        let (text, observation) = (view.text.as_deref(), &view.observation);
        let messages = self.conversation.build(
            &settings.prompts,
            self.prompting,
            &self.task,
            &self.steps,
            observation,
            text,
        );
        let messages = messages.map_err(|error| Failure::Prompt(error.to_string()))?;
        let mut request = settings.policy.request(&settings.model, messages);
        if let Some(functions) = self.prompting.dialect.and_then(|dialect| dialect.functions()) {
            request.extra.insert("tools".to_owned(), functions.into());
        }
        // The deadline covers waiting for a session, which may take long; each attempt has its own timeout.
        let deadline = self.deadline.deadline();
        self.context.policy.complete_with_prompt(request, deadline).await.map_err(Failure::Model)
    }

    /// Halves the number of past steps in the prompt. Returns false if none is left to omit.
    fn shrink_window(&mut self) -> bool {
        let shown = self.prompting.window.min(self.steps.len());
        self.prompting.window = shown / 2;
        shown > 0
    }

    fn parse(&mut self, completion: Completion, raw_prompt: String, millis: f64) -> Decision {
        let reply = match &self.prompting.dialect {
            Some(dialect) => {
                let (reply, cursor) = parse_reply(&completion.text, dialect, self.cursor);
                self.cursor = cursor;
                reply
            }
            None => Reply::parse(&completion.text, self.prompting.mode),
        };
        let answering_tokens = reply.answering_tokens();
        Decision {
            action: reply.action,
            response: Response { raw_response: completion.text, answering_tokens, raw_prompt },
            extras: StepExtras {
                prompt_token_ids: completion.prompt_token_ids,
                token_ids: completion.token_ids,
                logprobs: completion.logprobs,
                finish_reason: completion.finish_reason,
                policy_version: self.context.policy_version.of_reply(completion.policy_version),
                timings_ms: Map::from_iter([("policy".to_owned(), Value::from(millis))]),
            },
        }
    }

    /// Appends the step to the episode, before its action is performed.
    pub(super) fn record(&mut self, observation: Observation, decision: Decision) {
        let token = |name: &str| decision.response.answering_tokens.get(name).and_then(Value::as_str);
        self.context.announcer.announce(&Event::Decided {
            index: self.index(),
            action: text_form(&decision.action),
            thought: token("thought").or_else(|| token("thinking")).unwrap_or_default().to_owned(),
        });
        self.steps.push(Record {
            observation,
            action: Some(decision.action),
            response: decision.response,
            reward: Reward::default(),
            same_as_next_screenshot: None,
            extras: decision.extras,
        });
    }
}

/// Returns whether the same call may succeed later.
fn is_transient(error: &ModelError) -> bool {
    matches!(ending_of(error, false), Ending::PolicyLost(_))
}

/// Returns the ending for an error of the policy client. A server that refuses our key, model or path would refuse every
/// other attempt too.
fn ending_of(error: &ModelError, is_first: bool) -> Ending {
    match error {
        ModelError::PromptTooLarge { body } if is_first => Ending::FirstPromptTooLarge(body.clone()),
        ModelError::PromptTooLarge { body } => Ending::PromptTooLarge(body.clone()),
        ModelError::Refused { status: 401 | 403 | 404, .. } | ModelError::Setup(_) => {
            Ending::PolicyRefuses(error.to_string())
        }
        other => Ending::PolicyLost(other.to_string()),
    }
}
