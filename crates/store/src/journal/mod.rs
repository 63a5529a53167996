//! The journal of a run (`.checkpoint` files): an append-only file of lines with checksums. A trajectory counts as
//! finished once its line is durable. Resuming truncates an incomplete last line and keeps everything before it.

mod frame;
mod handle;
mod lock;
mod reader;
mod record;
mod scan;
mod writer_thread;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use handle::{Journal, Recovered};
pub(crate) use lock::open_locked as lock_existing;
pub use lock::{is_being_written, set_aside};
pub use reader::{Entry, JournalReader, LineError};
pub use record::{Episode, Finished, Record, StepRecord};
pub use scan::{
    DamagedLine, LocatedRecord, Scan, UnfinishedEpisode, finished_positions, read_finished, read_finished_at,
    read_unfinished, run_checksum, scan,
};
pub use writer_thread::FinishedPosition;

/// The format version that this code writes. Journals with a later version are refused.
pub const FORMAT: u32 = 2;

/// The format version before prompts were stored as parts. A journal that began with it is continued with it.
const FORMAT_WITH_WHOLE_PROMPTS: u32 = 1;

#[derive(Clone, Debug, thiserror::Error)]
pub enum JournalError {
    #[error(
        "{path} is the journal of an unfinished run with {finished} of {tasks} trajectories; resume that run, or set \
         the journal aside to start a new one", path = path.display()
    )]
    Unfinished { path: PathBuf, finished: u64, tasks: u64 },
    #[error("{path} is locked by another process that writes to it", path = path.display())]
    Locked { path: PathBuf },
    #[error("{path} does not start with a run record: {reason}", path = path.display())]
    NoRun { path: PathBuf, reason: String },
    #[error("no space left to write {path}; its content is intact and the run can be resumed", path = path.display())]
    OutOfSpace { path: PathBuf, source: Arc<io::Error> },
    #[error("cannot {operation} {path}: {source}", path = path.display())]
    Io { operation: &'static str, path: PathBuf, source: Arc<io::Error> },
    #[error("{path} is damaged at byte {offset}: {reason}", path = path.display())]
    Damaged { path: PathBuf, offset: u64, reason: String },
    #[error("cannot write a record to {path}: {reason}", path = path.display())]
    Encode { path: PathBuf, reason: String },
    #[error("the journal {path} is closed", path = path.display())]
    Closed { path: PathBuf },
}

impl JournalError {
    pub(crate) fn io(operation: &'static str, path: &Path, source: io::Error) -> Self {
        let (path, is_out_of_space) = (path.to_path_buf(), crate::durable::is_out_of_space(&source));
        let source = Arc::new(source);
        if is_out_of_space { Self::OutOfSpace { path, source } } else { Self::Io { operation, path, source } }
    }

    pub const fn is_out_of_space(&self) -> bool {
        matches!(self, Self::OutOfSpace { .. })
    }
}

#[cfg(test)]
mod step_tests;
#[cfg(test)]
mod tests;
