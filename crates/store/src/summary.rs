//! The part of a trajectory that lists, tables and metrics need, small enough to hold all summaries in memory.

use std::path::Path;

use proto::trajectory::{Action, Outcome, TaskId, Trajectory};
use serde::{Deserialize, Serialize};

/// Summary of one trajectory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    pub trajectory_index: i64,
    pub task_id: Option<TaskId>,
    pub task_name: String,
    pub website: String,
    pub domain: String,
    pub subdomain: String,
    pub difficulty: i64,
    pub max_steps: i64,
    pub steps: u64,
    /// Reward of the last step; 0 if there are no steps.
    pub reward: i64,
    pub is_blocked: bool,
    /// The recorded outcome; files written by the Python system have none.
    pub outcome: Option<Outcome>,
    pub first_action: Option<String>,
    pub last_action: Option<String>,
    /// Whether any step has no action.
    pub lacks_action: bool,
    pub gobacks: u64,
    /// Total number of characters in all raw responses.
    pub response_chars: u64,
    /// Number of steps whose screenshot equals the next one.
    pub unchanged_screenshots: u64,
    /// Directory of the first recorded screenshot.
    pub image_directory: Option<String>,
}

impl Summary {
    pub fn of(trajectory: &Trajectory) -> Self {
        let Trajectory { task, steps, metadata } = trajectory;
        let key = |action: &Option<Action>| action.as_ref().map(|action| action.key.clone());
        let last = steps.last();
        Self {
            trajectory_index: task.trajectory_index,
            task_id: task.task_id.clone(),
            task_name: task.task_name.clone(),
            website: task.website.clone(),
            domain: task.domain.clone(),
            subdomain: task.subdomain.clone(),
            difficulty: task.difficulty,
            max_steps: task.max_steps,
            steps: steps.len() as u64,
            reward: last.map_or(0, |step| step.reward.reward),
            is_blocked: last.is_some_and(|step| step.reward.is_blocked),
            outcome: metadata.outcome,
            first_action: steps.first().and_then(|step| key(&step.action)),
            last_action: last.and_then(|step| key(&step.action)),
            lacks_action: steps.iter().any(|step| step.action.is_none()),
            gobacks: steps
                .iter()
                .filter(|step| step.action.as_ref().is_some_and(|action| action.key == Action::GO_BACK))
                .count() as u64,
            response_chars: steps.iter().map(|step| step.response.raw_response.chars().count() as u64).sum(),
            unchanged_screenshots: steps
                .iter()
                .filter(|step| step.same_as_next_screenshot == Some(true))
                .count() as u64,
            image_directory: steps.iter().find_map(|step| image_directory(&step.observation.image_path)),
        }
    }

    /// The recorded outcome, or the one that follows from the last reward.
    pub fn outcome_or_inferred(&self) -> Outcome {
        self.outcome.unwrap_or(if self.is_blocked {
            Outcome::Blocked
        } else if self.reward == 1 {
            Outcome::Success
        } else {
            Outcome::Failure
        })
    }

    pub fn is_answered(&self) -> bool {
        self.last_action.as_deref() == Some(Action::ANSWER)
    }
}

fn image_directory(image_path: &str) -> Option<String> {
    let parent = Path::new(image_path.strip_prefix("file://").unwrap_or(image_path)).parent()?;
    (!parent.as_os_str().is_empty()).then(|| parent.to_string_lossy().into_owned())
}
