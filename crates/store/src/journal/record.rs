//! The records in a journal: owned types for reading and borrowed types for writing, with the same JSON.

use proto::trajectory::{Step, Task, Trajectory};
use serde::{Deserialize, Serialize};

use crate::prompts::{Prompts, PromptsRef};
use crate::run_record::RunRecord;
use crate::summary::Summary;

/// The start of an episode. `attempt` counts the restarts after infrastructure errors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Episode {
    pub trajectory_index: i64,
    pub attempt: u32,
    pub task: Task,
    /// The name of its screenshot folder below `images/`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images: Option<String>,
}

/// A step of a running episode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepRecord {
    pub trajectory_index: i64,
    pub attempt: u32,
    pub step_index: u32,
    pub step: Step,
    /// The prompt, if the step does not contain it; its parts continue those of earlier steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Prompts>,
}

/// A finished trajectory. A later record with the same index replaces it, for example after a second judgment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finished {
    pub summary: Summary,
    pub trajectory: Trajectory,
    /// The prompts, if the steps do not contain them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompts: Option<Prompts>,
}

impl Finished {
    /// Returns the trajectory with its prompts; `None` if the record lacks parts of them.
    pub fn into_trajectory(self) -> Option<Trajectory> {
        let Self { mut trajectory, prompts, .. } = self;
        if let Some(prompts) = prompts {
            prompts.restore(&mut trajectory.steps)?;
        }
        Some(trajectory)
    }
}

/// One record of a journal.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Record {
    Run(Box<RunHeader<RunRecord>>),
    Episode(Box<Episode>),
    Step(Box<StepRecord>),
    Finished(Box<Finished>),
}

/// The first record: the format version and the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunHeader<R> {
    pub format: u32,
    #[serde(flatten)]
    pub run: R,
}

/// [`Record`] with data borrowed from the caller.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RecordRef<'a> {
    Run(RunHeader<&'a RunRecord>),
    Episode {
        trajectory_index: i64,
        attempt: u32,
        task: &'a Task,
        #[serde(skip_serializing_if = "Option::is_none")]
        images: Option<&'a str>,
    },
    Step {
        trajectory_index: i64,
        attempt: u32,
        step_index: u32,
        step: &'a Step,
        #[serde(skip_serializing_if = "Option::is_none")]
        prompt: Option<PromptsRef<'a>>,
    },
    Finished {
        summary: Box<Summary>,
        trajectory: &'a Trajectory,
        #[serde(skip_serializing_if = "Option::is_none")]
        prompts: Option<&'a Prompts>,
    },
}

/// [`Record`] without prompts, replies and steps, for listing.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum LightRecord {
    Run(Box<RunHeader<RunRecord>>),
    /// A task has the same field names as a summary, so that it is read as a summary.
    Episode {
        trajectory_index: i64,
        attempt: u32,
        #[serde(default)]
        task: Box<Summary>,
        #[serde(default)]
        images: Option<String>,
    },
    Step {
        trajectory_index: i64,
        attempt: u32,
    },
    Finished {
        summary: Box<Summary>,
    },
}
