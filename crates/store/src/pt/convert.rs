//! Converts unpickled values to trajectories. Attributes that are missing or None, as in some files of the Python
//! system, get default values. Errors name the value that cannot be converted.

use proto::network::NetworkSummary;
use proto::trajectory::{
    Action, Evaluation, Observation, Outcome, Response, Reward, RubricItem, Step, StepExtras, Task, TaskId,
    Trajectory, TrajectoryMetadata,
};
use serde_json::{Map, Number, Value as Json};

use crate::pickle::{STEP_EXTRAS, TASK_EXTRA};
use crate::run_record::RunMetadata;
use crate::unpickle::{Class, Object, Value};

type Converted<T> = Result<T, String>;

pub(super) fn trajectory(value: &Value, position: usize) -> Converted<Trajectory> {
    let steps = value.as_items().ok_or_else(|| format!("it is {}, not a list of steps", value.kind()))?;
    let mut task = None;
    let mut metadata = TrajectoryMetadata::default();
    let mut converted = Vec::with_capacity(steps.len());
    for (number, step) in steps.iter().enumerate() {
        let in_step = |reason: String| format!("step {number}: {reason}");
        converted.push(self::step(step).map_err(in_step)?);
        if task.is_none() {
            task = task_of_step(step).map(self::task).transpose().map_err(in_step)?;
        }
        if let Some(value) = step.get("trajectory_metadata").filter(|_| number == 0) {
            metadata = trajectory_metadata(value).map_err(in_step)?;
        }
    }
    let mut task = task.unwrap_or_else(|| empty_task(position));
    restore_extras(&mut metadata, &mut task, &mut converted)?;
    Ok(Trajectory { task, steps: converted, metadata })
}

/// Converts the `metadata` of a file.
pub(super) fn metadata(value: &Value) -> Converted<RunMetadata> {
    serde_json::from_value(json(value)?).map_err(|error| format!("metadata: {error}"))
}

fn empty_task(position: usize) -> Task {
    Task {
        task_name: String::new(),
        domain: String::new(),
        subdomain: String::new(),
        website: String::new(),
        difficulty: 0,
        evaluator_reference: Vec::new(),
        reference_answer: None,
        attempt_level: 0,
        task_id: None,
        max_steps: 0,
        trajectory_index: i64::try_from(position).unwrap_or(i64::MAX),
        extra: Map::new(),
    }
}

/// The task of a trajectory, from the first step that has one.
pub(super) fn find_task(trajectory: &Value) -> Option<&Object> {
    trajectory.as_items()?.iter().find_map(task_of_step)
}

fn task_of_step(step: &Value) -> Option<&Object> {
    let task = step.get("observation")?.as_object()?.get("task")?.as_object()?;
    (task.class() == Class::Task).then_some(task)
}

fn step(value: &Value) -> Converted<Step> {
    if value.as_entries().is_none() {
        return Err(format!("it is {}, not a dict", value.kind()));
    }
    let object = |name: &str, class: Class| match value.get(name) {
        None | Some(Value::None) => Ok(None),
        Some(Value::Object(object)) if object.class() == class => Ok(Some(object)),
        Some(other) => Err(format!("{name} is {}, not of class {class}", other.kind())),
    };
    Ok(Step {
        observation: object("observation", Class::Observation)?
            .map_or_else(|| Ok(Observation::default()), |o| observation(o))?,
        action: object("action", Class::Action)?.map(|o| action(o)).transpose()?.flatten(),
        response: object("response", Class::Response)?
            .map_or_else(|| Ok(Response::default()), |o| response(o))?,
        reward: object("reward", Class::Reward)?.map_or_else(|| Ok(Reward::default()), |o| reward(o))?,
        same_as_next_screenshot: match value.get("same_as_next_screenshot") {
            Some(Value::Bool(same)) => Some(*same),
            _ => None,
        },
        extras: StepExtras::default(),
    })
}

fn task(object: &Object) -> Converted<Task> {
    let difficulty = integer(object, "difficulty")?;
    Ok(Task {
        task_name: text(object, "task_name")?,
        domain: text(object, "domain")?,
        subdomain: text(object, "subdomain")?,
        website: text(object, "website")?,
        difficulty,
        evaluator_reference: rubric(object.get("evaluator_reference"))?,
        reference_answer: optional_text(object, "reference_answer")?,
        attempt_level: integer(object, "attempt_level")?,
        task_id: match object.get("task_id") {
            None | Some(Value::None) => None,
            Some(Value::Text(text)) => Some(TaskId::Text(text.to_string())),
            Some(other) => Some(TaskId::Number(as_integer(other, "task_id")?)),
        },
        max_steps: integer(object, "max_steps")?,
        trajectory_index: integer(object, "trajectory_index")?,
        extra: Map::new(),
    })
}

/// Converts a rubric: a string, a list of strings or a list of dicts, as in task files.
fn rubric(value: Option<&Value>) -> Converted<Vec<RubricItem>> {
    let item = |value: &Value| match value {
        Value::Text(text) => Ok(RubricItem { description: text.to_string(), difficulty: 1 }),
        Value::Dict(_) => Ok(RubricItem {
            description: value.get("description").map_or_else(|| Ok(String::new()), as_text)?,
            difficulty: value
                .get("difficulty")
                .filter(|value| !matches!(value, Value::None))
                .map_or(Ok(1), |value| as_integer(value, "difficulty"))?,
        }),
        other => Err(format!("evaluator_reference contains {}", other.kind())),
    };
    match value {
        None | Some(Value::None) => Ok(Vec::new()),
        Some(Value::List(_) | Value::Tuple(_)) => {
            value.and_then(Value::as_items).unwrap_or_default().iter().map(item).collect()
        }
        Some(other) => Ok(vec![item(other)?]),
    }
}

fn observation(object: &Object) -> Converted<Observation> {
    let page = |name: &str| {
        let value = object.get("page_metadata").and_then(|page| page.get(name));
        value.map_or_else(|| Ok(String::new()), as_text)
    };
    Ok(Observation {
        image_path: text(object, "image_path")?,
        ac_tree: optional_text(object, "ac_tree")?,
        title: page("title")?,
        url: page("url")?,
    })
}

/// Converts an action; one that contains None means that the step has no action.
fn action(object: &Object) -> Converted<Option<Action>> {
    let action = match object.get("action") {
        None | Some(Value::None) => return Ok(None),
        Some(action @ Value::Dict(_)) => action,
        Some(other) => return Err(format!("action is {}, not a dict", other.kind())),
    };
    let arguments = map_or_value(action.get("arguments"))?;
    let key = action.get("key").map_or_else(|| Ok(String::new()), as_text)?;
    Ok(Some(Action { key, arguments, action_string: text(object, "action_string")? }))
}

fn response(object: &Object) -> Converted<Response> {
    let answering_tokens = map_or_value(object.get("answering_tokens"))?;
    Ok(Response {
        raw_response: text(object, "raw_response")?,
        answering_tokens,
        raw_prompt: text(object, "raw_prompt")?,
    })
}

fn reward(object: &Object) -> Converted<Reward> {
    let flag = |name: &str| match object.get(name) {
        None | Some(Value::None) => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(other) => as_integer(other, name).map(|number| number != 0),
    };
    let evaluation = match object.get("evaluation") {
        None | Some(Value::None) => Evaluation::default(),
        Some(value @ (Value::List(_) | Value::Tuple(_))) => {
            let items = value.as_items().unwrap_or_default();
            Evaluation::Texts(items.iter().map(as_text).collect::<Converted<_>>()?)
        }
        Some(other) => Evaluation::Text(as_text(other)?),
    };
    Ok(Reward {
        reward: integer(object, "reward")?,
        evaluation,
        is_blocked: flag("is_blocked")?,
        submit: flag("submit")?,
        submission_judgment: optional_text(object, "submission_judgment")?,
    })
}

fn trajectory_metadata(value: &Value) -> Converted<TrajectoryMetadata> {
    let Json::Object(mut map) = json(value)? else { return Ok(TrajectoryMetadata::default()) };
    let ids = match map.shift_remove("keypoint_step_ids") {
        None | Some(Json::Null) => Vec::new(),
        Some(ids) => serde_json::from_value(ids).map_err(|error| format!("keypoint_step_ids: {error}"))?,
    };
    // An unknown outcome stays in the extra data.
    let outcome: Option<Outcome> =
        map.get("outcome").and_then(|outcome| serde_json::from_value(outcome.clone()).ok());
    if outcome.is_some() {
        map.shift_remove("outcome");
    }
    // As above, values of another type stay in the extra data.
    let group_id = map.get("group_id").and_then(Json::as_str).map(str::to_owned);
    if group_id.is_some() {
        map.shift_remove("group_id");
    }
    let versions = map.get("policy_versions").cloned().and_then(|list| serde_json::from_value(list).ok());
    if versions.is_some() {
        map.shift_remove("policy_versions");
    }
    let policy_versions: Vec<String> = versions.unwrap_or_default();
    let forked_at_step = map.get("forked_at_step").and_then(Json::as_u64);
    if forked_at_step.is_some() {
        map.shift_remove("forked_at_step");
    }
    let network: Option<NetworkSummary> =
        map.get("network").and_then(|network| serde_json::from_value(network.clone()).ok());
    if network.is_some() {
        map.shift_remove("network");
    }
    Ok(TrajectoryMetadata {
        keypoint_step_ids: ids,
        outcome,
        group_id,
        policy_versions,
        forked_at_step,
        network,
        extra: map,
    })
}

/// Restores the data that our writer keeps in `trajectory_metadata`.
fn restore_extras(metadata: &mut TrajectoryMetadata, task: &mut Task, steps: &mut [Step]) -> Converted<()> {
    if let Some(Json::Object(extra)) = metadata.extra.shift_remove(TASK_EXTRA) {
        task.extra = extra;
    }
    if let Some(extras) = metadata.extra.shift_remove(STEP_EXTRAS) {
        let extras: Vec<StepExtras> =
            serde_json::from_value(extras).map_err(|error| format!("{STEP_EXTRAS}: {error}"))?;
        for (step, extras) in steps.iter_mut().zip(extras) {
            step.extras = extras;
        }
    }
    Ok(())
}

/// Converts a dict to a map. Any other value becomes a map with the single key `value`.
fn map_or_value(value: Option<&Value>) -> Converted<Map<String, Json>> {
    match value {
        None | Some(Value::None) => Ok(Map::new()),
        Some(value) => Ok(match json(value)? {
            Json::Object(map) => map,
            other => Map::from_iter([("value".to_owned(), other)]),
        }),
    }
}

fn text(object: &Object, name: &str) -> Converted<String> {
    optional_text(object, name).map(Option::unwrap_or_default)
}

fn optional_text(object: &Object, name: &str) -> Converted<Option<String>> {
    match object.get(name) {
        None | Some(Value::None) => Ok(None),
        Some(value) => as_text(value).map(Some),
    }
}

/// Returns strings unchanged and other values as JSON.
fn as_text(value: &Value) -> Converted<String> {
    match value {
        Value::Text(text) => Ok(text.to_string()),
        Value::None => Ok(String::new()),
        other => json(other).map(|json| json.to_string()),
    }
}

fn integer(object: &Object, name: &str) -> Converted<i64> {
    match object.get(name) {
        None | Some(Value::None) => Ok(0),
        Some(value) => as_integer(value, name),
    }
}

fn as_integer(value: &Value, name: &str) -> Converted<i64> {
    match value {
        Value::Bool(value) => Ok(i64::from(*value)),
        Value::Int(value) => i64::try_from(*value).map_err(|_| format!("{name} is {value}, out of range")),
        #[allow(clippy::float_cmp, reason = "checks for exactly a whole number")]
        Value::Float(value) if value.trunc() == *value && value.abs() < 9e15 => Ok(*value as i64),
        Value::Float(value) => Err(format!("{name} is {value}, not a whole number")),
        other => Err(format!("{name} is {}, not a number", other.kind())),
    }
}

/// Converts a value to JSON. The unpickler limits the nesting.
pub(crate) fn json(value: &Value) -> Converted<Json> {
    Ok(match value {
        Value::None => Json::Null,
        Value::Bool(value) => Json::Bool(*value),
        Value::Int(value) => match (i64::try_from(*value), u64::try_from(*value)) {
            (Ok(value), _) => value.into(),
            (_, Ok(value)) => value.into(),
            _ => Number::from_f64(*value as f64).map_or(Json::Null, Json::Number),
        },
        Value::Float(value) => Number::from_f64(*value).map_or(Json::Null, Json::Number),
        Value::Text(text) => Json::String(text.to_string()),
        Value::Bytes(bytes) => Json::String(String::from_utf8_lossy(bytes).into_owned()),
        Value::List(_) | Value::Tuple(_) | Value::Set(_) => {
            let items = value.as_items().unwrap_or_default();
            Json::Array(items.iter().map(json).collect::<Converted<_>>()?)
        }
        Value::Dict(_) => {
            let entries = value.as_entries().unwrap_or_default();
            let pair = |(key, value): &(Value, Value)| Ok((as_text(key)?, json(value)?));
            Json::Object(entries.iter().map(pair).collect::<Converted<_>>()?)
        }
        Value::Object(object) => {
            return Err(format!("expected plain data, found an object of class {}", object.class()));
        }
    })
}
