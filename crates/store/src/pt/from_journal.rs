//! Turns the journal of a finished run into the `.pt` file of the iteration. An interrupted conversion can be
//! repeated.

use std::path::{Path, PathBuf};

use super::{PtError, PtFile, PtWriter};
use crate::durable::{Existing, sync_parent};
use crate::journal::{self, JournalError, JournalReader, lock_existing};
use crate::layout::{IterationId, SavePath};
use crate::summary::Summary;

/// The result of [`finish_iteration`].
#[derive(Clone, Debug, PartialEq)]
pub struct FinishedIteration {
    pub path: PathBuf,
    /// Summaries of the trajectories. The file itself may be gone soon: another rank merges it and removes it.
    pub summaries: Vec<Summary>,
    /// The number of trajectories that the run planned to collect.
    pub tasks: u64,
}

/// Writes `….iterationN` from `….iterationN.checkpoint` and removes the journal, which must be closed.
pub fn finish_iteration(save_path: &SavePath, id: IterationId) -> Result<FinishedIteration, PtError> {
    let journal = save_path.journal(id);
    let path = save_path.iteration_file(id);
    let lock = lock_existing(&journal)?;
    let scan = journal::scan(&journal)?;
    let summaries: Vec<Summary> = scan.finished.values().map(|record| record.summary.clone()).collect();
    // An earlier attempt may have been interrupted after the file was complete. Any other existing file is kept.
    if !is_already_written(&path, summaries.len()) {
        write_from_journal(&journal, &path, Existing::Refuse)?;
    }
    std::fs::remove_file(&journal)
        .and_then(|()| sync_parent(&journal))
        .map_err(|error| JournalError::io("remove", &journal, error))?;
    drop(lock);
    Ok(FinishedIteration { path, summaries, tasks: scan.run.map_or(0, |run| run.tasks) })
}

fn is_already_written(path: &Path, trajectories: usize) -> bool {
    let file = path.exists().then(|| PtFile::open(path).ok()).flatten();
    file.is_some_and(|file| file.entries().is_some_and(|entries| entries.len() == trajectories))
}

/// Writes the finished trajectories of a journal to a `.pt` file, in the order of their indices. Returns their number.
pub fn write_from_journal(journal: &Path, target: &Path, existing: Existing) -> Result<usize, PtError> {
    let scan = journal::scan(journal)?;
    let mut reader = JournalReader::open(journal)?;
    let mut writer = PtWriter::create(target)?;
    for record in scan.finished.values() {
        writer.push(&journal::read_finished(&mut reader, record)?)?;
    }
    let metadata = scan.run.map(|run| run.metadata).unwrap_or_default();
    let count = writer.len();
    writer.finish(&metadata, existing)?;
    Ok(count)
}
