//! The kinds of lines in a journal, owned for reading and borrowed for writing. The JSON is the same.

use proto::trajectory::{Step, Task, Trajectory};
use serde::{Deserialize, Serialize};

use crate::run::RunRecord;
use crate::summary::Summary;

/// An episode began; `attempt` counts its fresh starts after infrastructure losses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Episode {
    pub trajectory_index: i64,
    pub attempt: u32,
    pub task: Task,
    /// The folder of its pictures, by its name under `images/`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images: Option<String>,
}

/// A step of an episode that is still running.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepRecord {
    pub trajectory_index: i64,
    pub attempt: u32,
    pub step_index: u32,
    pub step: Step,
}

/// A trajectory as it will be in the `.pt` file. A later one of the same index replaces it (a second judgement).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finished {
    pub summary: Summary,
    pub trajectory: Trajectory,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Record {
    Run(Box<RunHeader<RunRecord>>),
    Episode(Box<Episode>),
    Step(Box<StepRecord>),
    Finished(Box<Finished>),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunHeader<R> {
    pub format: u32,
    #[serde(flatten)]
    pub run: R,
}

/// The same records, borrowed from the caller.
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
    },
    Finished {
        summary: Box<Summary>,
        trajectory: &'a Trajectory,
    },
}

/// The same records without their bulk, for listing.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum LightRecord {
    Run(Box<RunHeader<RunRecord>>),
    /// A task's fields carry the names they have in a summary, so one is read as the other.
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
