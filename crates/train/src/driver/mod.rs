//! Runs a loop. `worker` does the part of one rank in a phase, `leader` decides and records, and `follower` does
//! what the leader's state says.

mod dry_run;
mod follower;
mod leader;
mod place;
mod worker;

use std::path::PathBuf;

use store::SavePath;
use store::loop_state::{LoopStateError, Phase};

pub use crate::launcher::Stop;
pub use crate::lock::LockError;
pub use crate::ranks::RankId;
pub use dry_run::commands;

use crate::checkpoint::CheckpointError;
use crate::config::LoopConfig;
use crate::ranks::RankError;
use crate::server::ServeError;
use crate::supervisor::ProgramError;

/// What a loop needs beside its configuration.
#[derive(Debug)]
pub struct LoopOptions {
    /// Our own binary.
    pub webgym: PathBuf,
    /// Continue the loop of this save path.
    pub resume: bool,
    pub rank: RankId,
    /// The key of the model server.
    pub server_key: Option<String>,
    pub stop: Stop,
}

/// How a loop ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoopOutcome {
    Finished,
    /// Stopped on request; `--resume` continues it.
    Stopped,
}

#[derive(Debug, thiserror::Error)]
pub enum LoopError {
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    State(#[from] LoopStateError),
    #[error(transparent)]
    Place(#[from] PlaceError),
    #[error("iteration {iteration}, {phase}: {source}")]
    Phase { iteration: u64, phase: Phase, source: Box<PhaseError> },
    #[error(transparent)]
    Server(ServeError),
    #[error("rank 0 does not answer, so there is nothing to follow: {0}")]
    Leader(RankError),
}

/// Why a loop cannot start.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    #[error("{} has a loop that is not finished (iteration {iteration}). Continue it with --resume", save_path.display())]
    Unfinished { save_path: PathBuf, iteration: u64 },
    #[error(
        "there is no model to begin with: set `model` to a folder or a name that the model server knows ({} does not exist)",
        checkpoint.display()
    )]
    NoModel { checkpoint: PathBuf },
    #[error(
        "all {iterations} iterations are done. Set `iterations` to a higher number and use --resume to continue"
    )]
    AllDone { iterations: u64 },
    #[error("cannot list the iterations of {}: {source}", save_path.display())]
    List { save_path: PathBuf, source: std::io::Error },
    #[error(
        "iteration {iteration} of {path} has files of single ranks only. Merge them first: webgym aggregate {path} --iteration \
         {iteration}", path = save_path.display()
    )]
    NotMerged { save_path: PathBuf, iteration: u64 },
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
}

/// Why a phase failed.
#[derive(Debug, thiserror::Error)]
pub enum PhaseError {
    #[error(transparent)]
    Program(#[from] ProgramError),
    #[error(transparent)]
    Serve(#[from] ServeError),
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    #[error(transparent)]
    Rank(#[from] RankError),
    #[error("the model server ended while it was needed: {0}")]
    ServerLost(ProgramError),
    #[error("{} does not exist although webgym rollout has ended without an error", .0.display())]
    NotCollected(PathBuf),
    #[error("the disk of {} has {free_gb:.1} GB left, and min_free_gb is {min_gb}: free some space, then use --resume", path.display())]
    DiskFull { path: PathBuf, free_gb: f64, min_gb: f64 },
    #[error(
        "the checkpoint of iteration {iteration} cannot be served: {reason}. It was set aside as {}, and {model} is the current \
         model again", aside.display()
    )]
    RolledBack { iteration: u64, reason: String, aside: PathBuf, model: String },
    #[error(
        "neither the new model nor the last good one can be served, so the new checkpoint is kept. The new one: {new}. The last \
         good one: {old}"
    )]
    NothingServable { new: Box<ServeError>, old: Box<ServeError> },
    #[error("cannot {operation} {}: {source}", path.display())]
    Io { operation: &'static str, path: PathBuf, source: std::io::Error },
}

impl PhaseError {
    fn io(operation: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { operation, path, source }
    }

    /// Whether the phase ended because the loop was asked to stop.
    const fn is_stop(&self) -> bool {
        matches!(
            self,
            Self::Program(ProgramError::Stopped { .. })
                | Self::Serve(ServeError::Program(ProgramError::Stopped { .. }))
                | Self::ServerLost(ProgramError::Stopped { .. })
        )
    }

    /// Whether another attempt could succeed without anybody's help.
    const fn may_be_retried(&self) -> bool {
        !matches!(
            self,
            Self::DiskFull { .. }
                | Self::RolledBack { .. }
                | Self::NothingServable { .. }
                | Self::Program(ProgramError::NotStarted { .. })
                | Self::Serve(ServeError::PortInUse { .. })
        )
    }
}

/// Runs a loop to its end, or follows rank 0.
pub async fn run(config: LoopConfig, options: LoopOptions) -> Result<LoopOutcome, LoopError> {
    let save_path = SavePath::new(config.save_path.clone().unwrap_or_default());
    let worker = worker::Worker::new(config, save_path, options).await?;
    let beating = tokio::spawn(worker.ranks.clone().beat());
    let outcome =
        if worker.ranks.own.is_first() { leader::lead(worker).await } else { follower::follow(worker).await };
    beating.abort();
    outcome
}
