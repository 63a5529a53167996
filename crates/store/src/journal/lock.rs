//! Who may write a journal: one process at a time, told by an advisory lock that dies with its holder. Also how a
//! journal is moved out of the way; nothing here deletes one.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::JournalError;
use crate::durable::sync_parent;

/// Opens an existing file for appending and locks it.
pub(crate) fn open_locked(path: &Path) -> Result<File, JournalError> {
    loop {
        let file = File::options()
            .read(true)
            .append(true)
            .open(path)
            .map_err(|error| JournalError::io("open", path, error))?;
        lock(&file, path)?;
        // Its holder before us may have renamed or removed it between the two.
        if is_still_there(&file, path).map_err(|error| JournalError::io("open", path, error))? {
            return Ok(file);
        }
    }
}

fn is_still_there(file: &File, path: &Path) -> io::Result<bool> {
    let (opened, named) = (file.metadata()?, std::fs::metadata(path)?);
    Ok((opened.dev(), opened.ino()) == (named.dev(), named.ino()))
}

/// Opens a file for appending, made if need be, and locks it. Tells whether it was made now.
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

/// Whether some process holds this journal. Where there are no locks, nobody is known to.
pub fn is_being_written(path: &Path) -> bool {
    matches!(open_locked(path), Err(JournalError::Locked { .. }))
}

/// Renames a journal to `….checkpoint.<time>` so that a fresh run can take its place; answers the new name.
/// Refused while another process writes it.
pub fn set_aside(path: &Path) -> Result<PathBuf, JournalError> {
    let _lock = open_locked(path)?;
    let time = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
    for attempt in 0..1000 {
        let suffix = if attempt == 0 { time.clone() } else { format!("{time}-{attempt}") };
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{suffix}"));
        let target = PathBuf::from(name);
        if !target.exists() {
            std::fs::rename(path, &target).map_err(|error| JournalError::io("set aside", path, error))?;
            sync_parent(&target).map_err(|error| JournalError::io("set aside", path, error))?;
            return Ok(target);
        }
    }
    let taken = io::Error::new(io::ErrorKind::AlreadyExists, "every name for it is taken");
    Err(JournalError::io("set aside", path, taken))
}
