//! Advisory locks, which let one process at a time write a journal and are released when that process dies, and the
//! renaming of journals. Nothing here deletes a journal.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::JournalError;
use crate::durable::{is_same_file, sync_parent};
use crate::layout::set_aside_path;

/// Opens an existing file for appending and locks it.
pub(crate) fn open_locked(path: &Path) -> Result<File, JournalError> {
    loop {
        let file = File::options()
            .read(true)
            .append(true)
            .open(path)
            .map_err(|error| JournalError::io("open", path, error))?;
        lock(&file, path)?;
        // The previous holder may have renamed or removed the file between our opening and locking it.
        if is_same_file(&file, path).map_err(|error| JournalError::io("open", path, error))? {
            return Ok(file);
        }
    }
}

/// Opens or creates a file for appending and locks it. Returns whether the file is new.
pub(super) fn create_locked(path: &Path) -> Result<(File, bool), JournalError> {
    let created = File::options().read(true).append(true).create_new(true).open(path);
    match created {
        Ok(file) => {
            lock(&file, path)?;
            Ok((file, true))
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok((open_locked(path)?, false)),
        Err(error) => Err(JournalError::io("create", path, error)),
    }
}

fn lock(file: &File, path: &Path) -> Result<(), JournalError> {
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => JournalError::Locked { path: path.to_path_buf() },
        TryLockError::Error(error) => JournalError::io("lock", path, error),
    })
}

/// Whether a process holds the lock of this journal. Always false on file systems without locks.
pub fn is_being_written(path: &Path) -> bool {
    matches!(open_locked(path), Err(JournalError::Locked { .. }))
}

/// Renames a journal to `set_aside_….checkpoint.<time>` so that a new run can start. Returns the new path. Fails while another
/// process writes the journal.
pub fn set_aside(path: &Path) -> Result<PathBuf, JournalError> {
    let _lock = open_locked(path)?;
    let time = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
    for attempt in 0..1000 {
        let suffix = if attempt == 0 { time.clone() } else { format!("{time}-{attempt}") };
        let target = set_aside_path(path, &suffix);
        if !target.exists() {
            std::fs::rename(path, &target).map_err(|error| JournalError::io("set aside", path, error))?;
            sync_parent(&target).map_err(|error| JournalError::io("set aside", path, error))?;
            return Ok(target);
        }
    }
    let error =
        io::Error::new(io::ErrorKind::AlreadyExists, "all names for the renamed journal exist already");
    Err(JournalError::io("set aside", path, error))
}
