//! Checkpoints on disk: finds what a trainer wrote, verifies that it is complete, publishes it under its final name and makes
//! it the current one. Nothing of an earlier iteration is removed before its successor is verified.

mod current;
mod locate;
mod safetensors;
mod verify;

use std::io;
use std::path::PathBuf;

pub(crate) use current::replace_link;
pub use current::{Checkpoints, PublishedBy};
pub use locate::locate;
pub use verify::verify;

#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    #[error("the trainer wrote nothing to {}", .0.display())]
    NoOutput(PathBuf),
    #[error(
        "there is no checkpoint in {}: expected {expected}. Set train.checkpoint if the trainer writes it elsewhere below \
         its output", output.display()
    )]
    NotFound { output: PathBuf, expected: String },
    #[error("the checkpoint {} has no {what}", path.display())]
    Missing { path: PathBuf, what: String },
    #[error("{} is damaged: {reason}", path.display())]
    Damaged { path: PathBuf, reason: String },
    #[error("cannot {operation} {}: {source}", path.display())]
    Io { operation: &'static str, path: PathBuf, source: io::Error },
}

impl CheckpointError {
    pub(crate) fn io(operation: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { operation, path, source }
    }
}
