//! One loop per rank and save path. A second lock shows whether programs of a killed loop still end.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long the supervisors of a killed loop may take to end its programs.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error(
        "another loop (process {holder}) works on this save path; stop it first, or use another save path"
    )]
    Held { holder: String },
    #[error(
        "programs of an earlier loop of this save path still run after {} s; the file {} is locked by their supervisor",
        CLEANUP_TIMEOUT.as_secs(), path.display()
    )]
    ProgramsLeft { path: PathBuf },
    #[error("cannot lock {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// The right to run the loop of a save path. Released when this process ends, however it ends.
#[derive(Debug)]
pub(crate) struct LoopLock {
    _file: File,
    /// What supervisors lock.
    pub(crate) programs: PathBuf,
}

impl LoopLock {
    /// Locks the loop, and waits until the programs of an earlier one have ended.
    pub(crate) async fn acquire(folder: &Path, rank: usize) -> Result<Self, LockError> {
        let path = folder.join(format!("rank_{rank}.lock"));
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| LockError::Io { path, source }
        };
        std::fs::create_dir_all(folder).map_err(failed(folder))?;
        let mut file = open(&path).map_err(failed(&path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                let _ = file.read_to_string(&mut holder);
                return Err(LockError::Held { holder: holder.trim().to_owned() });
            }
            Err(TryLockError::Error(source)) => return Err(LockError::Io { path, source }),
        }
        let written = file.set_len(0).and_then(|()| file.rewind());
        written.and_then(|()| writeln!(file, "{}", std::process::id())).map_err(failed(&path))?;
        let programs = folder.join(format!("rank_{rank}_programs.lock"));
        wait_for_programs(&programs).await?;
        Ok(Self { _file: file, programs })
    }
}

fn open(path: &Path) -> io::Result<File> {
    File::options().create(true).truncate(false).read(true).write(true).open(path)
}

async fn wait_for_programs(path: &Path) -> Result<(), LockError> {
    let failed = |source| LockError::Io { path: path.to_owned(), source };
    let file = open(path).map_err(failed)?;
    let end = Instant::now() + CLEANUP_TIMEOUT;
    loop {
        match file.try_lock() {
            Ok(()) => return file.unlock().map_err(failed),
            Err(TryLockError::WouldBlock) if Instant::now() < end => {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
            Err(TryLockError::WouldBlock) => return Err(LockError::ProgramsLeft { path: path.to_owned() }),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn second_loop_is_refused_with_the_first_ones_process() {
        let folder = tempfile::tempdir().unwrap();
        let first = LoopLock::acquire(folder.path(), 0).await.unwrap();
        let error = LoopLock::acquire(folder.path(), 0).await.unwrap_err().to_string();
        assert!(error.contains(&std::process::id().to_string()), "{error}");
        LoopLock::acquire(folder.path(), 1).await.unwrap();
        drop(first);
        LoopLock::acquire(folder.path(), 0).await.unwrap();
    }

    #[tokio::test]
    async fn loop_waits_for_the_programs_of_an_earlier_one() {
        let folder = tempfile::tempdir().unwrap();
        let programs = File::create(folder.path().join("rank_0_programs.lock")).unwrap();
        programs.lock_shared().unwrap();
        let path = folder.path().to_owned();
        let waiting = tokio::spawn(async move { LoopLock::acquire(&path, 0).await.map(drop) });
        tokio::time::sleep(POLL_INTERVAL * 3).await;
        assert!(!waiting.is_finished());
        programs.unlock().unwrap();
        waiting.await.unwrap().unwrap();
    }
}
