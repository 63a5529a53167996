//! The thread that owns the journal's file. It collects waiting requests, writes them together and syncs once for all
//! of them (group commit). A failed write is undone by truncating the file, so that it ends with a
//! complete record; if that fails too, the journal accepts no more records.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};

use super::JournalError;

/// A batch is written and synced once it has this many bytes.
pub(super) const BATCH_BYTES: usize = 8 << 20;

/// Waking the thread costs more than writing a step. It is woken for steps when this much waits, …
const WAITING_STEP_BYTES: usize = 64 << 10;
/// … or when it was not woken for so long. Steps that come soon after others wait for the next step or another record.
const STEP_INTERVAL: Duration = Duration::from_millis(100);

/// The file operations of the thread; a trait so that tests can make them fail.
pub(super) trait Disk: Send {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    fn sync(&mut self) -> io::Result<()>;
    fn truncate(&mut self, length: u64) -> io::Result<()>;
}

impl Disk for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }
}

#[derive(Clone, Debug)]
pub(super) enum Health {
    Good,
    /// The last write failed and was undone; a later write may succeed.
    WriteFailed(JournalError),
    /// The content of the file is unknown; the journal must be reopened.
    Unusable(JournalError),
}

/// The position of a finished trajectory that is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinishedPosition {
    pub trajectory_index: i64,
    pub offset: u64,
    /// Length in bytes, including the line feed.
    pub length: u64,
}

/// The state that the thread shares with the handles.
#[derive(Debug)]
pub(super) struct WriterStatus {
    pub(super) path: PathBuf,
    health: Mutex<Health>,
    follower: Mutex<Option<mpsc::UnboundedSender<FinishedPosition>>>,
    steps: Mutex<WaitingSteps>,
}

/// Steps that the thread writes with the next request.
#[derive(Debug, Default)]
struct WaitingSteps {
    lines: Vec<u8>,
    /// When the thread was last asked to write steps.
    requested: Option<Instant>,
}

/// What the caller must do after it added a step.
pub(super) enum StepAdded {
    /// The thread writes it later.
    Waits,
    /// The thread must be asked to write it.
    MustBeRequested,
    /// So much waits that the caller must wait until it is written.
    MustBeWritten,
}

impl WriterStatus {
    pub(super) fn new(path: &Path) -> Self {
        let (health, follower) = (Mutex::new(Health::Good), Mutex::new(None));
        Self { path: path.to_path_buf(), health, follower, steps: Mutex::default() }
    }

    /// Adds the line of a step. It is in the file before the line of a request that is sent later.
    pub(super) fn add_step(&self, line: &[u8]) -> StepAdded {
        let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        steps.lines.extend_from_slice(line);
        if steps.lines.len() >= BATCH_BYTES {
            return StepAdded::MustBeWritten;
        }
        let is_due = steps.requested.is_none_or(|time| time.elapsed() >= STEP_INTERVAL);
        if !is_due && steps.lines.len() < WAITING_STEP_BYTES {
            return StepAdded::Waits;
        }
        steps.requested = Some(Instant::now());
        StepAdded::MustBeRequested
    }

    fn take_steps(&self) -> Vec<u8> {
        let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut steps.lines)
    }

    /// Reports the positions of trajectories that finish from now on. There is one follower; a later one replaces it.
    pub(super) fn follow(&self) -> mpsc::UnboundedReceiver<FinishedPosition> {
        let (sender, receiver) = mpsc::unbounded_channel();
        *self.follower.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
        receiver
    }

    fn report(&self, positions: Vec<FinishedPosition>) {
        let follower = self.follower.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(follower) = &*follower {
            for position in positions {
                // Fails if the follower has gone away.
                let _ = follower.send(position);
            }
        }
    }

    /// Ends the follower's channel.
    fn end_report(&self) {
        *self.follower.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(super) fn health(&self) -> Health {
        self.lock().clone()
    }

    fn set_health(&self, health: Health) {
        *self.lock() = health;
    }

    fn lock(&self) -> MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Receives the result of a request.
pub(super) type Reply = oneshot::Receiver<Result<(), JournalError>>;

#[derive(Debug)]
pub(super) struct WriteRequest {
    line: Vec<u8>,
    /// Gets the result of the batch, if the caller waits for it.
    reply: Option<oneshot::Sender<Result<(), JournalError>>>,
    needs_sync: bool,
    is_close: bool,
    /// The index of the trajectory that the line finishes.
    finishes: Option<i64>,
}

impl WriteRequest {
    /// Writes the steps that wait, without a reply.
    pub(super) const fn steps() -> Self {
        Self { line: Vec::new(), reply: None, needs_sync: false, is_close: false, finishes: None }
    }

    /// Writes a line and replies once it is in the file.
    pub(super) fn written(line: Vec<u8>) -> (Self, Reply) {
        let (reply, receiver) = oneshot::channel();
        (Self { line, reply: Some(reply), needs_sync: false, is_close: false, finishes: None }, receiver)
    }

    /// Writes the line of a finished trajectory and replies once it is synced.
    pub(super) fn finished(line: Vec<u8>, trajectory_index: i64) -> (Self, Reply) {
        let (reply, receiver) = oneshot::channel();
        let finishes = Some(trajectory_index);
        (Self { line, reply: Some(reply), needs_sync: true, is_close: false, finishes }, receiver)
    }

    /// Syncs, closes the file and replies.
    pub(super) fn close() -> (Self, Reply) {
        let (reply, receiver) = oneshot::channel();
        let line = Vec::new();
        (Self { line, reply: Some(reply), needs_sync: true, is_close: true, finishes: None }, receiver)
    }
}

pub(super) struct WriterThread<D> {
    disk: D,
    /// The end of the last complete record.
    length: u64,
    requests: mpsc::Receiver<WriteRequest>,
    status: Arc<WriterStatus>,
    has_unsynced: bool,
}

impl<D: Disk> WriterThread<D> {
    pub(super) fn new(
        disk: D,
        length: u64,
        requests: mpsc::Receiver<WriteRequest>,
        status: Arc<WriterStatus>,
    ) -> Self {
        Self { disk, length, requests, status, has_unsynced: false }
    }

    /// Runs until the last handle is dropped or one of them closes the journal.
    pub(super) fn run(mut self) {
        while let Some(first) = self.requests.blocking_recv() {
            let batch = self.collect_batch(first);
            let steps = self.status.take_steps();
            let start = self.length + steps.len() as u64;
            let result = self.commit(steps, &batch);
            if result.is_ok() {
                self.status.report(finished_positions(&batch, start));
            }
            if batch.iter().any(|request| request.is_close) {
                // Release the file lock and close the channels before the closing call returns.
                self.status.end_report();
                drop(self);
                reply_to_all(batch, &result);
                return;
            }
            reply_to_all(batch, &result);
        }
        // Steps may remain. Without handles, a failure cannot be reported.
        let steps = self.status.take_steps();
        let _ = self.commit(steps, &[]).and_then(|()| self.sync());
        self.status.end_report();
    }

    fn collect_batch(&mut self, first: WriteRequest) -> Vec<WriteRequest> {
        let mut bytes = first.line.len();
        let mut is_close = first.is_close;
        let mut batch = vec![first];
        while bytes < BATCH_BYTES && !is_close {
            let Ok(request) = self.requests.try_recv() else { break };
            bytes += request.line.len();
            is_close = request.is_close;
            batch.push(request);
        }
        batch
    }

    fn commit(&mut self, steps: Vec<u8>, batch: &[WriteRequest]) -> Result<(), JournalError> {
        if let Health::Unusable(error) = self.status.health() {
            return Err(error);
        }
        let mut bytes = steps;
        bytes.reserve(batch.iter().map(|request| request.line.len()).sum());
        for request in batch {
            bytes.extend_from_slice(&request.line);
        }
        if !bytes.is_empty() {
            self.write(&bytes)?;
        }
        if batch.iter().any(|request| request.needs_sync) { self.sync() } else { Ok(()) }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), JournalError> {
        if let Err(error) = self.disk.append(bytes) {
            let error = JournalError::io("write", &self.status.path, error);
            self.status.set_health(match self.disk.truncate(self.length) {
                Ok(()) => Health::WriteFailed(error.clone()),
                Err(_) => Health::Unusable(error.clone()),
            });
            return Err(error);
        }
        self.length += bytes.len() as u64;
        self.has_unsynced = true;
        self.status.set_health(Health::Good);
        Ok(())
    }

    fn sync(&mut self) -> Result<(), JournalError> {
        if !self.has_unsynced {
            return Ok(());
        }
        match self.disk.sync() {
            Ok(()) => {
                self.has_unsynced = false;
                Ok(())
            }
            // After a failed sync the kernel may have dropped the dirty pages: a second sync would succeed falsely.
            Err(error) => {
                let error = JournalError::io("sync", &self.status.path, error);
                self.status.set_health(Health::Unusable(error.clone()));
                Err(error)
            }
        }
    }
}

/// Returns where the finished trajectories of a batch are that was written at `start`.
fn finished_positions(batch: &[WriteRequest], start: u64) -> Vec<FinishedPosition> {
    let mut offset = start;
    let mut positions = Vec::new();
    for request in batch {
        let length = request.line.len() as u64;
        positions.extend(request.finishes.map(|trajectory_index| FinishedPosition {
            trajectory_index,
            offset,
            length,
        }));
        offset += length;
    }
    positions
}

fn reply_to_all(batch: Vec<WriteRequest>, result: &Result<(), JournalError>) {
    for reply in batch.into_iter().filter_map(|request| request.reply) {
        // Fails if the caller has gone away and does not need the result.
        let _ = reply.send(result.clone());
    }
}
