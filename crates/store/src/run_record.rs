//! Data about a whole run: the header of its journal and the `metadata` of its `.pt` file.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::layout::{IterationId, Split};

/// The `metadata` dict of a `.pt` file. Files written by the Python system may lack fields or have additional ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunMetadata {
    pub solution_model: Option<String>,
    pub judge_model: Option<String>,
    pub judge_model_overrides: Value,
    pub dataset_file: Option<String>,
    pub split: Option<String>,
    pub server_size: Option<i64>,
    /// A number, or a map from difficulty class to number of steps.
    pub max_steps: Value,
    /// Start of the run, in ISO 8601.
    pub timestamp: Option<String>,
    pub iteration: Option<i64>,
    pub seed: Option<u64>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// The first record of a journal. It identifies the run, so that resuming with another configuration can be refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    pub split: Split,
    pub iteration: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    pub seed: u64,
    /// Digest of the resolved configuration; computed and compared by the caller.
    pub config_digest: String,
    /// The number of trajectories in a complete run.
    pub tasks: u64,
    pub metadata: RunMetadata,
}

impl RunRecord {
    pub const fn id(&self) -> IterationId {
        IterationId { split: self.split, iteration: self.iteration, rank: self.rank }
    }
}
