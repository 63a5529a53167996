//! The JSON of one complete trajectory: its task, verdict and steps.

use proto::network::NetworkSummary;
use proto::trajectory::{Action, Observation, Response, Reward, RubricItem, Step, Task, Trajectory};
use serde::Serialize;
use serde_json::{Map, Value};
use store::metrics::{Category, CrashReason, DifficultyClass, category};
use store::{Split, Summary};

use super::iteration::{Entry, Iteration};
use super::outcome_of;
use super::recording::Recording;
use super::screenshots::Screenshots;
use super::verdict::{self, JudgeText, Subject};

/// A trajectory as the viewer shows it.
#[derive(Debug, Serialize)]
pub(super) struct Detail<'a> {
    split: Split,
    iteration: u64,
    key: &'a str,
    /// The episode is still running; more steps will follow.
    is_running: bool,
    outcome: &'static str,
    /// False if the file does not contain the outcome and it was inferred from the last reward.
    is_outcome_recorded: bool,
    crash: Option<&'static str>,
    reward: i64,
    answer: Option<&'a str>,
    class: &'static str,
    task: &'a Task,
    rubric: Vec<JudgedItem<'a>>,
    /// Texts of the judge that are not about a rubric item.
    judgment: Vec<JudgeText<'a>>,
    steps: Vec<StepDetail<'a>>,
    /// Whether the episode was recorded.
    has_recording: bool,
    /// What was recorded or replayed.
    network: Option<&'a NetworkSummary>,
    extra: &'a Map<String, Value>,
}

/// A rubric item with what the judge wrote about it.
#[derive(Debug, Serialize)]
struct JudgedItem<'a> {
    #[serde(flatten)]
    item: &'a RubricItem,
    passed: Option<bool>,
    texts: Vec<&'a str>,
}

/// A step without its token ids and log probabilities, which are large and not shown.
#[derive(Debug, Serialize)]
struct StepDetail<'a> {
    observation: &'a Observation,
    action: Option<&'a Action>,
    response: &'a Response,
    reward: &'a Reward,
    same_as_next_screenshot: Option<bool>,
    timings_ms: &'a Map<String, Value>,
    is_keypoint: bool,
    /// Why the screenshot cannot be shown.
    screenshot_problem: Option<String>,
    prompt_tokens: Option<usize>,
    reply_tokens: Option<usize>,
}

impl<'a> Detail<'a> {
    pub(super) fn of(
        iteration: &Iteration,
        entry: &'a Entry,
        trajectory: &'a Trajectory,
        screenshots: &Screenshots,
    ) -> Self {
        let summary = Summary::of(trajectory);
        let last = trajectory.steps.last();
        let texts = last.map(|step| verdict::judge_texts(&step.reward.evaluation)).unwrap_or_default();
        let items = trajectory.task.evaluator_reference.len();
        let (rubric_texts, judgment) = texts
            .into_iter()
            .partition::<Vec<_>, _>(|text| matches!(text.about, Subject::Rubric { item } if item < items));
        let keypoints = &trajectory.metadata.keypoint_step_ids;
        Self {
            split: iteration.split,
            iteration: iteration.number,
            key: &entry.key,
            is_running: entry.is_running(),
            outcome: outcome_of(&summary, entry),
            is_outcome_recorded: summary.outcome.is_some(),
            crash: match category(&summary) {
                Category::Crashed(reason) if !entry.is_running() => Some(describe_crash(reason)),
                _ => None,
            },
            reward: summary.reward,
            answer: last.and_then(answer),
            class: DifficultyClass::of(trajectory.task.difficulty).as_str(),
            rubric: rubric(&trajectory.task.evaluator_reference, &rubric_texts),
            task: &trajectory.task,
            judgment,
            steps: (0..)
                .zip(&trajectory.steps)
                .map(|(number, step)| step_detail(step, keypoints.contains(&number), screenshots))
                .collect(),
            has_recording: Recording::find(trajectory, screenshots).is_some(),
            network: trajectory.metadata.network.as_ref(),
            extra: &trajectory.metadata.extra,
        }
    }
}

fn rubric<'a>(items: &'a [RubricItem], texts: &[JudgeText<'a>]) -> Vec<JudgedItem<'a>> {
    let texts_about =
        |number: usize| texts.iter().filter(move |text| text.about == Subject::Rubric { item: number });
    let item = |(number, item)| JudgedItem {
        item,
        passed: texts_about(number).find_map(|text| text.passed),
        texts: texts_about(number).map(|text| text.text).collect(),
    };
    items.iter().enumerate().map(item).collect()
}

fn step_detail<'a>(step: &'a Step, is_keypoint: bool, screenshots: &Screenshots) -> StepDetail<'a> {
    let Step { observation, action, response, reward, same_as_next_screenshot, extras } = step;
    StepDetail {
        observation,
        action: action.as_ref(),
        response,
        reward,
        same_as_next_screenshot: *same_as_next_screenshot,
        timings_ms: &extras.timings_ms,
        is_keypoint,
        screenshot_problem: screenshots.find(&observation.image_path).err().map(|error| error.to_string()),
        prompt_tokens: extras.prompt_token_ids.as_ref().map(Vec::len),
        reply_tokens: extras.token_ids.as_ref().map(Vec::len),
    }
}

fn answer(step: &Step) -> Option<&str> {
    let action = step.action.as_ref().filter(|action| action.key == Action::ANSWER)?;
    Some(action.text().and_then(Value::as_str).unwrap_or_default())
}

const fn describe_crash(reason: CrashReason) -> &'static str {
    match reason {
        CrashReason::NoSteps => "it has no steps",
        CrashReason::InvalidUrl => "the URL of its start page is invalid",
        CrashReason::MissingAction => "a step has no action",
        CrashReason::EndedEarly => "it ended early without an answer",
    }
}
