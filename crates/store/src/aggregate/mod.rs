//! Merges the rank files of an iteration into one file, in the order of the trajectory indices, and reports what is
//! missing. Finished trajectories count even if their rank has not finished. An existing file is replaced only on
//! request. Rank files are removed once the merged file is complete and durable.

mod index_ranges;
mod indexed_file;
mod merge;
mod rank_status;
mod report;

use std::path::PathBuf;

pub use merge::aggregate;
pub use rank_status::{RankStatus, files_of_run, rank_status};
pub use report::AggregateReport;

use crate::layout::Split;
use crate::pt::PtError;

/// Metadata key of a run with several ranks: the unique id of the run.
pub const RUN_ID: &str = "run_id";
/// Metadata key of a trajectory that several ranks may have collected: when it was finished.
pub const FINISHED_AT: &str = "finished_at";

/// Metadata key of a merged file: the ranks whose trajectories it contains.
pub const MERGED_RANKS: &str = "merged_ranks";

#[derive(Clone, Debug, Default)]
pub struct AggregateOptions {
    /// The expected number of ranks; by default, the highest rank with a file plus one.
    pub ranks: Option<u32>,
    /// The expected number of trajectories; by default, the highest index plus one. If this is given and none is
    /// missing, unfinished ranks do not prevent the merge.
    pub tasks: Option<u64>,
    /// Skip files of runs with another id.
    pub run_id: Option<String>,
    /// Merge even if ranks are missing or still running.
    pub partial: bool,
    /// Replace an existing merged file.
    pub overwrite: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum AggregateError {
    #[error("{split} iteration {iteration} has no rank files under {path}", path = path.display())]
    NoFiles { split: Split, iteration: u64, path: PathBuf },
    #[error("{path} already exists; add --overwrite to replace it", path = path.display())]
    Exists { path: PathBuf },
    #[error(
        "not all ranks have finished: missing {missing:?}, running or interrupted {unfinished:?}; resume them, or add \
         --partial to merge what exists"
    )]
    Incomplete { missing: Vec<u32>, unfinished: Vec<u32> },
    #[error(transparent)]
    File(#[from] PtError),
}
