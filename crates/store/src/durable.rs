//! Writing files so that a crash or a power cut never leaves half of one under its real name.

use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
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
    /// Opens a temporary file beside the target, in the same file system so that the rename is atomic.
    pub fn create(target: impl Into<PathBuf>) -> io::Result<Self> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let target = target.into();
        let name = target.file_name().ok_or_else(|| io::Error::other("the target has no file name"))?;
        let unique = COUNTER.fetch_add(1, Ordering::Relaxed);
        let temporary =
            target.with_file_name(format!(".{}.{}-{unique}.tmp", name.to_string_lossy(), std::process::id()));
        let file = File::options().read(true).write(true).create_new(true).open(&temporary)?;
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
