//! Judges with a model: asks which screenshots are relevant, whether the site blocked the agent, whether the screenshots
//! support the answer, whether every rubric item is met, and whether the answer matches the reference. If a question
//! fails or gets no clear reply, the episode stays unjudged.

mod evidence;
mod questions;
mod verdict;

pub use verdict::{says_blocked, says_success};

use std::time::Duration;

use futures_util::{StreamExt, stream};
use proto::{
    judgment::JudgmentSubject,
    trajectory::{Action, Evaluation, Outcome, Step, Trajectory},
};

use super::{StepJudgment, Verdict};
use crate::{
    config::{Config, JudgeEndpoint, Question},
    policy::split_thinking,
    prompts::{JudgePrompts, QuestionKind, QuestionVariables},
};
use client::{
    chat::{ChatRequest, Completion, Images, ModelClient, ModelError, ModelOptions},
    http::{Deadline, RetryPolicy, excerpt},
};
use evidence::Evidence;
use tokio::sync::Semaphore;
use verdict::{Reading, blocked, blocking_step, relevant, verdict};

/// The model that answers one kind of question, and the client of its server.
struct Endpoint {
    client: ModelClient,
    /// The request without its messages.
    request: ChatRequest,
}

/// A judge that asks up to three models, one for each kind of question.
pub struct ModelJudge {
    keypoints: Endpoint,
    blocking: Endpoint,
    evaluation: Endpoint,
    prompts: JudgePrompts,
    question_timeout: Duration,
    /// Bounds the concurrent questions of all kinds and episodes.
    permits: Semaphore,
}

/// The judge's replies about one episode so far.
#[derive(Default)]
struct Record {
    replies: Vec<String>,
    step_judgments: Vec<StepJudgment>,
    is_blocked: bool,
    blocked_at: Option<usize>,
}

/// The reason why an episode could not be judged.
#[derive(Debug)]
struct Unjudged(String);

const ATTEMPT_TIMEOUT: Duration = Duration::from_mins(2);
const DEFAULT_QUESTION_TIMEOUT: Duration = Duration::from_mins(10);
/// How often a question is asked until the reply answers it.
const MAX_ATTEMPTS: usize = 2;
/// Concurrent keypoint questions of one episode. The permits bound them over all episodes.
const MAX_CONCURRENT_KEYPOINTS: usize = 16;

impl ModelJudge {
    /// Creates the judge from the configuration. `read_key` returns the value of the environment variable that holds an
    /// API key.
    pub fn new(config: &Config, read_key: impl Fn(&str) -> Option<String>) -> Result<Self, ModelError> {
        let endpoint = |question| {
            let JudgeEndpoint { api_key_env_var, base_url, request } = config.judge_endpoint(question);
            let options = ModelOptions {
                sessions: config.env_config.evaluation_workers,
                attempt_timeout: ATTEMPT_TIMEOUT,
                retry: RetryPolicy {
                    max_retries: config.env_config.max_retries.max(2),
                    ..RetryPolicy::default()
                },
                images: Images::Data,
                ..ModelOptions::default()
            };
            let client = ModelClient::openai(&base_url, read_key(&api_key_env_var).as_deref(), options)?;
            Ok::<_, ModelError>(Endpoint { client, request })
        };
        Ok(Self {
            keypoints: endpoint(Question::KeypointDetection)?,
            blocking: endpoint(Question::BlockingDetection)?,
            evaluation: endpoint(Question::Evaluation)?,
            prompts: JudgePrompts::default(),
            question_timeout: DEFAULT_QUESTION_TIMEOUT,
            permits: Semaphore::new(config.env_config.evaluation_workers.max(1)),
        })
    }

    /// Asks with other questions than the built-in ones.
    #[must_use]
    pub fn with_prompts(mut self, prompts: JudgePrompts) -> Self {
        self.prompts = prompts;
        self
    }

    /// Sets how long a question may take, including all its attempts.
    #[must_use]
    pub fn with_question_timeout(mut self, timeout: Duration) -> Self {
        self.question_timeout = timeout;
        self
    }

    pub async fn judge(&self, trajectory: &Trajectory) -> Verdict {
        let mut record = Record::default();
        let passes = self.passes_all(trajectory, &mut record).await;
        let outcome = match passes {
            Ok(true) => Outcome::Success,
            Ok(false) if record.is_blocked => Outcome::Blocked,
            Ok(false) => Outcome::Failure,
            Err(Unjudged(reason)) => {
                record.replies.push(format!("Not judged: {reason}"));
                record.is_blocked = false;
                Outcome::JudgeError
            }
        };
        let Record { replies, step_judgments, is_blocked, blocked_at } = record;
        let evaluation = Evaluation::Texts(replies);
        Verdict { outcome, evaluation, step_judgments, is_blocked, blocked_at, score: None }
    }

    /// Asks all questions until one fails. A block is recorded and does not end the questions: the agent may have got
    /// past it.
    async fn passes_all(&self, trajectory: &Trajectory, record: &mut Record) -> Result<bool, Unjudged> {
        let answer = final_answer(&trajectory.steps);
        if answer.is_some() {
            record.step_judgments = self.find_keypoints(trajectory).await?;
        }
        self.detect_blocking(trajectory, record).await?;
        let Some(answer) = answer else { return Ok(false) };
        let evidence = Evidence::submitted(trajectory, &record.step_judgments);
        let replies = &mut record.replies;
        let task = &trajectory.task;
        let supported = questions::supported(task, &answer, &evidence);
        if !self.passes(JudgmentSubject::Support, (QuestionKind::Supported, supported), replies).await? {
            return Ok(false);
        }
        for (index, item) in task.evaluator_reference.iter().enumerate() {
            let question = questions::rubric_item(task, item, &answer, &evidence);
            let subject = JudgmentSubject::RubricItem(index);
            if !self.passes(subject, (QuestionKind::RubricItem, question), replies).await? {
                return Ok(false);
            }
        }
        match task.reference() {
            Some(reference) => {
                let question = questions::reference(task, &answer, reference);
                self.passes(JudgmentSubject::Reference, (QuestionKind::Reference, question), replies).await
            }
            None => Ok(true),
        }
    }

    /// Asks which screenshots are relevant. The last one always is.
    async fn find_keypoints(&self, trajectory: &Trajectory) -> Result<Vec<StepJudgment>, Unjudged> {
        let last = trajectory.steps.len().saturating_sub(1);
        let questions = stream::iter(0..last).map(|step| async move {
            let question = questions::keypoint(trajectory, step);
            let (reply, submit) = self.ask(QuestionKind::Keypoint, &question).await?;
            Ok(StepJudgment { step, submit, judgment: Some(reply) })
        });
        let mut step_judgments = Vec::new();
        let mut replies = questions.buffered(MAX_CONCURRENT_KEYPOINTS);
        while let Some(judgment) = replies.next().await {
            step_judgments.push(judgment?);
        }
        step_judgments.push(StepJudgment {
            step: last,
            submit: true,
            judgment: Some("The last screenshot always counts.".into()),
        });
        evidence::limit_submitted(&mut step_judgments);
        Ok(step_judgments)
    }

    /// Asks whether the site blocked the agent, and records the reply and the blocking step.
    async fn detect_blocking(&self, trajectory: &Trajectory, record: &mut Record) -> Result<(), Unjudged> {
        let question = questions::blocking(trajectory);
        let (reply, is_blocked) = self.ask(QuestionKind::Blocking, &question).await?;
        record.is_blocked = is_blocked;
        record.blocked_at = blocking_step(&reply).filter(|step| is_blocked && *step < trajectory.steps.len());
        record.replies.push(JudgmentSubject::Blocking.entitle(&reply));
        Ok(())
    }

    /// Asks for a verdict on one criterion and records the reply under its heading.
    async fn passes(
        &self,
        subject: JudgmentSubject,
        (kind, question): (QuestionKind, QuestionVariables),
        replies: &mut Vec<String>,
    ) -> Result<bool, Unjudged> {
        let (reply, passes) = self.ask(kind, &question).await?;
        replies.push(subject.entitle(&reply));
        Ok(passes)
    }

    /// Asks a yes/no question, once more if the reply does not answer it. Returns the reply and what it says.
    async fn ask(
        &self,
        kind: QuestionKind,
        question: &QuestionVariables,
    ) -> Result<(String, bool), Unjudged> {
        let endpoint = match kind {
            QuestionKind::Keypoint => &self.keypoints,
            QuestionKind::Blocking => &self.blocking,
            QuestionKind::Supported | QuestionKind::RubricItem | QuestionKind::Reference => &self.evaluation,
        };
        let messages = self.prompts.ask(kind, question).map_err(|error| Unjudged(error.to_string()))?;
        // The question's time starts after the wait for a permit.
        let _permit = self.permits.acquire().await.map_err(|error| Unjudged(error.to_string()))?;
        let deadline = Deadline::after(self.question_timeout);
        let mut result = Err(Unjudged("the judge was not asked".into()));
        for _ in 0..MAX_ATTEMPTS {
            let request = ChatRequest { messages: messages.clone(), ..endpoint.request.clone() };
            let completion = endpoint.client.complete(request, deadline).await;
            let completion = completion.map_err(|error| Unjudged(error.to_string()))?;
            result = interpret(completion, |reply| self.read(kind, reply));
            if result.is_ok() {
                break;
            }
        }
        result
    }

    /// Reads a reply by the patterns of the question's template, if it has any.
    fn read(&self, kind: QuestionKind, reply: &str) -> Reading {
        match (self.prompts.patterns(kind), kind) {
            (Some(patterns), _) => match patterns.read(reply) {
                Some(true) => Reading::Yes,
                Some(false) => Reading::No,
                None => Reading::Missing,
            },
            (None, QuestionKind::Keypoint) => relevant(reply),
            (None, QuestionKind::Blocking) => blocked(reply),
            (None, _) => verdict(reply),
        }
    }
}

/// Reads a reply. Only the answer counts, not the thinking before it: that may quote pages and change its mind.
fn interpret(completion: Completion, read: impl Fn(&str) -> Reading) -> Result<(String, bool), Unjudged> {
    let answer = split_thinking(&completion.text).answer;
    let problem = match (completion.finish_reason.as_deref(), read(&answer)) {
        (Some("content_filter"), _) => "the judge's content filter refused the question",
        (Some("length"), _) => "the judge's reply was cut off at its length limit",
        _ if !answer.contains(char::is_alphanumeric) => "the judge's reply has no words",
        (_, Reading::Missing) => "the judge's reply gives no verdict",
        (_, Reading::Unclear) => "the judge's reply gives no clear verdict",
        (_, Reading::Yes) => return Ok((completion.text, true)),
        (_, Reading::No) => return Ok((completion.text, false)),
    };
    let quoted = excerpt(&answer);
    Err(Unjudged(if quoted.is_empty() { problem.to_owned() } else { format!("{problem}: {quoted}") }))
}

/// Returns the text of the answer that the episode ended with.
pub fn final_answer(steps: &[Step]) -> Option<String> {
    let action = steps.last()?.action.as_ref().filter(|action| action.key == Action::ANSWER)?;
    let text = action.text().and_then(serde_json::Value::as_str);
    Some(text.unwrap_or_default().to_owned())
}
