//! Why a run cannot be planned.

use std::path::{Path, PathBuf};

use store::JournalError;

use crate::session_options::SessionError;

use super::tasks::TaskError;

#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    #[error("{key} is not set; give it on the command line, for example {key}={example}")]
    Missing { key: &'static str, example: &'static str },
    #[error("env_config.{0}: {1}")]
    Ranks(&'static str, String),
    #[error("{0}")]
    Tasks(#[from] TaskError),
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error("there are no tasks to collect: {0}")]
    NoTasks(String),
    #[error("{0}")]
    Journal(#[from] JournalError),
    #[error(
        "{0}. To continue it, add --resume; to set it aside and start a new run, add --fresh (nothing is deleted)"
    )]
    Unfinished(JournalError),
    #[error("cannot {operation} {path}: {source}", path = path.display())]
    Io { operation: &'static str, path: PathBuf, source: std::io::Error },
    #[error("{path} does not match the run to resume: {reason}", path = path.display())]
    Mismatch { path: PathBuf, reason: String },
    #[error(
        "the ranks have different configurations: {key} is {here} here, but {there} for the rank that started the run \
         ({path}). Start all ranks with the same configuration", path = path.display()
    )]
    DifferentConfig { path: PathBuf, key: String, there: String, here: String },
    #[error(
        "iteration {iteration} was started by another launch at {begun} ({path}) and is not merged. To take part in it, add \
         --resume; to set it aside and start a new run, add --fresh, for all ranks", path = path.display()
    )]
    OtherLaunch { path: PathBuf, begun: String, iteration: u64 },
    #[error("iteration {iteration} was collected and merged without this rank; there is nothing left to do")]
    MergedWithout { iteration: u64 },
    #[error("cannot read what earlier iterations collected: {0}")]
    Earlier(String),
}

impl PlanError {
    pub(super) fn io(operation: &'static str, path: &Path, source: std::io::Error) -> Self {
        Self::Io { operation, path: path.to_owned(), source }
    }
}
