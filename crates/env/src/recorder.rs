//! Saves episodes like those of a rollout: a journal per split, screenshots beside it, and the iteration files at the end. An
//! episode counts as finished once its screenshots and its journal record are on disk.

use std::{
    collections::HashMap,
    io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use proto::trajectory::{Step, Task, Trajectory};
use rollout::episode::screenshots::{ScreenshotStore, discard_abandoned};
use store::{IterationId, Journal, JournalError, RunMetadata, RunRecord, SavePath, Split, pt::PtError};
use tokio::sync::Mutex;

/// The field of a journal's metadata that tells the journals of environments from those of rollouts.
const SOURCE_FIELD: &str = "source";
const SOURCE: &str = "env";

/// Why episodes cannot be saved.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error("cannot create {}: {source}", path.display())]
    Create { path: PathBuf, source: io::Error },
    #[error("cannot remove {}: {source}", path.display())]
    Remove { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Finish(#[from] PtError),
    #[error(
        "{} belongs to a rollout that is not finished; continue it with webgym rollout --resume, or choose another --save-path",
        path.display()
    )]
    Rollout { path: PathBuf },
}

/// The journal of one split.
struct SplitJournal {
    id: IterationId,
    journal: Journal,
    next_index: AtomicI64,
}

/// Saves the episodes of a server.
pub struct Recorder {
    save_path: SavePath,
    metadata: RunMetadata,
    journals: Mutex<HashMap<&'static str, Arc<SplitJournal>>>,
}

impl Recorder {
    /// Saves below `save_path`. Journals that a server left when it was killed are finished first.
    pub fn open(save_path: SavePath, metadata: RunMetadata) -> Result<Self, RecordError> {
        for split in [Split::Train, Split::Test] {
            recover(&save_path, split)?;
        }
        Ok(Self { save_path, metadata, journals: Mutex::default() })
    }

    /// Starts the record of an episode.
    pub(crate) async fn begin(&self, split: &str, task: &mut Task) -> Result<Recording, RecordError> {
        let journal = self.journal(split).await?;
        task.trajectory_index = journal.next_index.fetch_add(1, Ordering::Relaxed);
        let index = usize::try_from(task.trajectory_index).unwrap_or(0);
        let screenshots = ScreenshotStore::new(&self.save_path.images(), index);
        journal.journal.append_episode(task, 0, screenshots.name()).await?;
        let create_error = |source| RecordError::Create { path: screenshots.folder().to_owned(), source };
        screenshots.create().await.map_err(create_error)?;
        Ok(Recording { journal, index: task.trajectory_index, screenshots })
    }

    /// Returns the journal of a split, which is created with the first episode.
    async fn journal(&self, split: &str) -> Result<Arc<SplitJournal>, RecordError> {
        let split = if split == "test" { Split::Test } else { Split::Train };
        let name = if split == Split::Test { "test" } else { "train" };
        let mut journals = self.journals.lock().await;
        if let Some(journal) = journals.get(name) {
            return Ok(Arc::clone(journal));
        }
        let root = self.save_path.root();
        let create_error = |source| RecordError::Create { path: root.to_owned(), source };
        self.save_path.create_directories(split).map_err(create_error)?;
        let iteration = self.save_path.next_iteration(split, None).map_err(create_error)?;
        let id = IterationId::new(split, iteration);
        let mut metadata = self.metadata.clone();
        metadata.split = Some(split.to_string());
        metadata.iteration = i64::try_from(iteration).ok();
        metadata.extra.insert(SOURCE_FIELD.to_owned(), SOURCE.into());
        let seed = metadata.seed.unwrap_or_default();
        let config_digest = String::new();
        let run = RunRecord { split, iteration, rank: None, seed, config_digest, tasks: 0, metadata };
        let journal = Journal::create(&self.save_path.journal(id), &run)?;
        let created = Arc::new(SplitJournal { id, journal, next_index: AtomicI64::new(0) });
        journals.insert(name, Arc::clone(&created));
        Ok(created)
    }

    /// Closes the journals and writes the iteration files. Returns the iterations that have episodes.
    pub async fn finish(&self) -> Result<Vec<IterationId>, RecordError> {
        let mut finished = Vec::new();
        for (_, split) in self.journals.lock().await.drain() {
            split.journal.clone().close().await?;
            finished.extend(finish(&self.save_path, split.id)?);
        }
        Ok(finished)
    }
}

/// Writes the iteration file of a closed journal; removes a journal without finished episodes.
fn finish(save_path: &SavePath, id: IterationId) -> Result<Option<IterationId>, RecordError> {
    let path = save_path.journal(id);
    let scan = store::journal::scan(&path)?;
    discard_abandoned(&save_path.images(), &scan);
    if scan.finished.is_empty() {
        std::fs::remove_file(&path).map_err(|source| RecordError::Remove { path, source })?;
        return Ok(None);
    }
    store::finish_iteration(save_path, id)?;
    Ok(Some(id))
}

/// Finishes the journal of a server that was killed.
fn recover(save_path: &SavePath, split: Split) -> Result<(), RecordError> {
    let create_error = |source| RecordError::Create { path: save_path.root().to_owned(), source };
    let Some(found) = save_path.unfinished_journal(split, None).map_err(create_error)? else { return Ok(()) };
    let scan = store::journal::scan(&found.path)?;
    let source = scan.run.as_ref().and_then(|run| run.metadata.extra.get(SOURCE_FIELD)?.as_str());
    if source != Some(SOURCE) {
        return Err(RecordError::Rollout { path: found.path });
    }
    finish(save_path, found.id)?;
    tracing::info!(
        "{} episodes of an earlier server are saved as iteration {}",
        scan.finished.len(),
        found.id.iteration
    );
    Ok(())
}

/// The record of one episode.
pub(crate) struct Recording {
    journal: Arc<SplitJournal>,
    index: i64,
    screenshots: ScreenshotStore,
}

impl Recording {
    pub(crate) const fn screenshots(&self) -> &ScreenshotStore {
        &self.screenshots
    }

    /// Records a step while the episode goes on.
    pub(crate) async fn append_step(&self, number: usize, step: &Step) -> Result<(), RecordError> {
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        Ok(self.journal.journal.append_step(self.index, 0, number, step).await?)
    }

    /// Makes the finished episode durable.
    pub(crate) async fn finish(self, mut trajectory: Trajectory) -> Result<(), RecordError> {
        for step in &mut trajectory.steps {
            // Nothing follows the last screenshot.
            step.same_as_next_screenshot.get_or_insert(false);
        }
        let path = self.screenshots.folder().to_owned();
        self.screenshots.sync().await.map_err(|source| RecordError::Create { path, source })?;
        Ok(self.journal.journal.append_finished(&trajectory).await?)
    }

    /// Removes an episode without steps.
    pub(crate) async fn discard(self) {
        self.screenshots.discard().await;
    }
}
