//! Where two trajectories differ: in task, outcome, and step by step.

use std::fmt;

use proto::trajectory::{Step, Trajectory};
use serde::Serialize;

use super::text::line;
use crate::summary::Summary;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// `None` for the trajectory as a whole.
    pub step: Option<usize>,
    pub what: &'static str,
    pub left: String,
    pub right: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TrajectoryDiff {
    pub is_same_task: bool,
    /// The first steps in which the same was done.
    pub common_steps: usize,
    pub differences: Vec<Difference>,
}

pub fn diff(left: &Trajectory, right: &Trajectory) -> TrajectoryDiff {
    let mut differences = Vec::new();
    let mut compare = |step: Option<usize>, what: &'static str, left: String, right: String| {
        if left != right {
            differences.push(Difference { step, what, left, right });
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
    let longest = left.steps.len().max(right.steps.len());
    for number in 0..longest {
        let (a, b) = (left.steps.get(number), right.steps.get(number));
        let of =
            |step: Option<&Step>, tell: &dyn Fn(&Step) -> String| step.map_or_else(|| "–".to_owned(), tell);
        for (what, tell) in ASPECTS {
            compare(Some(number), what, of(a, &tell), of(b, &tell));
        }
    }
    let common_steps = left.steps.iter().zip(&right.steps).take_while(|(a, b)| a.action == b.action).count();
    let is_same_task = left.task.task_name == right.task.task_name && left.task.website == right.task.website;
    TrajectoryDiff { is_same_task, common_steps, differences }
}

type Aspect = (&'static str, fn(&Step) -> String);

const ASPECTS: [Aspect; 5] = [
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
            return writeln!(out, "the same in every step");
        }
        writeln!(out, "steps that did the same, from the first: {}", self.common_steps)?;
        let mut current = None;
        for difference in &self.differences {
            if difference.step != current {
                current = difference.step;
                if let Some(step) = current {
                    writeln!(out, "step {step}")?;
                }
            }
            writeln!(out, "  {}", difference.what)?;
            writeln!(out, "    < {}", line(&difference.left, 160))?;
            writeln!(out, "    > {}", line(&difference.right, 160))?;
        }
        Ok(())
    }
}
