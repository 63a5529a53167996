//! The thread that owns the journal's file. It gathers what is waiting, writes it at once and syncs once for all of
//! it (group commit). A write that does not fit is cut away again, so that the file always ends in a whole record.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{mpsc, oneshot};

use super::JournalError;

/// How much is written and synced at once.
pub(super) const BATCH_BYTES: usize = 8 << 20;

/// What the thread asks of a file; apart so that tests can let it fail.
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
    /// The last write failed and was cut away again; another one may succeed.
    Refused(JournalError),
    /// The file is in a state that cannot be known any more; only reopening it tells.
    Lost(JournalError),
}

/// What the handles and the thread both know.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) path: PathBuf,
    health: Mutex<Health>,
}

impl Shared {
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_path_buf(), health: Mutex::new(Health::Good) }
    }

    pub(super) fn health(&self) -> Health {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type Receipt = oneshot::Receiver<Result<(), JournalError>>;

#[derive(Debug)]
pub(super) struct Message {
    line: Vec<u8>,
    /// Somebody waits until the line is written …
    done: Option<oneshot::Sender<Result<(), JournalError>>>,
    /// … and durable.
    syncs: bool,
    closes: bool,
}

impl Message {
    pub(super) const fn noting(line: Vec<u8>) -> Self {
        Self { line, done: None, syncs: false, closes: false }
    }

    pub(super) fn written(line: Vec<u8>) -> (Self, Receipt) {
        let (done, receipt) = oneshot::channel();
        (Self { line, done: Some(done), syncs: false, closes: false }, receipt)
    }

    pub(super) fn durable(line: Vec<u8>) -> (Self, Receipt) {
        let (done, receipt) = oneshot::channel();
        (Self { line, done: Some(done), syncs: true, closes: false }, receipt)
    }

    pub(super) fn closing() -> (Self, Receipt) {
        let (done, receipt) = oneshot::channel();
        (Self { line: Vec::new(), done: Some(done), syncs: true, closes: true }, receipt)
    }
}

pub(super) struct Writer<D> {
    disk: D,
    /// Where the last whole record ends.
    length: u64,
    receiver: mpsc::Receiver<Message>,
    shared: Arc<Shared>,
    has_unsynced: bool,
}

impl<D: Disk> Writer<D> {
    pub(super) fn new(disk: D, length: u64, receiver: mpsc::Receiver<Message>, shared: Arc<Shared>) -> Self {
        Self { disk, length, receiver, shared, has_unsynced: false }
    }

    /// Until the last handle is gone, or one of them closes the journal.
    pub(super) fn run(mut self) {
        while let Some(first) = self.receiver.blocking_recv() {
            let batch = self.gather(first);
            let result = self.commit(&batch);
            let closes = batch.iter().any(|message| message.closes);
            if closes {
                // The lock must be free, and nobody able to send, by the time that the closing call returns.
                drop(self);
                answer(batch, &result);
                return;
            }
            answer(batch, &result);
        }
        // Steps that nobody waits for; with no handle left there is nobody to tell of a failure either.
        let _ = self.sync();
    }

    fn gather(&mut self, first: Message) -> Vec<Message> {
        let mut bytes = first.line.len();
        let mut closes = first.closes;
        let mut batch = vec![first];
        while bytes < BATCH_BYTES && !closes {
            let Ok(message) = self.receiver.try_recv() else { break };
            bytes += message.line.len();
            closes = message.closes;
            batch.push(message);
        }
        batch
    }

    fn commit(&mut self, batch: &[Message]) -> Result<(), JournalError> {
        if let Health::Lost(error) = self.shared.health() {
            return Err(error);
        }
        let mut bytes = Vec::with_capacity(batch.iter().map(|message| message.line.len()).sum());
        for message in batch {
            bytes.extend_from_slice(&message.line);
        }
        if !bytes.is_empty() {
            self.write(&bytes)?;
        }
        if batch.iter().any(|message| message.syncs) { self.sync() } else { Ok(()) }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), JournalError> {
        if let Err(error) = self.disk.append(bytes) {
            let error = JournalError::io("write", &self.shared.path, error);
            let health = match self.disk.truncate(self.length) {
                Ok(()) => Health::Refused(error.clone()),
                Err(_) => Health::Lost(error.clone()),
            };
            *self.shared.lock() = health;
            return Err(error);
        }
        self.length += bytes.len() as u64;
        self.has_unsynced = true;
        *self.shared.lock() = Health::Good;
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
            // After a failed sync the kernel may have dropped the pages: trying again would report success falsely.
            Err(error) => {
                let error = JournalError::io("sync", &self.shared.path, error);
                *self.shared.lock() = Health::Lost(error.clone());
                Err(error)
            }
        }
    }
}

fn answer(batch: Vec<Message>, result: &Result<(), JournalError>) {
    for done in batch.into_iter().filter_map(|message| message.done) {
        // A caller that went away does not need the answer.
        let _ = done.send(result.clone());
    }
}
