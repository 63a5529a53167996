//! Compares two trajectories: task, outcome and each step.

use std::fmt;

use proto::trajectory::{Step, Trajectory};
use serde::Serialize;

use super::terminal_text::single_line;
use crate::summary::Summary;

/// A field that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// `None` for a difference that does not belong to a step.
    pub step: Option<usize>,
    #[serde(rename = "what")]
    pub field: &'static str,
    pub left: String,
    pub right: String,
}

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TrajectoryDiff {
    pub is_same_task: bool,
    /// Number of initial steps with the same actions.
    pub common_steps: usize,
    pub differences: Vec<Difference>,
}

pub fn diff(left: &Trajectory, right: &Trajectory) -> TrajectoryDiff {
    let mut differences = Vec::new();
    let mut compare = |step: Option<usize>, field: &'static str, left: String, right: String| {
        if left != right {
            differences.push(Difference { step, field, left, right });
        }
    };
    let (a, b) = (Summary::of(left), Summary::of(right));
    compare(None, "task", left.task.task_name.clone(), right.task.task_name.clone());
    compare(None, "website", left.task.website.clone(), right.task.website.clone());
    compare(
        None,
        "outcome",
        a.outcome_or_inferred().as_str().into(),
        b.outcome_or_inferred().as_str().into(),
    );
    compare(None, "reward", a.reward.to_string(), b.reward.to_string());
    compare(None, "steps", a.steps.to_string(), b.steps.to_string());
    let step_count = left.steps.len().max(right.steps.len());
    for number in 0..step_count {
        let (a, b) = (left.steps.get(number), right.steps.get(number));
        for (field, value) in STEP_FIELDS {
            let value_of = |step: Option<&Step>| step.map_or_else(|| "–".to_owned(), value);
            compare(Some(number), field, value_of(a), value_of(b));
        }
    }
    let common_steps = left.steps.iter().zip(&right.steps).take_while(|(a, b)| a.action == b.action).count();
    let is_same_task = left.task.task_name == right.task.task_name && left.task.website == right.task.website;
    TrajectoryDiff { is_same_task, common_steps, differences }
}

/// The name of a field of a step, and its value as text.
type StepField = (&'static str, fn(&Step) -> String);

const STEP_FIELDS: [StepField; 5] = [
    ("url", |step| step.observation.url.clone()),
    ("page", |step| step.observation.title.clone()),
    ("reply", |step| step.response.raw_response.clone()),
    ("action", |step| {
        step.action.as_ref().map_or_else(
            || "none".to_owned(),
            |action| format!("{} {}", action.key, serde_json::Value::Object(action.arguments.clone())),
        )
    }),
    ("reward", |step| step.reward.reward.to_string()),
];

impl fmt::Display for TrajectoryDiff {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.differences.is_empty() {
            return writeln!(out, "the trajectories are equal in every step");
        }
        writeln!(out, "initial steps with the same actions: {}", self.common_steps)?;
        let mut current = None;
        for difference in &self.differences {
            if difference.step != current {
                current = difference.step;
                if let Some(step) = current {
                    writeln!(out, "step {step}")?;
                }
            }
            writeln!(out, "  {}", difference.field)?;
            writeln!(out, "    < {}", single_line(&difference.left, 160))?;
            writeln!(out, "    > {}", single_line(&difference.right, 160))?;
        }
        Ok(())
    }
}
