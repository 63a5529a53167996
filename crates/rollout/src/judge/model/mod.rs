//! Judging with a model: which screenshots matter, was the site blocked, is the answer supported, is every rubric
//! item evidenced, does it match the reference. Any question that cannot be asked, or gets no answer that makes sense,
//! leaves the episode unjudged.

mod evidence;
mod questions;
mod verdict;

use std::time::Duration;

use futures_util::{StreamExt, stream};
use proto::trajectory::{Action, Evaluation, Outcome, Trajectory};

use super::{StepMark, Verdict};
use crate::{
    config::{Config, JudgeEndpoint, Question},
    policy::split_thoughts,
};
use client::{
    chat::{ChatRequest, Completion, Images, Message, ModelClient, ModelError, ModelOptions},
    http::{Deadline, RetryPolicy, excerpt},
};
use evidence::Evidence;
use tokio::sync::Semaphore;
use verdict::{Reading, blocked, blocking_step, relevant, verdict};

/// Where one kind of question goes.
struct Seat {
    client: ModelClient,
    model: String,
}

pub struct ModelJudge {
    keypoints: Seat,
    blocking: Seat,
    evaluation: Seat,
    limit: Duration,
    /// Questions at once, of whatever kind.
    places: Semaphore,
}

/// What the judge has said so far.
#[derive(Default)]
struct Record {
    words: Vec<String>,
    marks: Vec<StepMark>,
    blocked_at: Option<usize>,
}

/// Why an episode could not be judged.
#[derive(Debug)]
struct Unjudged(String);

const ATTEMPT: Duration = Duration::from_secs(120);
const QUESTION: Duration = Duration::from_secs(600);
/// A reply that does not answer the question is asked for once more.
const TRIES: usize = 2;
/// Keypoint questions of one episode at a time; the seats bound them over all episodes.
const AT_ONCE: usize = 16;

impl ModelJudge {
    /// `key_of` looks up the environment variable that holds a key.
    pub fn new(config: &Config, key_of: impl Fn(&str) -> Option<String>) -> Result<Self, ModelError> {
        let seat = |question| {
            let JudgeEndpoint { model, api_key_env_var, base_url } = config.judge_endpoint(question);
            let options = ModelOptions {
                sessions: config.env_config.evaluation_workers,
                attempt_timeout: ATTEMPT,
                retry: RetryPolicy {
                    max_retries: config.env_config.max_retries.max(2),
                    ..RetryPolicy::default()
                },
                images: Images::Data,
                ..ModelOptions::default()
            };
            let client = ModelClient::openai(&base_url, key_of(&api_key_env_var).as_deref(), options)?;
            Ok::<_, ModelError>(Seat { client, model })
        };
        Ok(Self {
            keypoints: seat(Question::KeypointDetection)?,
            blocking: seat(Question::BlockingDetection)?,
            evaluation: seat(Question::Evaluation)?,
            limit: QUESTION,
            places: Semaphore::new(config.env_config.evaluation_workers.max(1)),
        })
    }

    /// How long a question may take with all its attempts.
    #[must_use]
    pub fn within(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    pub async fn judge(&self, trajectory: &Trajectory) -> Verdict {
        let mut record = Record::default();
        let outcome = self.decide(trajectory, &mut record).await.unwrap_or_else(|Unjudged(why)| {
            record.words.push(format!("Not judged: {why}"));
            Outcome::JudgeError
        });
        let Record { words, marks, blocked_at } = record;
        Verdict { outcome, evaluation: Evaluation::Texts(words), marks, blocked_at }
    }

    async fn decide(&self, trajectory: &Trajectory, record: &mut Record) -> Result<Outcome, Unjudged> {
        let answer = final_answer(trajectory);
        if answer.is_some() {
            record.marks = self.keypoints(trajectory).await?;
        }
        if self.blocked(trajectory, record).await? {
            return Ok(Outcome::Blocked);
        }
        let Some(answer) = answer else { return Ok(Outcome::Failure) };
        let evidence = Evidence::submitted(trajectory, &record.marks);
        let words = &mut record.words;
        let task = &trajectory.task;
        let supported = questions::supported(task, &answer, &evidence);
        if !self.passes("Criterion B", supported, words).await? {
            return Ok(Outcome::Failure);
        }
        for (number, item) in task.evaluator_reference.iter().enumerate() {
            let question = questions::rubric_item(task, item, &answer, &evidence);
            if !self.passes(&format!("Criterion A, item {}", number + 1), question, words).await? {
                return Ok(Outcome::Failure);
            }
        }
        if let Some(reference) = &task.reference_answer {
            let question = questions::reference(task, &answer, reference);
            if !self.passes("Reference answer", question, words).await? {
                return Ok(Outcome::Failure);
            }
        }
        Ok(Outcome::Success)
    }

    /// Which screenshots matter. The last always does.
    async fn keypoints(&self, trajectory: &Trajectory) -> Result<Vec<StepMark>, Unjudged> {
        let last = trajectory.steps.len().saturating_sub(1);
        let asked = stream::iter(0..last).map(|step| async move {
            let question = questions::keypoint(trajectory, step);
            let (reply, reading) = self.ask(&self.keypoints, question, relevant).await?;
            Ok(StepMark { step, submit: reading == Reading::Yes, judgment: Some(reply) })
        });
        let mut marks = Vec::new();
        let mut replies = asked.buffered(AT_ONCE);
        while let Some(mark) = replies.next().await {
            marks.push(mark?);
        }
        marks.push(StepMark {
            step: last,
            submit: true,
            judgment: Some("The last screenshot always counts.".into()),
        });
        evidence::keep_last(&mut marks);
        Ok(marks)
    }

    async fn blocked(&self, trajectory: &Trajectory, record: &mut Record) -> Result<bool, Unjudged> {
        let question = questions::blocking(trajectory);
        let (reply, reading) = self.ask(&self.blocking, question, blocked).await?;
        let is_blocked = reading == Reading::Yes;
        record.blocked_at = blocking_step(&reply).filter(|step| is_blocked && *step < trajectory.steps.len());
        record.words.push(format!("Blocking: {reply}"));
        Ok(is_blocked)
    }

    async fn passes(
        &self,
        what: &str,
        question: Vec<Message>,
        words: &mut Vec<String>,
    ) -> Result<bool, Unjudged> {
        let (reply, reading) = self.ask(&self.evaluation, question, verdict).await?;
        words.push(format!("{what}: {reply}"));
        Ok(reading == Reading::Yes)
    }

    /// The judge's words and what they say. A reply in words that gives no answer is left to the caller; one that is
    /// none, or says two things at once, is no verdict on anybody.
    async fn ask(
        &self,
        seat: &Seat,
        messages: Vec<Message>,
        read: fn(&str) -> Reading,
    ) -> Result<(String, Reading), Unjudged> {
        // Standing in line is not the question's time: it has its own from here on.
        let _place = self.places.acquire().await.map_err(|error| Unjudged(error.to_string()))?;
        let deadline = Deadline::after(self.limit);
        let mut heard = Err(Unjudged("the judge was not asked".into()));
        for _ in 0..TRIES {
            let request = ChatRequest {
                model: seat.model.clone(),
                messages: messages.clone(),
                ..ChatRequest::default()
            };
            let completion = seat.client.complete(request, deadline).await;
            heard = understood(completion.map_err(|error| Unjudged(error.to_string()))?, read);
            if matches!(heard, Ok((_, Reading::Yes | Reading::No))) {
                break;
            }
        }
        heard
    }
}

/// Only what was said counts, not what was thought before: thoughts quote pages and change their mind.
fn understood(completion: Completion, read: fn(&str) -> Reading) -> Result<(String, Reading), Unjudged> {
    let said = split_thoughts(&completion.text);
    let trouble = match (completion.finish_reason.as_deref(), read(&said.answer)) {
        (Some("content_filter"), _) => "the judge's content filter refused the question",
        (Some("length"), _) => "the judge's reply was cut off at its length limit",
        _ if !said.answer.contains(char::is_alphanumeric) => "the judge's reply has no words",
        (_, Reading::Unclear) => "the judge's reply gives no clear verdict",
        (_, reading) => return Ok((completion.text, reading)),
    };
    let words = excerpt(&said.answer);
    Err(Unjudged(if words.is_empty() { trouble.to_owned() } else { format!("{trouble}: {words}") }))
}

/// The text of the answer an episode ended with.
pub(crate) fn final_answer(trajectory: &Trajectory) -> Option<String> {
    let action = trajectory.steps.last()?.action.as_ref().filter(|action| action.key == Action::ANSWER)?;
    let text = action.arguments.get("text").and_then(serde_json::Value::as_str);
    Some(text.unwrap_or_default().to_owned())
}
