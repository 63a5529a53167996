//! The handle that episodes use to write the journal. It encodes records on the caller's thread and sends the bytes to
//! the thread that owns the file.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use proto::trajectory::{Step, Task, Trajectory};
use tokio::sync::mpsc;

use super::record::{RecordRef, RunHeader};
use super::writer_thread::{
    BATCH_BYTES, Disk, FinishedPosition, Health, Reply, StepAdded, WriteRequest, WriterStatus, WriterThread,
};
use super::{FORMAT, FORMAT_WITH_WHOLE_PROMPTS, JournalError, Scan, frame, lock, scan};
use crate::durable::sync_parent;
use crate::prompts::Prompts;
use crate::run_record::RunRecord;
use crate::summary::Summary;

/// Maximum number of records that wait for the thread; beyond it, episodes wait.
const QUEUE_CAPACITY: usize = 1024;

/// A handle to the journal of a run. Clones write to the same file; it is closed when the last one is dropped.
#[derive(Clone, Debug)]
pub struct Journal {
    sender: mpsc::Sender<WriteRequest>,
    status: Arc<WriterStatus>,
    format: u32,
}

/// The result of [`Journal::resume`].
#[derive(Debug)]
pub struct Recovered {
    pub run: RunRecord,
    /// Indices of the trajectories that are finished.
    pub finished: BTreeSet<i64>,
    /// Number of bytes after the last intact line, which were removed.
    pub truncated_bytes: u64,
    pub scan: Scan,
}

impl Journal {
    /// Creates the journal of a new run. An existing unfinished journal is kept and named in the error.
    pub fn create(path: &Path, run: &RunRecord) -> Result<Self, JournalError> {
        let (mut file, is_new) = lock::create_locked(path)?;
        if !is_new {
            refuse_unless_empty(&file, path)?;
        }
        let line = encode(path, &RecordRef::Run(RunHeader { format: FORMAT, run }))?;
        let written = file.set_len(0).and_then(|()| file.write_all(&line)).and_then(|()| file.sync_all());
        if let Err(error) = written.and_then(|()| sync_parent(path)) {
            // An empty file does not prevent the next attempt.
            let _ = file.set_len(0);
            return Err(JournalError::io("start", path, error));
        }
        Self::start(path, file, line.len() as u64, FORMAT)
    }

    /// Continues the journal of an interrupted run. Removes what follows the last intact line, and returns what is finished.
    pub fn resume(path: &Path) -> Result<(Self, Recovered), JournalError> {
        let file = lock::open_locked(path)?;
        let resume_error = |error| JournalError::io("resume", path, error);
        let scan = scan::scan_file(file.try_clone().map_err(resume_error)?, path)?;
        let run = scan.run.clone().ok_or_else(|| no_run_error(path, &scan))?;
        let truncated_bytes = scan.file_length - scan.valid_length;
        if truncated_bytes > 0 {
            file.set_len(scan.valid_length).map_err(resume_error)?;
        }
        // The last records of a killed process may not be on disk yet. From here on they count as durable.
        file.sync_all().map_err(resume_error)?;
        let journal = Self::start(path, file, scan.valid_length, scan.format)?;
        let finished = scan.finished.keys().copied().collect();
        Ok((journal, Recovered { run, finished, truncated_bytes, scan }))
    }

    pub(super) fn start<D: Disk + 'static>(
        path: &Path,
        disk: D,
        length: u64,
        format: u32,
    ) -> Result<Self, JournalError> {
        let (sender, receiver) = mpsc::channel(QUEUE_CAPACITY);
        let status = Arc::new(WriterStatus::new(path));
        let writer = WriterThread::new(disk, length, receiver, Arc::clone(&status));
        std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || writer.run())
            .map_err(|error| JournalError::io("start a thread to write", path, error))?;
        Ok(Self { sender, status, format })
    }

    pub fn path(&self) -> &Path {
        &self.status.path
    }

    /// Returns the positions of the trajectories that finish from now on, in the order of the file, each once it is
    /// durable. Ends when the journal is closed. A later call replaces the receiver of an earlier one.
    pub fn follow_finished(&self) -> mpsc::UnboundedReceiver<FinishedPosition> {
        self.status.follow()
    }

    /// Records the start of an episode and the name of its screenshot folder, so that the folder can be removed after
    /// a crash. Returns once the line is in the file, before the caller creates the folder; does not wait for a sync.
    pub async fn append_episode(
        &self,
        task: &Task,
        attempt: u32,
        images: Option<&str>,
    ) -> Result<(), JournalError> {
        let trajectory_index = task.trajectory_index;
        let record = RecordRef::Episode { trajectory_index, attempt, task, images };
        let (request, reply) = WriteRequest::written(encode(self.path(), &record)?);
        self.send(request, reply).await
    }

    /// Records a step of a running episode. Does not wait until it is written: the next record comes after it.
    pub async fn append_step(
        &self,
        trajectory_index: i64,
        attempt: u32,
        step_index: u32,
        step: &Step,
    ) -> Result<(), JournalError> {
        let prompt = None;
        self.append_step_record(&RecordRef::Step { trajectory_index, attempt, step_index, step, prompt })
            .await
    }

    /// Records a step without its prompt, which is the last of `prompts`. The first `known_parts` parts of it are in the
    /// records of earlier steps.
    pub async fn append_step_with(
        &self,
        trajectory_index: i64,
        attempt: u32,
        step: &Step,
        prompts: &Prompts,
        known_parts: usize,
    ) -> Result<(), JournalError> {
        let step_index = prompts.steps().saturating_sub(1);
        if self.format == FORMAT_WITH_WHOLE_PROMPTS {
            let mut step = step.clone();
            step.response.raw_prompt = prompts.get(step_index).unwrap_or_default();
            return self.append_step(trajectory_index, attempt, step_index as u32, &step).await;
        }
        let (step_index, prompt) = (step_index as u32, Some(prompts.last(known_parts)));
        self.append_step_record(&RecordRef::Step { trajectory_index, attempt, step_index, step, prompt })
            .await
    }

    /// Records a finished trajectory. Returns once it is durable.
    pub async fn append_finished(&self, trajectory: &Trajectory) -> Result<(), JournalError> {
        let mut trajectory = trajectory.clone();
        let prompts = Prompts::take_from(&mut trajectory.steps);
        self.append_finished_with(&trajectory, &prompts).await
    }

    /// Records a finished trajectory whose steps have no prompts of their own. Returns once it is durable.
    pub async fn append_finished_with(
        &self,
        trajectory: &Trajectory,
        prompts: &Prompts,
    ) -> Result<(), JournalError> {
        let (request, reply) = self.finished_request(trajectory, prompts)?;
        self.send(request, reply).await
    }

    /// Blocking variant for callers outside of an asynchronous runtime.
    pub fn append_finished_blocking(&self, trajectory: &Trajectory) -> Result<(), JournalError> {
        let mut trajectory = trajectory.clone();
        let prompts = Prompts::take_from(&mut trajectory.steps);
        let (request, reply) = self.finished_request(&trajectory, &prompts)?;
        self.sender.blocking_send(request).map_err(|_| self.closed_error())?;
        reply.blocking_recv().unwrap_or_else(|_| Err(self.closed_error()))
    }

    /// Writes waiting records, syncs and releases the lock. Closes all clones.
    pub async fn close(self) -> Result<(), JournalError> {
        let (request, reply) = WriteRequest::close();
        match self.sender.send(request).await {
            Ok(()) => reply.await.unwrap_or_else(|_| Err(self.closed_error())),
            // Another clone closed the journal.
            Err(_) => Ok(()),
        }
    }

    /// Blocking variant for callers outside of an asynchronous runtime.
    pub fn close_blocking(self) -> Result<(), JournalError> {
        let (request, reply) = WriteRequest::close();
        match self.sender.blocking_send(request) {
            Ok(()) => reply.blocking_recv().unwrap_or_else(|_| Err(self.closed_error())),
            Err(_) => Ok(()),
        }
    }

    async fn append_step_record(&self, record: &RecordRef<'_>) -> Result<(), JournalError> {
        if let Health::WriteFailed(error) | Health::Unusable(error) = self.status.health() {
            return Err(error);
        }
        match self.status.add_step(&encode(self.path(), record)?) {
            StepAdded::Waits if self.sender.is_closed() => Err(self.closed_error()),
            StepAdded::Waits => Ok(()),
            StepAdded::MustBeRequested => {
                let request = WriteRequest::steps();
                self.sender.send(request).await.map_err(|_| self.closed_error())
            }
            StepAdded::MustBeWritten => {
                let (request, reply) = WriteRequest::written(Vec::new());
                self.send(request, reply).await
            }
        }
    }

    async fn send(&self, request: WriteRequest, reply: Reply) -> Result<(), JournalError> {
        self.sender.send(request).await.map_err(|_| self.closed_error())?;
        reply.await.unwrap_or_else(|_| Err(self.closed_error()))
    }

    fn finished_request(
        &self,
        trajectory: &Trajectory,
        prompts: &Prompts,
    ) -> Result<(WriteRequest, Reply), JournalError> {
        let summary = Box::new(Summary::of(trajectory));
        let line = if self.format == FORMAT_WITH_WHOLE_PROMPTS {
            let mut whole = trajectory.clone();
            let _ = prompts.restore(&mut whole.steps);
            encode(self.path(), &RecordRef::Finished { summary, trajectory: &whole, prompts: None })?
        } else {
            encode(self.path(), &RecordRef::Finished { summary, trajectory, prompts: Some(prompts) })?
        };
        Ok(WriteRequest::finished(line, trajectory.task.trajectory_index))
    }

    fn closed_error(&self) -> JournalError {
        JournalError::Closed { path: self.path().to_path_buf() }
    }
}

/// Accepts a small file without any intact line: a run was killed while creating it, so nothing is lost by overwriting
/// it. A larger file was more than just created and may hold data that can be repaired.
fn refuse_unless_empty(file: &File, path: &Path) -> Result<(), JournalError> {
    let reading = file.try_clone().map_err(|error| JournalError::io("read", path, error))?;
    let scan = scan::scan_file(reading, path)?;
    if scan.valid_length == 0 && scan.damaged.is_empty() && scan.file_length < BATCH_BYTES as u64 {
        return Ok(());
    }
    Err(JournalError::Unfinished {
        path: path.to_path_buf(),
        finished: scan.finished.len() as u64,
        tasks: scan.run.map_or(0, |run| run.tasks),
    })
}

fn no_run_error(path: &Path, scan: &Scan) -> JournalError {
    let first = scan.damaged.first().or(scan.torn_tail.as_ref());
    let reason = first.map_or_else(|| "the file is empty".to_owned(), |damage| damage.reason.clone());
    JournalError::NoRun { path: path.to_path_buf(), reason }
}

fn encode(path: &Path, record: &RecordRef<'_>) -> Result<Vec<u8>, JournalError> {
    frame::encode(record)
        .map_err(|error| JournalError::Encode { path: path.to_path_buf(), reason: error.to_string() })
}
