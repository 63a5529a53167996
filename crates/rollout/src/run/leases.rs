//! Records the leases that a run holds, so that the next run of the same save path can release the leases of a run that
//! crashed. Every run has its own file and keeps it locked while it is alive.

use std::{
    collections::BTreeSet,
    fs::{self, File, OpenOptions},
    io::{self, BufRead, BufReader, Write},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use futures_util::{StreamExt, stream};

use client::{
    farm::{ClientError, FarmClient, Lease},
    http::Deadline,
};

const FOLDER: &str = "leases";
/// Limits the time a new run spends on leases of an earlier one; leases that remain expire on the farm.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(20);
const MAX_CONCURRENT_RELEASES: usize = 32;

/// An append-only file with one line per acquired and one per released lease.
pub struct LeaseLog {
    path: PathBuf,
    log: Mutex<OpenLog>,
}

struct OpenLog {
    file: File,
    /// Leases acquired and not released.
    held: usize,
}

impl LeaseLog {
    pub fn open(save_path: &Path) -> io::Result<Self> {
        let folder = save_path.join(FOLDER);
        fs::create_dir_all(&folder)?;
        let path = folder.join(format!("{}.log", uuid::Uuid::new_v4().simple()));
        let file = OpenOptions::new().create_new(true).append(true).open(&path)?;
        // The lock marks this run as alive. On file systems without locks, leases of a crashed run expire on the farm.
        let _ = file.try_lock();
        Ok(Self { path, log: Mutex::new(OpenLog { file, held: 0 }) })
    }

    pub fn record_acquired(&self, lease: &Lease) {
        self.append('+', lease);
    }

    pub fn record_released(&self, lease: &Lease) {
        self.append('-', lease);
    }

    /// Writes a line at once, so that lines of several threads do not mix. A failed write is only logged: it costs the
    /// clean-up after a crash, not the run.
    fn append(&self, sign: char, lease: &Lease) {
        let line = format!("{sign}\t{}\t{}\n", lease.instance_id, lease.node);
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.held = if sign == '+' { log.held + 1 } else { log.held.saturating_sub(1) };
        if let Err(error) = log.file.write_all(line.as_bytes()) {
            tracing::warn!(%error, path = %self.path.display(), "cannot record a lease");
        }
    }

    /// Takes over the leases that crashed runs of this save path still hold and records them as this run's.
    pub fn adopt_left_over(&self) -> io::Result<Vec<Lease>> {
        let mut left = Vec::new();
        let Some(folder) = self.path.parent() else { return Ok(left) };
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path == self.path {
                continue;
            }
            let file = File::open(&path)?;
            if file.try_lock().is_ok() {
                let found = read_held(&file)?;
                // Recorded here before the other file is removed, because this run may be killed as well.
                for lease in &found {
                    self.record_acquired(lease);
                }
                fs::remove_file(&path)?;
                left.extend(found);
            }
        }
        Ok(left)
    }

    /// Releases the leases of crashed runs and returns how many there were.
    pub async fn release_left_over(&self, farm: &FarmClient) -> io::Result<usize> {
        let left = self.adopt_left_over()?;
        let deadline = Deadline::after(RELEASE_TIMEOUT);
        let count = left.len();
        let releases = stream::iter(left).for_each_concurrent(MAX_CONCURRENT_RELEASES, |lease| async move {
            // A lease that has expired meanwhile counts as released.
            if matches!(farm.release(&lease, deadline).await, Ok(()) | Err(ClientError::InvalidInstance(_))) {
                self.record_released(&lease);
            }
        });
        let _ = tokio::time::timeout_at(deadline.instant(), releases).await;
        Ok(count)
    }
}

impl Drop for LeaseLog {
    /// Removes the file when no lease is held.
    fn drop(&mut self) {
        if self.log.get_mut().unwrap_or_else(PoisonError::into_inner).held == 0 {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn read_held(file: &File) -> io::Result<Vec<Lease>> {
    let mut held = BTreeSet::new();
    for line in BufReader::new(file).lines() {
        let line = line?;
        let mut fields = line.split('\t');
        let (Some(sign), Some(id), Some(node)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        let lease = (id.to_owned(), node.to_owned());
        match sign {
            "+" => held.insert(lease),
            _ => held.remove(&lease),
        };
    }
    Ok(held.into_iter().map(|(instance_id, node)| Lease { instance_id, node }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(name: &str) -> Lease {
        Lease { instance_id: name.into(), node: "http://n".into() }
    }

    #[test]
    fn unreleased_leases_are_left_over() {
        let folder = tempfile::tempdir().unwrap();
        let log = LeaseLog::open(folder.path()).unwrap();
        log.record_acquired(&lease("a"));
        log.record_acquired(&lease("b"));
        log.record_released(&lease("a"));
        drop(log);
        let log = LeaseLog::open(folder.path()).unwrap();
        assert_eq!(log.adopt_left_over().unwrap(), [lease("b")]);
        assert_eq!(log.adopt_left_over().unwrap(), []);
        drop(log);
        let log = LeaseLog::open(folder.path()).unwrap();
        assert_eq!(log.adopt_left_over().unwrap(), [lease("b")], "adopted leases survive a second crash");
        log.record_released(&lease("b"));
        drop(log);
        assert_eq!(LeaseLog::open(folder.path()).unwrap().adopt_left_over().unwrap(), []);
    }

    #[test]
    fn leases_of_live_run_are_not_adopted() {
        let folder = tempfile::tempdir().unwrap();
        let other_rank = LeaseLog::open(folder.path()).unwrap();
        other_rank.record_acquired(&lease("a"));
        let log = LeaseLog::open(folder.path()).unwrap();
        assert_eq!(log.adopt_left_over().unwrap(), []);
        drop(other_rank);
        assert_eq!(log.adopt_left_over().unwrap(), [lease("a")]);
    }

    #[test]
    fn file_is_removed_after_all_releases() {
        let folder = tempfile::tempdir().unwrap();
        let log = LeaseLog::open(folder.path()).unwrap();
        log.record_acquired(&lease("a"));
        log.record_released(&lease("a"));
        drop(log);
        assert_eq!(fs::read_dir(folder.path().join(FOLDER)).unwrap().count(), 0);
    }
}
