//! Appends exchanges of many sessions to an archive. All records of an exchange are written by one call to the operating
//! system, so a killed process leaves at most one incomplete exchange at the end of its file.

mod recover;
pub(crate) mod write;

use std::{
    collections::HashMap,
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use jiff::Timestamp;

pub use recover::Recovered;
use write::{Original, encode_exchange, encode_info};

use crate::{ArchiveError, exchange::Exchange, index, layout, redact::Redaction};

/// How to record.
#[derive(Clone, Debug)]
pub struct RecorderOptions {
    /// What is removed before anything is written.
    pub redaction: Redaction,
    /// A file that is larger is closed, and another one is started.
    pub max_file_bytes: u64,
    /// Who records, in the first record of each file.
    pub software: String,
}

impl Default for RecorderOptions {
    fn default() -> Self {
        Self {
            redaction: Redaction::default(),
            max_file_bytes: 1 << 30,
            software: concat!("webgym-rs/", env!("CARGO_PKG_VERSION")).into(),
        }
    }
}

/// What was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    pub exchanges: u64,
    /// Responses whose body was already in the archive.
    pub revisits: u64,
    pub bytes: u64,
}

/// Records into a directory. Share it between threads; several processes may record into one directory, each in files
/// of its own. The calls block on compression and on writing to the page cache.
#[derive(Debug)]
pub struct Recorder {
    directory: PathBuf,
    options: RecorderOptions,
    recovered: Vec<Recovered>,
    /// Digest → the record that has the payload.
    originals: Mutex<HashMap<String, Original>>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    current: Option<Current>,
    statistics: Statistics,
}

#[derive(Debug)]
struct Current {
    file: File,
    path: PathBuf,
    length: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code that holds these locks leaves their data half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Recorder {
    /// Opens a directory, which is created if it is missing. An incomplete record that a killed process left at the end
    /// of a file is cut off. Payloads that are already in the archive are not stored again.
    pub fn open(directory: &Path, options: RecorderOptions) -> Result<Self, ArchiveError> {
        let folder = directory.join(layout::WARC_FOLDER);
        fs::create_dir_all(&folder).map_err(ArchiveError::io("create", &folder))?;
        let (recovered, originals) = recover::recover(directory)?;
        let state = State { current: None, statistics: Statistics::default() };
        Ok(Self {
            directory: directory.to_owned(),
            options,
            recovered,
            originals: Mutex::new(originals),
            state: Mutex::new(state),
        })
    }

    /// What was cut off or found damaged when the directory was opened.
    pub fn recovered(&self) -> &[Recovered] {
        &self.recovered
    }

    pub fn statistics(&self) -> Statistics {
        lock(&self.state).statistics
    }

    /// Removes secrets and appends an exchange. When this returns, a kill of the process cannot lose it; `sync` protects
    /// it from power loss as well.
    pub fn append(&self, mut exchange: Exchange) -> Result<(), ArchiveError> {
        self.options.redaction.exchange(&mut exchange);
        let encoded = encode_exchange(&exchange, |digest| lock(&self.originals).get(digest).cloned())?;
        self.write(&encoded.bytes, |statistics| {
            statistics.exchanges += 1;
            statistics.revisits += u64::from(encoded.is_revisit);
        })?;
        // Only now, so that no revisit record refers to a payload that was not written.
        if let Some((digest, original)) = encoded.original {
            lock(&self.originals).entry(digest).or_insert(original);
        }
        Ok(())
    }

    fn write(&self, bytes: &[u8], count: impl FnOnce(&mut Statistics)) -> Result<(), ArchiveError> {
        let mut state = lock(&self.state);
        if state.current.as_ref().is_some_and(|current| current.length >= self.options.max_file_bytes) {
            close(state.current.take())?;
        }
        let current = match &mut state.current {
            Some(current) => current,
            none => none.insert(self.start_file()?),
        };
        if let Err(source) = current.file.write_all(bytes) {
            // A disk that is full takes a part; remove it, so that the file stays readable.
            let _ = current.file.set_len(current.length);
            return Err(ArchiveError::Io { action: "write", path: current.path.clone(), source });
        }
        current.length += bytes.len() as u64;
        state.statistics.bytes += bytes.len() as u64;
        count(&mut state.statistics);
        Ok(())
    }

    fn start_file(&self) -> Result<Current, ArchiveError> {
        let now = Timestamp::now();
        let time = now.strftime("%Y%m%d%H%M%S%3f");
        let unique = uuid::Uuid::new_v4().simple().to_string();
        let name = format!("webgym-{time}-{}.warc.gz", &unique[..8]);
        let path = self.directory.join(layout::WARC_FOLDER).join(&name);
        let mut file = File::options()
            .append(true)
            .create_new(true)
            .open(&path)
            .map_err(ArchiveError::io("create", &path))?;
        // Shows other processes that this file is being written. File systems without locks have no such protection.
        let _ = file.try_lock();
        let info = encode_info(&name, now, &self.options).map_err(ArchiveError::io("write", &path))?;
        file.write_all(&info).map_err(ArchiveError::io("write", &path))?;
        Ok(Current { file, path, length: info.len() as u64 })
    }

    /// Makes everything durable that was appended so far.
    pub fn sync(&self) -> Result<(), ArchiveError> {
        let file = {
            let state = lock(&self.state);
            let Some(current) = &state.current else { return Ok(()) };
            let clone = current.file.try_clone().map_err(ArchiveError::io("sync", &current.path))?;
            (clone, current.path.clone())
        };
        // Without the lock: others append meanwhile.
        file.0.sync_data().map_err(ArchiveError::io("sync", &file.1))
    }

    /// Closes the current file and writes the index.
    pub fn finish(self) -> Result<Statistics, ArchiveError> {
        let mut state = lock(&self.state);
        close(state.current.take())?;
        index::rebuild(&self.directory)?;
        Ok(state.statistics)
    }
}

fn close(current: Option<Current>) -> Result<(), ArchiveError> {
    let Some(current) = current else { return Ok(()) };
    current.file.sync_all().map_err(ArchiveError::io("sync", &current.path))
}
