//! Pickles trajectories as the Python system does: lists of step dicts with instances of five classes that have
//! exactly the attributes in `docs/contract.md` ("Trajectories on disk"). Other data (unknown task fields, token ids,
//! timings) goes into the dict `trajectory_metadata`, which existing readers ignore.

use proto::trajectory::{
    Action, Evaluation, Observation, Response, Reward, Step, StepExtras, Task, TaskId, Trajectory,
};

use super::pickler::{PickleResult, Pickler, TextTooLong};
use crate::run_record::RunMetadata;

pub(crate) const MODULE: &str = "webgym.data.components";
pub(crate) const CLASSES: [&str; 5] = ["Task", "Observation", "Action", "Response", "Reward"];

/// Keys and attribute names that occur in every step.
const NAMES: [&str; 30] = [
    "observation",
    "action",
    "response",
    "reward",
    "same_as_next_screenshot",
    "trajectory_metadata",
    "keypoint_step_ids",
    "outcome",
    "task",
    "image_path",
    "ac_tree",
    "page_metadata",
    "title",
    "url",
    "key",
    "arguments",
    "action_string",
    "raw_response",
    "answering_tokens",
    "raw_prompt",
    "evaluation",
    "is_blocked",
    "submit",
    "submission_judgment",
    "description",
    "difficulty",
    "task_name",
    "domain",
    "subdomain",
    "website",
];

/// Writes the beginning, up to an empty list `trajectories` on the stack; each trajectory follows with an `append`.
/// Returns the length of the part that defines the names. A reader needs that part and the bytes of one trajectory to
/// read it.
pub(crate) fn begin_file(pickler: &mut Pickler) -> Result<usize, TextTooLong> {
    pickler.protocol();
    for class in CLASSES {
        pickler.define_class(MODULE, class);
    }
    for name in NAMES {
        pickler.define(name)?;
    }
    let length = pickler.buffer.len();
    pickler.begin_dict();
    pickler.text("trajectories")?;
    pickler.empty_list();
    Ok(length)
}

/// Writes the metadata and the end, after the last trajectory.
pub(crate) fn end_file(pickler: &mut Pickler, metadata: &RunMetadata) -> PickleResult {
    pickler.text("metadata")?;
    pickler.begin_dict();
    let mut entry = |name: &str, value: &serde_json::Value| {
        pickler.text(name)?;
        pickler.value(value)
    };
    let RunMetadata { judge_model_overrides, max_steps, extra, .. } = metadata;
    entry("solution_model", &metadata.solution_model.as_deref().into())?;
    entry("judge_model", &metadata.judge_model.as_deref().into())?;
    entry("judge_model_overrides", judge_model_overrides)?;
    entry("dataset_file", &metadata.dataset_file.as_deref().into())?;
    entry("split", &metadata.split.as_deref().into())?;
    entry("server_size", &metadata.server_size.into())?;
    entry("max_steps", max_steps)?;
    entry("timestamp", &metadata.timestamp.as_deref().into())?;
    entry("iteration", &metadata.iteration.into())?;
    entry("seed", &metadata.seed.into())?;
    for (name, value) in extra {
        entry(name, value)?;
    }
    pickler.end_dict();
    pickler.end_dict();
    pickler.stop();
    Ok(())
}

/// Writes one trajectory, which stays on the stack. Its steps share the task through the memo.
pub(crate) fn write_trajectory(pickler: &mut Pickler, trajectory: &Trajectory) -> PickleResult {
    pickler.begin_list();
    let mut task_slot = None;
    for (number, step) in trajectory.steps.iter().enumerate() {
        pickler.begin_dict();
        pickler.name("observation")?;
        observation(pickler, &step.observation, &trajectory.task, &mut task_slot)?;
        pickler.name("action")?;
        match &step.action {
            Some(action) => self::action(pickler, action)?,
            None => pickler.none(),
        }
        pickler.name("response")?;
        match &step.response {
            // A step that the model did not decide ends an interrupted episode. The Python system's trainer drops
            // trajectories with a missing response; with an empty prompt it would fail.
            response if *response == Response::default() => pickler.none(),
            response => self::response(pickler, response)?,
        }
        pickler.name("reward")?;
        reward(pickler, &step.reward)?;
        pickler.name("same_as_next_screenshot")?;
        pickler.boolean(step.same_as_next_screenshot.unwrap_or(false));
        if number == 0 {
            pickler.name("trajectory_metadata")?;
            metadata(pickler, trajectory)?;
        }
        pickler.end_dict();
    }
    pickler.end_list();
    Ok(())
}

fn observation(
    pickler: &mut Pickler,
    observation: &Observation,
    task: &Task,
    task_slot: &mut Option<u32>,
) -> PickleResult {
    pickler.begin_object("Observation")?;
    pickler.begin_attributes();
    pickler.name("task")?;
    match *task_slot {
        Some(slot) => pickler.get(slot),
        None => *task_slot = Some(self::task(pickler, task)?),
    }
    pickler.name("image_path")?;
    pickler.text(&observation.image_path)?;
    pickler.name("ac_tree")?;
    pickler.optional_text(observation.ac_tree.as_deref())?;
    pickler.name("page_metadata")?;
    pickler.begin_dict();
    pickler.name("title")?;
    pickler.text(&observation.title)?;
    pickler.name("url")?;
    pickler.text(&observation.url)?;
    pickler.end_dict();
    pickler.end_object();
    Ok(())
}

fn task(pickler: &mut Pickler, task: &Task) -> Result<u32, TextTooLong> {
    pickler.begin_object("Task")?;
    let slot = pickler.put();
    pickler.begin_attributes();
    let texts = [
        ("task_name", &task.task_name),
        ("domain", &task.domain),
        ("subdomain", &task.subdomain),
        ("website", &task.website),
    ];
    for (name, text) in texts {
        pickler.name(name)?;
        pickler.text(text)?;
    }
    pickler.name("difficulty")?;
    pickler.integer(task.difficulty);
    pickler.name("evaluator_reference")?;
    pickler.begin_list();
    for item in &task.evaluator_reference {
        pickler.begin_dict();
        pickler.name("description")?;
        pickler.text(&item.description)?;
        pickler.name("difficulty")?;
        pickler.integer(item.difficulty);
        pickler.end_dict();
    }
    pickler.end_list();
    pickler.name("reference_answer")?;
    pickler.optional_text(task.reference_answer.as_deref())?;
    pickler.name("attempt_level")?;
    pickler.integer(task.attempt_level);
    pickler.name("task_id")?;
    match &task.task_id {
        None => pickler.none(),
        Some(TaskId::Number(number)) => pickler.integer(*number),
        Some(TaskId::Text(text)) => pickler.text(text)?,
    }
    pickler.name("max_steps")?;
    pickler.integer(task.max_steps);
    pickler.name("trajectory_index")?;
    pickler.integer(task.trajectory_index);
    pickler.end_object();
    Ok(slot)
}

fn action(pickler: &mut Pickler, action: &Action) -> PickleResult {
    pickler.begin_object("Action")?;
    pickler.begin_attributes();
    pickler.name("action")?;
    pickler.begin_dict();
    pickler.name("key")?;
    pickler.text(&action.key)?;
    pickler.name("arguments")?;
    pickler.map(&action.arguments)?;
    pickler.end_dict();
    pickler.name("action_string")?;
    pickler.text(&action.action_string)?;
    pickler.end_object();
    Ok(())
}

fn response(pickler: &mut Pickler, response: &Response) -> PickleResult {
    pickler.begin_object("Response")?;
    pickler.begin_attributes();
    pickler.name("raw_response")?;
    pickler.text(&response.raw_response)?;
    pickler.name("answering_tokens")?;
    pickler.map(&response.answering_tokens)?;
    pickler.name("raw_prompt")?;
    pickler.text(&response.raw_prompt)?;
    pickler.end_object();
    Ok(())
}

fn reward(pickler: &mut Pickler, reward: &Reward) -> PickleResult {
    pickler.begin_object("Reward")?;
    pickler.begin_attributes();
    pickler.name("reward")?;
    pickler.integer(reward.reward);
    pickler.name("evaluation")?;
    match &reward.evaluation {
        Evaluation::Text(text) => pickler.text(text)?,
        Evaluation::Texts(texts) => {
            pickler.begin_list();
            for text in texts {
                pickler.text(text)?;
            }
            pickler.end_list();
        }
    }
    pickler.name("is_blocked")?;
    pickler.boolean(reward.is_blocked);
    pickler.name("submit")?;
    pickler.boolean(reward.submit);
    pickler.name("submission_judgment")?;
    pickler.optional_text(reward.submission_judgment.as_deref())?;
    pickler.end_object();
    Ok(())
}

fn metadata(pickler: &mut Pickler, trajectory: &Trajectory) -> PickleResult {
    let Trajectory { task, steps, metadata } = trajectory;
    pickler.begin_dict();
    pickler.name("keypoint_step_ids")?;
    pickler.begin_list();
    for id in &metadata.keypoint_step_ids {
        pickler.integer(*id);
    }
    pickler.end_list();
    if let Some(outcome) = metadata.outcome {
        pickler.name("outcome")?;
        pickler.text(outcome.as_str())?;
    }
    if let Some(group) = &metadata.group_id {
        pickler.name("group_id")?;
        pickler.text(group)?;
    }
    if !metadata.policy_versions.is_empty() {
        pickler.name("policy_versions")?;
        pickler.begin_list();
        for version in &metadata.policy_versions {
            pickler.text(version)?;
        }
        pickler.end_list();
    }
    if let Some(step) = metadata.forked_at_step {
        pickler.name("forked_at_step")?;
        pickler.value(&step.into())?;
    }
    if let Some(network) = &metadata.network {
        pickler.name("network")?;
        pickler.value(&serde_json::to_value(network).unwrap_or_default())?;
    }
    if !task.extra.is_empty() {
        pickler.text(TASK_EXTRA)?;
        pickler.map(&task.extra)?;
    }
    if steps.iter().any(|step| step.extras != StepExtras::default()) {
        pickler.text(STEP_EXTRAS)?;
        pickler.begin_list();
        for step in steps {
            extras(pickler, step)?;
        }
        pickler.end_list();
    }
    for (name, value) in &metadata.extra {
        pickler.text(name)?;
        pickler.value(value)?;
    }
    pickler.end_dict();
    Ok(())
}

pub(crate) const TASK_EXTRA: &str = "task_extra";
pub(crate) const STEP_EXTRAS: &str = "step_extras";

fn extras(pickler: &mut Pickler, step: &Step) -> PickleResult {
    let StepExtras { prompt_token_ids, token_ids, logprobs, finish_reason, policy_version, timings_ms } =
        &step.extras;
    pickler.begin_dict();
    for (name, ids) in [("prompt_token_ids", prompt_token_ids), ("token_ids", token_ids)] {
        if let Some(ids) = ids {
            pickler.text(name)?;
            pickler.begin_list();
            for id in ids {
                pickler.unsigned(u64::from(*id));
            }
            pickler.end_list();
        }
    }
    if let Some(logprobs) = logprobs {
        pickler.text("logprobs")?;
        pickler.begin_list();
        for logprob in logprobs {
            pickler.float(*logprob);
        }
        pickler.end_list();
    }
    for (name, text) in [("finish_reason", finish_reason), ("policy_version", policy_version)] {
        if let Some(text) = text {
            pickler.text(name)?;
            pickler.text(text)?;
        }
    }
    if !timings_ms.is_empty() {
        pickler.text("timings_ms")?;
        pickler.map(timings_ms)?;
    }
    pickler.end_dict();
    Ok(())
}
