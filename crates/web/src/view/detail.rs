//! One trajectory with everything that is known of it.

use proto::trajectory::{Action, Observation, Response, Reward, RubricItem, Step, Task, Trajectory};
use serde::Serialize;
use serde_json::{Map, Value};
use store::metrics::{Crash, DifficultyClass, crash};
use store::{Split, Summary};

use super::iteration::{Entry, Iteration};
use super::outcome_of;
use super::pictures::Pictures;
use super::verdict::{self, About, Words};

#[derive(Debug, Serialize)]
pub(super) struct Detail<'a> {
    split: Split,
    iteration: u64,
    key: &'a str,
    /// The episode is not over; there will be more steps.
    is_begun: bool,
    outcome: &'static str,
    /// False of files that do not say: the outcome is told from the last reward then.
    is_outcome_recorded: bool,
    crash: Option<&'static str>,
    reward: i64,
    answer: Option<&'a str>,
    class: &'static str,
    task: &'a Task,
    rubric: Vec<Item<'a>>,
    /// Words about anything but a rubric item.
    judgment: Vec<Words<'a>>,
    steps: Vec<StepDetail<'a>>,
    extra: &'a Map<String, Value>,
}

#[derive(Debug, Serialize)]
struct Item<'a> {
    #[serde(flatten)]
    asked: &'a RubricItem,
    passed: Option<bool>,
    words: Vec<&'a str>,
}

/// A step without its token ids and logprobs: nobody reads those, and they are many.
#[derive(Debug, Serialize)]
struct StepDetail<'a> {
    observation: &'a Observation,
    action: Option<&'a Action>,
    response: &'a Response,
    reward: &'a Reward,
    same_as_next_screenshot: Option<bool>,
    timings_ms: &'a Map<String, Value>,
    is_keypoint: bool,
    /// Why there is no screenshot to see.
    screenshot_problem: Option<String>,
    prompt_tokens: Option<usize>,
    reply_tokens: Option<usize>,
}

impl<'a> Detail<'a> {
    pub(super) fn of(
        iteration: &Iteration,
        entry: &'a Entry,
        trajectory: &'a Trajectory,
        pictures: &Pictures,
    ) -> Self {
        let summary = Summary::of(trajectory);
        let last = trajectory.steps.last();
        let words = last.map(|step| verdict::words(&step.reward.evaluation)).unwrap_or_default();
        let (of_items, judgment) = words.into_iter().partition::<Vec<_>, _>(
            |words| matches!(words.about, About::Rubric { item } if item < trajectory.task.evaluator_reference.len()),
        );
        let keypoints = &trajectory.metadata.keypoint_step_ids;
        Self {
            split: iteration.split,
            iteration: iteration.number,
            key: &entry.key,
            is_begun: entry.is_begun(),
            outcome: outcome_of(&summary, entry),
            is_outcome_recorded: summary.outcome.is_some(),
            crash: crash(&summary).filter(|_| !entry.is_begun()).map(crash_in_words),
            reward: summary.reward,
            answer: last.and_then(answer),
            class: DifficultyClass::of(trajectory.task.difficulty).as_str(),
            rubric: rubric(&trajectory.task.evaluator_reference, &of_items),
            task: &trajectory.task,
            judgment,
            steps: (0..)
                .zip(&trajectory.steps)
                .map(|(number, step)| step_detail(step, keypoints.contains(&number), pictures))
                .collect(),
            extra: &trajectory.metadata.extra,
        }
    }
}

fn rubric<'a>(items: &'a [RubricItem], words: &[Words<'a>]) -> Vec<Item<'a>> {
    let of_item = |number: usize| words.iter().filter(move |one| one.about == About::Rubric { item: number });
    let item = |(number, asked)| Item {
        asked,
        passed: of_item(number).find_map(|one| one.passed),
        words: of_item(number).map(|one| one.text).collect(),
    };
    items.iter().enumerate().map(item).collect()
}

fn step_detail<'a>(step: &'a Step, is_keypoint: bool, pictures: &Pictures) -> StepDetail<'a> {
    let Step { observation, action, response, reward, same_as_next_screenshot, extras } = step;
    StepDetail {
        observation,
        action: action.as_ref(),
        response,
        reward,
        same_as_next_screenshot: *same_as_next_screenshot,
        timings_ms: &extras.timings_ms,
        is_keypoint,
        screenshot_problem: pictures.find(&observation.image_path).err().map(|error| error.to_string()),
        prompt_tokens: extras.prompt_token_ids.as_ref().map(Vec::len),
        reply_tokens: extras.token_ids.as_ref().map(Vec::len),
    }
}

fn answer(step: &Step) -> Option<&str> {
    let action = step.action.as_ref().filter(|action| action.key == Action::ANSWER)?;
    Some(action.arguments.get("text").and_then(Value::as_str).unwrap_or_default())
}

const fn crash_in_words(crash: Crash) -> &'static str {
    match crash {
        Crash::NoSteps => "it has no steps",
        Crash::InvalidUrl => "the address of its start page is not one",
        Crash::MissingAction => "a step lacks its action",
        Crash::CutShort => "it ended early and without an answer",
    }
}
