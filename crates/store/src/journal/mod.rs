//! The journal of a run: an append-only file of checked lines. A trajectory counts as finished once its line is
//! durable; a torn last line is cut on resume and everything before it is kept. Owns the `.checkpoint` files.

mod commit;
mod frame;
mod lock;
mod read;
mod record;
mod scan;
mod writer;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) use lock::open_locked as lock_existing;
pub use lock::{is_being_written, set_aside};
pub use read::{Entry, JournalReader, LineError};
pub use record::{Episode, Finished, Record, StepRecord};
pub use scan::{Damage, Located, Scan, UnfinishedEpisode, read_finished, read_unfinished, scan};
pub use writer::{Journal, Recovered};

/// The format that this code writes; a journal of a later one is refused.
pub const FORMAT: u32 = 1;

#[derive(Clone, Debug, thiserror::Error)]
pub enum JournalError {
    #[error(
        "{path} is the journal of an unfinished run with {finished} of {tasks} trajectories; resume it, or set it \
         aside to start afresh", path = path.display()
    )]
    Unfinished { path: PathBuf, finished: u64, tasks: u64 },
    #[error("{path} is being written by another process", path = path.display())]
    Locked { path: PathBuf },
    #[error("{path} does not begin with the record of a run: {reason}", path = path.display())]
    NoRun { path: PathBuf, reason: String },
    #[error("no space left to write {path}; what is in it is whole and can be resumed", path = path.display())]
    OutOfSpace { path: PathBuf, source: Arc<io::Error> },
    #[error("cannot {doing} {path}: {source}", path = path.display())]
    Io { doing: &'static str, path: PathBuf, source: Arc<io::Error> },
    #[error("{path} is damaged at byte {offset}: {reason}", path = path.display())]
    Damaged { path: PathBuf, offset: u64, reason: String },
    #[error("cannot write a record to {path}: {reason}", path = path.display())]
    Encode { path: PathBuf, reason: String },
    #[error("the journal {path} is closed", path = path.display())]
    Closed { path: PathBuf },
}

impl JournalError {
    pub(crate) fn io(doing: &'static str, path: &Path, source: io::Error) -> Self {
        let (path, is_out_of_space) = (path.to_path_buf(), crate::durable::is_out_of_space(&source));
        let source = Arc::new(source);
        if is_out_of_space { Self::OutOfSpace { path, source } } else { Self::Io { doing, path, source } }
    }

    pub const fn is_out_of_space(&self) -> bool {
        matches!(self, Self::OutOfSpace { .. })
    }
}

#[cfg(test)]
mod tests;
