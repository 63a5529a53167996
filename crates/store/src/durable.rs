//! Writes files so that a crash or power loss never leaves a partial file under its final name.

use std::fs::{self, File, TryLockError};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A file that gets its final name only when `commit` has made its content durable. If it is dropped earlier, it
/// leaves nothing behind.
#[derive(Debug)]
pub struct AtomicFile {
    target: PathBuf,
    temporary: PathBuf,
    file: Option<BufWriter<File>>,
}

/// What to do when a file of the same name already exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    Replace,
    Refuse,
}

impl AtomicFile {
    /// Opens a temporary file next to the target, on the same file system so that the rename is atomic. Removes
    /// temporary files that killed processes left behind.
    pub fn create(target: impl Into<PathBuf>) -> io::Result<Self> {
        let target = target.into();
        remove_stale_temporaries(&target);
        let (temporary, file) = open_temporary(&target)?;
        Ok(Self { target, temporary, file: Some(BufWriter::with_capacity(1 << 20, file)) })
    }

    fn writer(&mut self) -> io::Result<&mut BufWriter<File>> {
        self.file.as_mut().ok_or_else(already_committed)
    }

    /// Syncs the content, renames the file to its target and syncs the directory.
    pub fn commit(mut self, existing: Existing) -> io::Result<()> {
        let file = self.file.take().ok_or_else(already_committed)?;
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        match existing {
            Existing::Replace => std::fs::rename(&self.temporary, &self.target)?,
            Existing::Refuse => rename_unless_exists(&self.temporary, &self.target)?,
        }
        sync_parent(&self.target)
    }
}

/// Creates and locks a temporary file; the lock shows other processes that it is in use. On file systems without
/// locks, stale files are never removed.
fn open_temporary(target: &Path) -> io::Result<(PathBuf, File)> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    const MAX_ATTEMPTS: usize = 16;
    let name = target.file_name().ok_or_else(|| io::Error::other("the target has no file name"))?;
    for _ in 0..MAX_ATTEMPTS {
        // The process id alone is not unique: in a container, a killed process and its successor often share it.
        let nanoseconds = std::time::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_nanos());
        let unique =
            format!("{}-{nanoseconds}-{}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed));
        let temporary = target.with_file_name(format!(".{}.{unique}.tmp", name.to_string_lossy()));
        let file = File::options().read(true).write(true).create_new(true).open(&temporary)?;
        let is_locked_by_other = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
        // Another process may have removed the file as stale between its creation and its locking.
        if !is_locked_by_other && is_same_file(&file, &temporary)? {
            return Ok((temporary, file));
        }
        let _ = fs::remove_file(&temporary);
    }
    Err(io::Error::other("other processes kept removing the temporary file"))
}

/// Whether `path` still names the open `file`.
pub(crate) fn is_same_file(file: &File, path: &Path) -> io::Result<bool> {
    let own = file.metadata()?;
    Ok(fs::metadata(path).is_ok_and(|named| (named.dev(), named.ino()) == (own.dev(), own.ino())))
}

/// Removes temporary files next to the target that no running process holds locked.
fn remove_stale_temporaries(target: &Path) {
    let entries = target.parent().map(fs::read_dir);
    for entry in entries.into_iter().flatten().flatten().flatten() {
        let path = entry.path();
        if !path.file_name().and_then(|name| name.to_str()).is_some_and(is_temporary) {
            continue;
        }
        let Ok(file) = File::open(&path) else { continue };
        if file.try_lock().is_ok() && is_same_file(&file, &path).unwrap_or(false) {
            let _ = fs::remove_file(&path);
        }
    }
}

/// Whether a file name has the form `.NAME.NUMBERS.tmp` that `open_temporary` uses.
fn is_temporary(name: &str) -> bool {
    let inner = name.strip_prefix('.').and_then(|name| name.strip_suffix(".tmp"));
    let numbers = inner.and_then(|inner| inner.rsplit_once('.')).map(|(_, numbers)| numbers);
    numbers.is_some_and(|numbers| {
        numbers.contains('-') && numbers.bytes().all(|byte| byte == b'-' || byte.is_ascii_digit())
    })
}

fn already_committed() -> io::Error {
    io::Error::other("the file was already committed")
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer()?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer()?.flush()
    }
}

impl Seek for AtomicFile {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.writer()?.seek(position)
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        // Fails after a commit, because the file was renamed; other errors cannot be reported from here.
        let _ = std::fs::remove_file(&self.temporary);
    }
}

/// Renames a file but fails if the target exists. A hard link does this atomically, a rename does not; on file systems
/// without hard links, checking first is the best available.
fn rename_unless_exists(temporary: &Path, target: &Path) -> io::Result<()> {
    match std::fs::hard_link(temporary, target) {
        Ok(()) => std::fs::remove_file(temporary),
        Err(error)
            if matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::PermissionDenied) =>
        {
            if target.exists() {
                return Err(io::Error::from(io::ErrorKind::AlreadyExists));
            }
            std::fs::rename(temporary, target)
        }
        Err(error) => Err(error),
    }
}

/// Syncs the directory of a file that was created, renamed or removed.
pub fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    File::open(parent)?.sync_all()
}

/// Writes a JSON file and creates missing directories. Readers see the old or the new content.
pub fn write_json(path: &Path, value: &impl serde::Serialize, existing: Existing) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut file = AtomicFile::create(path)?;
    serde_json::to_writer_pretty(&mut file, value)?;
    file.write_all(b"\n")?;
    file.commit(existing)
}

/// Appends text in a single write, so that lines from several processes do not interleave. Creates missing
/// directories.
pub fn append(path: &Path, text: &str) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    File::options().append(true).create(true).open(path)?.write_all(text.as_bytes())
}

/// Whether an error means that the disk is full or that a quota or file size limit was reached.
pub fn is_out_of_space(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(directory).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn target_appears_only_on_commit() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("a");
        let mut file = AtomicFile::create(&target).unwrap();
        file.write_all(b"half").unwrap();
        assert!(!target.exists());
        file.commit(Existing::Refuse).unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"half");
        assert_eq!(names(directory.path()), ["a"]);
    }

    #[test]
    fn drop_without_commit_leaves_no_file() {
        let directory = tempfile::tempdir().unwrap();
        let mut file = AtomicFile::create(directory.path().join("a")).unwrap();
        file.write_all(b"half").unwrap();
        drop(file);
        assert!(names(directory.path()).is_empty());
    }

    #[test]
    fn stale_temporary_files_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("a");
        let stale = [".a.1-0.tmp", ".b.77-12-3.tmp"].map(|name| directory.path().join(name));
        let unrelated = directory.path().join(".notes.tmp");
        stale.iter().chain([&unrelated]).for_each(|path| std::fs::write(path, b"half").unwrap());
        let mut in_use = AtomicFile::create(&target).unwrap();
        in_use.write_all(b"complete").unwrap();
        let other = AtomicFile::create(&target).unwrap();
        assert!(stale.iter().all(|path| !path.exists()) && unrelated.exists());
        drop(other);
        in_use.commit(Existing::Refuse).unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"complete");
        assert_eq!(names(directory.path()).len(), 2, "the target and the unrelated file");
    }

    #[test]
    fn existing_file_is_replaced_only_on_request() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("a");
        std::fs::write(&target, b"old").unwrap();
        let error = AtomicFile::create(&target).unwrap().commit(Existing::Refuse).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&target).unwrap(), b"old");
        AtomicFile::create(&target).unwrap().commit(Existing::Replace).unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"");
        assert_eq!(names(directory.path()), ["a"]);
    }

    #[test]
    fn append_adds_to_the_end() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("deep/log.txt");
        append(&path, "one\n").unwrap();
        append(&path, "two\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\n");
    }
}
