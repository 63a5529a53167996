//! The end of a run: the journal becomes the iteration's file. Whatever moment this is interrupted at, doing it again
//! completes it.

use std::path::PathBuf;

use crate::durable::{Existing, sync_parent};
use crate::journal::{self, JournalError, lock_existing};
use crate::layout::{IterationId, SavePath};
use crate::pt::{PtError, PtFile, write_from_journal};

/// What became of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishedIteration {
    pub path: PathBuf,
    pub trajectories: u64,
    /// How many the run had announced.
    pub tasks: u64,
}

/// Writes `….iterationN` from `….iterationN.checkpoint` and removes the latter. The journal must be closed.
pub fn finish_iteration(save_path: &SavePath, id: IterationId) -> Result<FinishedIteration, PtError> {
    let journal = save_path.journal(id);
    let path = save_path.iteration_file(id);
    let lock = lock_existing(&journal)?;
    let scan = journal::scan(&journal)?;
    let trajectories = scan.finished.len() as u64;
    // An earlier try may have been interrupted after the file was complete; anything else in its place is kept.
    if !is_already_written(&path, trajectories) {
        write_from_journal(&journal, &path, Existing::Refuse)?;
    }
    std::fs::remove_file(&journal)
        .and_then(|()| sync_parent(&journal))
        .map_err(|error| JournalError::io("remove", &journal, error))?;
    drop(lock);
    Ok(FinishedIteration { path, trajectories, tasks: scan.run.map_or(0, |run| run.tasks) })
}

fn is_already_written(path: &std::path::Path, trajectories: u64) -> bool {
    let file = path.exists().then(|| PtFile::open(path).ok()).flatten();
    file.is_some_and(|file| file.entries().is_some_and(|entries| entries.len() as u64 == trajectories))
}
