//! The writing side: a cheap handle for any number of episodes, in front of the thread that owns the file. Records
//! are put into words here, on the caller's thread; only bytes travel to the writer.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use proto::trajectory::{Step, Task, Trajectory};
use tokio::sync::{mpsc, oneshot};

use super::commit::{BATCH_BYTES, Disk, Health, Message, Shared, Writer};
use super::record::{RecordRef, RunHeader};
use super::{FORMAT, JournalError, Scan, frame, lock, scan};
use crate::durable::sync_parent;
use crate::run::RunRecord;
use crate::summary::Summary;

/// Records waiting for the thread; beyond that the episodes wait.
const QUEUE: usize = 1024;

/// A handle to the journal of a run. Clones write to the same file; the last one dropped closes it.
#[derive(Clone, Debug)]
pub struct Journal {
    sender: mpsc::Sender<Message>,
    shared: Arc<Shared>,
}

/// What `resume` found and did.
#[derive(Debug)]
pub struct Recovered {
    pub run: RunRecord,
    /// Trajectory indices that need not be collected again.
    pub finished: BTreeSet<i64>,
    /// Bytes of a torn last record that were cut.
    pub cut: u64,
    pub scan: Scan,
}

impl Journal {
    /// Begins the journal of a fresh run. An unfinished one that is in the way is left alone and named in the error.
    pub fn create(path: &Path, run: &RunRecord) -> Result<Self, JournalError> {
        let (mut file, is_new) = lock::create_locked(path)?;
        if !is_new {
            refuse_unless_empty(&file, path)?;
        }
        let line = encode(path, &RecordRef::Run(RunHeader { format: FORMAT, run }))?;
        let written = file.set_len(0).and_then(|()| file.write_all(&line)).and_then(|()| file.sync_all());
        if let Err(error) = written.and_then(|()| sync_parent(path)) {
            // Without its first line the file is nothing; another try takes it over.
            let _ = file.set_len(0);
            return Err(JournalError::io("begin", path, error));
        }
        Self::start(path, file, line.len() as u64)
    }

    /// Goes on with the journal of an interrupted run: cuts a torn last record and tells what is finished.
    pub fn resume(path: &Path) -> Result<(Self, Recovered), JournalError> {
        let file = lock::open_locked(path)?;
        let failed = |error| JournalError::io("resume", path, error);
        let scan = scan::scan_file(file.try_clone().map_err(failed)?, path)?;
        let run = scan.run.clone().ok_or_else(|| no_run(path, &scan))?;
        let cut = scan.file_length - scan.whole_length;
        if cut > 0 {
            file.set_len(scan.whole_length).and_then(|()| file.sync_all()).map_err(failed)?;
        }
        let journal = Self::start(path, file, scan.whole_length)?;
        let finished = scan.finished.keys().copied().collect();
        Ok((journal, Recovered { run, finished, cut, scan }))
    }

    pub(super) fn start<D: Disk + 'static>(path: &Path, disk: D, length: u64) -> Result<Self, JournalError> {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let shared = Arc::new(Shared::new(path));
        let writer = Writer::new(disk, length, receiver, Arc::clone(&shared));
        std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || writer.run())
            .map_err(|error| JournalError::io("start writing", path, error))?;
        Ok(Self { sender, shared })
    }

    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// Notes that an episode begins and where its pictures will be, for whoever finds the journal of a crashed run.
    /// Returns once the line is in the file, so that the folder is never made before it; does not wait for the disk.
    pub async fn append_episode(
        &self,
        task: &Task,
        attempt: u32,
        images: Option<&str>,
    ) -> Result<(), JournalError> {
        let trajectory_index = task.trajectory_index;
        let record = RecordRef::Episode { trajectory_index, attempt, task, images };
        let (message, receipt) = Message::written(encode(self.path(), &record)?);
        self.sender.send(message).await.map_err(|_| self.closed())?;
        receipt.await.unwrap_or_else(|_| Err(self.closed()))
    }

    /// Notes a step of a running episode. Does not wait for the disk: the next sync carries it.
    pub async fn append_step(
        &self,
        trajectory_index: i64,
        attempt: u32,
        step_index: u32,
        step: &Step,
    ) -> Result<(), JournalError> {
        self.append(&RecordRef::Step { trajectory_index, attempt, step_index, step }).await
    }

    /// Returns once the trajectory is durable, and not before.
    pub async fn append_finished(&self, trajectory: &Trajectory) -> Result<(), JournalError> {
        let (message, receipt) = self.finished_message(trajectory)?;
        self.sender.send(message).await.map_err(|_| self.closed())?;
        receipt.await.unwrap_or_else(|_| Err(self.closed()))
    }

    /// The same for callers outside of an asynchronous runtime.
    pub fn append_finished_blocking(&self, trajectory: &Trajectory) -> Result<(), JournalError> {
        let (message, receipt) = self.finished_message(trajectory)?;
        self.sender.blocking_send(message).map_err(|_| self.closed())?;
        receipt.blocking_recv().unwrap_or_else(|_| Err(self.closed()))
    }

    /// Writes out what is waiting, syncs and gives up the lock. Other clones are closed too.
    pub async fn close(self) -> Result<(), JournalError> {
        let (message, receipt) = Message::closing();
        match self.sender.send(message).await {
            Ok(()) => receipt.await.unwrap_or_else(|_| Err(self.closed())),
            // Another clone closed it before.
            Err(_) => Ok(()),
        }
    }

    /// The same for callers outside of an asynchronous runtime.
    pub fn close_blocking(self) -> Result<(), JournalError> {
        let (message, receipt) = Message::closing();
        match self.sender.blocking_send(message) {
            Ok(()) => receipt.blocking_recv().unwrap_or_else(|_| Err(self.closed())),
            Err(_) => Ok(()),
        }
    }

    async fn append(&self, record: &RecordRef<'_>) -> Result<(), JournalError> {
        if let Health::Refused(error) | Health::Lost(error) = self.shared.health() {
            return Err(error);
        }
        let message = Message::noting(encode(self.path(), record)?);
        self.sender.send(message).await.map_err(|_| self.closed())
    }

    fn finished_message(
        &self,
        trajectory: &Trajectory,
    ) -> Result<(Message, oneshot::Receiver<Result<(), JournalError>>), JournalError> {
        let record = RecordRef::Finished { summary: Box::new(Summary::of(trajectory)), trajectory };
        Ok(Message::durable(encode(self.path(), &record)?))
    }

    fn closed(&self) -> JournalError {
        JournalError::Closed { path: self.path().to_path_buf() }
    }
}

/// A file with no whole line holds nothing that anybody could miss: a run was killed while beginning it.
fn refuse_unless_empty(file: &File, path: &Path) -> Result<(), JournalError> {
    let reading = file.try_clone().map_err(|error| JournalError::io("read", path, error))?;
    let scan = scan::scan_file(reading, path)?;
    if scan.whole_length == 0 && scan.damaged.is_empty() && scan.file_length < BATCH_BYTES as u64 {
        return Ok(());
    }
    Err(JournalError::Unfinished {
        path: path.to_path_buf(),
        finished: scan.finished.len() as u64,
        tasks: scan.run.map_or(0, |run| run.tasks),
    })
}

fn no_run(path: &Path, scan: &Scan) -> JournalError {
    let first = scan.damaged.first().or(scan.torn_tail.as_ref());
    let reason = first.map_or_else(|| "the file is empty".to_owned(), |damage| damage.reason.clone());
    JournalError::NoRun { path: path.to_path_buf(), reason }
}

fn encode(path: &Path, record: &RecordRef<'_>) -> Result<Vec<u8>, JournalError> {
    frame::encode(record)
        .map_err(|error| JournalError::Encode { path: path.to_path_buf(), reason: error.to_string() })
}
