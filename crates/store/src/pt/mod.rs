//! `.pt` files: PyTorch's container around a pickle of trajectories. Writes them as a stream, and reads our own files
//! and those of the Python system as plain data.

mod container;
mod convert;
mod from_journal;
mod index;
mod reader;
mod writer;
mod zip_writer;

use std::io;
use std::path::{Path, PathBuf};

pub use from_journal::{FinishedIteration, finish_iteration, write_from_journal};
pub use index::PtEntry;
pub use reader::{PtFile, Trajectories};
pub use writer::{PtWriter, rewrite};

use crate::journal::JournalError;
use crate::unpickle::PickleError;

#[derive(Debug, thiserror::Error)]
pub enum PtError {
    #[error("cannot {operation} {path}: {source}", path = path.display())]
    Io { operation: &'static str, path: PathBuf, source: io::Error },
    #[error("{path} already exists", path = path.display())]
    Exists { path: PathBuf },
    #[error("{path} is not a trajectory file: {reason}", path = path.display())]
    Container { path: PathBuf, reason: String },
    #[error("{path}: {source}", path = path.display())]
    Pickle { path: PathBuf, source: PickleError },
    #[error("{path}: trajectory {position}: {reason}", path = path.display())]
    Shape { path: PathBuf, position: usize, reason: String },
    #[error("cannot write {path}: {reason}", path = path.display())]
    Encode { path: PathBuf, reason: String },
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl PtError {
    pub fn io(operation: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        if source.kind() == io::ErrorKind::AlreadyExists {
            Self::Exists { path }
        } else {
            Self::Io { operation, path, source }
        }
    }

    pub fn is_out_of_space(&self) -> bool {
        match self {
            Self::Io { source, .. } => crate::durable::is_out_of_space(source),
            Self::Journal(error) => error.is_out_of_space(),
            _ => false,
        }
    }
}
