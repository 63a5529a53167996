//! What is known of a run as a whole: the header of its journal and the `metadata` of its `.pt` file.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::layout::{IterationId, Split};

/// The `metadata` dict of a `.pt` file. Files of other origin may lack any of it and carry more.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunMetadata {
    pub solution_model: Option<String>,
    pub judge_model: Option<String>,
    pub judge_model_overrides: Value,
    pub dataset_file: Option<String>,
    pub split: Option<String>,
    pub server_size: Option<i64>,
    /// A number, or steps by difficulty class.
    pub max_steps: Value,
    /// ISO 8601.
    pub timestamp: Option<String>,
    pub iteration: Option<i64>,
    pub seed: Option<u64>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// The first line of a journal: enough to tell whether a resumed run is the same run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    pub split: Split,
    pub iteration: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    pub seed: u64,
    /// Digest of the resolved configuration; chosen and compared by the caller.
    pub config_digest: String,
    /// How many trajectories make the run complete.
    pub tasks: u64,
    pub metadata: RunMetadata,
}

impl RunRecord {
    pub const fn id(&self) -> IterationId {
        IterationId { split: self.split, iteration: self.iteration, rank: self.rank }
    }
}
