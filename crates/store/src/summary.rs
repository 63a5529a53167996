//! The part of a trajectory that lists, tables and metrics need, small enough to hold all summaries in memory.

use std::path::Path;

use proto::network::MatchCounts;
use proto::trajectory::{Action, Outcome, TaskId, Trajectory};
use serde::{Deserialize, Serialize};
use serde_json::Value;

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
    /// Total number of characters after `Memory:` in all raw responses; `None` in files written before it was recorded.
    pub memory_chars: Option<u64>,
    pub group_id: Option<String>,
    /// The field `distribution` of the task file, which marks test tasks as `ood` (out of distribution) or otherwise.
    pub distribution: Option<String>,
    /// How an archive answered the requests of a replayed episode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay: Option<MatchCounts>,
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
            memory_chars: Some(steps.iter().map(|step| memory_chars(&step.response.raw_response)).sum()),
            group_id: metadata.group_id.clone(),
            distribution: task.extra.get("distribution").and_then(Value::as_str).map(str::to_owned),
            replay: metadata.network.as_ref().map(|network| network.matches).filter(|all| all.total() > 0),
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

    /// Whether the task is out of distribution. A task without the field counts as such, as in the Python system.
    pub fn is_ood(&self) -> bool {
        self.distribution.as_deref().is_none_or(|distribution| distribution == "ood")
    }

    pub fn is_answered(&self) -> bool {
        self.last_action.as_deref() == Some(Action::ANSWER)
    }
}

/// Returns the length of the text after `Memory:` on the first line that starts with it.
fn memory_chars(response: &str) -> u64 {
    let memory = response.lines().find_map(|line| line.trim_start().strip_prefix("Memory:"));
    memory.map_or(0, |text| text.trim().chars().count() as u64)
}

fn image_directory(image_path: &str) -> Option<String> {
    let parent = Path::new(image_path.strip_prefix("file://").unwrap_or(image_path)).parent()?;
    (!parent.as_os_str().is_empty()).then(|| parent.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_the_first_line_that_starts_with_it() {
        let table = [
            ("Memory: seen ünf pages \nAction: x", 14),
            ("Progress: My Memory: x\n  Memory:  ab\nMemory: second", 2),
            ("Memory:\nbelow", 0),
            ("memory: no", 0),
            ("", 0),
        ];
        for (response, length) in table {
            assert_eq!(memory_chars(response), length, "{response:?}");
        }
    }

    #[test]
    fn summary_without_new_fields_is_readable() {
        let old: Summary = serde_json::from_str(r#"{"task_name": "a", "steps": 3}"#).unwrap();
        assert_eq!((old.memory_chars, old.distribution.as_deref(), old.is_ood()), (None, None, true));
    }
}
