//! Writing files so that a crash or a power cut never leaves half of one under its real name.

use std::fs::{self, File, TryLockError};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A file that appears under its name only when `commit` has made its content durable. Dropped before that, it
/// leaves nothing behind.
#[derive(Debug)]
pub struct AtomicFile {
    target: PathBuf,
    temporary: PathBuf,
    file: Option<BufWriter<File>>,
}

/// Whether a file of that name may already be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    Replace,
    Refuse,
}

impl AtomicFile {
    /// Opens a temporary file beside the target, in the same file system so that the rename is atomic. What killed
    /// processes have left of theirs is removed.
    pub fn create(target: impl Into<PathBuf>) -> io::Result<Self> {
        let target = target.into();
        sweep(&target);
        let (temporary, file) = open_temporary(&target)?;
        Ok(Self { target, temporary, file: Some(BufWriter::with_capacity(1 << 20, file)) })
    }

    fn writer(&mut self) -> io::Result<&mut BufWriter<File>> {
        self.file.as_mut().ok_or_else(committed)
    }

    /// Syncs the content, gives the file its name and syncs the directory that now holds the name.
    pub fn commit(mut self, existing: Existing) -> io::Result<()> {
        let file = self.file.take().ok_or_else(committed)?;
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        match existing {
            Existing::Replace => std::fs::rename(&self.temporary, &self.target)?,
            Existing::Refuse => name_exclusively(&self.temporary, &self.target)?,
        }
        sync_parent(&self.target)
    }
}

/// A file that others recognise by its lock as being written. Where there are no locks, nobody removes anything.
fn open_temporary(target: &Path) -> io::Result<(PathBuf, File)> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    const TRIES: usize = 16;
    let name = target.file_name().ok_or_else(|| io::Error::other("the target has no file name"))?;
    for _ in 0..TRIES {
        // In a container every process may have the same number, also the one that was killed before.
        let since = std::time::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_nanos());
        let unique = format!("{}-{since}-{}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed));
        let temporary = target.with_file_name(format!(".{}.{unique}.tmp", name.to_string_lossy()));
        let file = File::options().read(true).write(true).create_new(true).open(&temporary)?;
        let is_ours = !matches!(file.try_lock(), Err(TryLockError::WouldBlock));
        // Between its making and its locking somebody may have taken it for left over.
        if is_ours && is_at(&file, &temporary)? {
            return Ok((temporary, file));
        }
        let _ = fs::remove_file(&temporary);
    }
    Err(io::Error::other("the temporary file is removed again and again"))
}

fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let own = file.metadata()?;
    Ok(fs::metadata(path).is_ok_and(|there| (there.dev(), there.ino()) == (own.dev(), own.ino())))
}

/// Removes temporary files beside the target that no living process writes.
fn sweep(target: &Path) {
    let entries = target.parent().map(fs::read_dir);
    for entry in entries.into_iter().flatten().flatten().flatten() {
        let path = entry.path();
        if !path.file_name().and_then(|name| name.to_str()).is_some_and(is_temporary) {
            continue;
        }
        let Ok(file) = File::open(&path) else { continue };
        if file.try_lock().is_ok() && is_at(&file, &path).unwrap_or(false) {
            let _ = fs::remove_file(&path);
        }
    }
}

/// `.NAME.NUMBERS.tmp`, as `open_temporary` names them.
fn is_temporary(name: &str) -> bool {
    let inner = name.strip_prefix('.').and_then(|name| name.strip_suffix(".tmp"));
    let numbers = inner.and_then(|inner| inner.rsplit_once('.')).map(|(_, numbers)| numbers);
    numbers.is_some_and(|numbers| {
        numbers.contains('-') && numbers.bytes().all(|byte| byte == b'-' || byte.is_ascii_digit())
    })
}

fn committed() -> io::Error {
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
        // After a commit the name is gone already; on an error path there is nobody left to tell.
        let _ = std::fs::remove_file(&self.temporary);
    }
}

/// A hard link fails when the name is taken, which a rename would not. Where the file system has no hard links,
/// looking first is the best there is.
fn name_exclusively(temporary: &Path, target: &Path) -> io::Result<()> {
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

/// Makes the entry of a created, renamed or removed file durable.
pub fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    File::open(parent)?.sync_all()
}

/// Appends text in one write, so that lines of several processes do not mix.
pub fn append(path: &Path, text: &str) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    File::options().append(true).create(true).open(path)?.write_all(text.as_bytes())
}

/// Whether an error means that the disk, the quota or the allowed file size is used up.
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
    fn nothing_is_there_before_commit_and_nothing_but_the_file_after() {
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
    fn dropped_without_commit_it_leaves_no_trace() {
        let directory = tempfile::tempdir().unwrap();
        let mut file = AtomicFile::create(directory.path().join("a")).unwrap();
        file.write_all(b"half").unwrap();
        drop(file);
        assert!(names(directory.path()).is_empty());
    }

    #[test]
    fn what_a_killed_process_left_is_removed_and_what_a_living_one_writes_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("a");
        let left = [".a.1-0.tmp", ".b.77-12-3.tmp"].map(|name| directory.path().join(name));
        let foreign = directory.path().join(".notes.tmp");
        left.iter().chain([&foreign]).for_each(|path| std::fs::write(path, b"half").unwrap());
        let mut living = AtomicFile::create(&target).unwrap();
        living.write_all(b"whole").unwrap();
        let other = AtomicFile::create(&target).unwrap();
        assert!(left.iter().all(|path| !path.exists()) && foreign.exists());
        drop(other);
        living.commit(Existing::Refuse).unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"whole");
        assert_eq!(names(directory.path()).len(), 2, "the file and the stranger");
    }

    #[test]
    fn an_existing_file_is_replaced_only_when_told() {
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
    fn appended_text_follows_what_was_there() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("deep/log.txt");
        append(&path, "one\n").unwrap();
        append(&path, "two\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\n");
    }
}
