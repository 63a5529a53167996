//! `.pt` files: PyTorch's container around a pickle of trajectories. Writes them in one stream, reads ours and the
//! Python system's as data only.

mod container;
mod convert;
mod index;
mod read;
mod write;

use std::io;
use std::path::{Path, PathBuf};

pub use index::PtEntry;
pub use read::{PtFile, Trajectories};
pub use write::{PtWriter, rewrite, write_from_journal};

use crate::journal::JournalError;
use crate::unpickle::PickleError;

#[derive(Debug, thiserror::Error)]
pub enum PtError {
    #[error("cannot {doing} {path}: {source}", path = path.display())]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
    #[error("{path} is there already", path = path.display())]
    Exists { path: PathBuf },
    #[error("{path} is not a file of trajectories: {reason}", path = path.display())]
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
    pub fn io(doing: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        if source.kind() == io::ErrorKind::AlreadyExists {
            Self::Exists { path }
        } else {
            Self::Io { doing, path, source }
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
