//! Remembers which instances a run holds, so that a run of the same save path after a crash can give back what the
//! crashed one could not, and only that. Every run has a file of its own and keeps it locked while it lives.

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
/// Giving back what an earlier run held must not hold up this one for long; what is left runs out by itself.
const GIVING_BACK: Duration = Duration::from_secs(20);
const AT_ONCE: usize = 32;

/// An append-only file: a line when an instance is taken, a line when it is given back.
pub struct LeaseLog {
    path: PathBuf,
    file: Mutex<Held>,
}

struct Held {
    file: File,
    count: usize,
}

impl LeaseLog {
    pub fn open(save_path: &Path) -> io::Result<Self> {
        let folder = save_path.join(FOLDER);
        fs::create_dir_all(&folder)?;
        let path = folder.join(format!("{}.log", uuid::Uuid::new_v4().simple()));
        let file = OpenOptions::new().create_new(true).append(true).open(&path)?;
        // The lock tells other runs that this one lives. Where there are no locks, leases run out by themselves.
        let _ = file.try_lock();
        Ok(Self { path, file: Mutex::new(Held { file, count: 0 }) })
    }

    pub fn taken(&self, lease: &Lease) {
        self.note('+', lease);
    }

    pub fn given_back(&self, lease: &Lease) {
        self.note('-', lease);
    }

    /// One write a line, so that lines of several threads never mix. A line that cannot be written costs a
    /// clean-up after a crash, not the run.
    fn note(&self, sign: char, lease: &Lease) {
        let line = format!("{sign}\t{}\t{}\n", lease.instance_id, lease.node);
        let mut held = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        held.count = if sign == '+' { held.count + 1 } else { held.count.saturating_sub(1) };
        if let Err(error) = held.file.write_all(line.as_bytes()) {
            tracing::warn!(%error, path = %self.path.display(), "cannot note a lease");
        }
    }

    /// What earlier runs of this save path took and never gave back. From now on this run holds it.
    pub fn left_over(&self) -> io::Result<Vec<Lease>> {
        let mut left = Vec::new();
        let Some(folder) = self.path.parent() else { return Ok(left) };
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path == self.path {
                continue;
            }
            let file = File::open(&path)?;
            if file.try_lock().is_ok() {
                let found = held(&file)?;
                // Noted here before it is forgotten there: this run may be killed as well.
                found.iter().for_each(|lease| self.taken(lease));
                fs::remove_file(&path)?;
                left.extend(found);
            }
        }
        Ok(left)
    }

    /// Gives those back, a few at a time; answers how many there were.
    pub async fn give_back_left_over(&self, farm: &FarmClient) -> io::Result<usize> {
        let left = self.left_over()?;
        let deadline = Deadline::after(GIVING_BACK);
        let count = left.len();
        let given = stream::iter(left).for_each_concurrent(AT_ONCE, |lease| async move {
            // Gone or run out by now is just as good.
            if matches!(farm.reset(&lease, deadline).await, Ok(()) | Err(ClientError::InvalidInstance(_))) {
                self.given_back(&lease);
            }
        });
        let _ = tokio::time::timeout_at(deadline.instant(), given).await;
        Ok(count)
    }
}

impl Drop for LeaseLog {
    /// A run that holds nothing leaves nothing.
    fn drop(&mut self) {
        if self.file.get_mut().unwrap_or_else(PoisonError::into_inner).count == 0 {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn held(file: &File) -> io::Result<Vec<Lease>> {
    let mut held = BTreeSet::new();
    for line in BufReader::new(file).lines() {
        let line = line?;
        let mut words = line.split('\t');
        let (Some(sign), Some(id), Some(node)) = (words.next(), words.next(), words.next()) else { continue };
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
    fn only_what_was_not_given_back_is_left_over() {
        let folder = tempfile::tempdir().unwrap();
        let log = LeaseLog::open(folder.path()).unwrap();
        log.taken(&lease("a"));
        log.taken(&lease("b"));
        log.given_back(&lease("a"));
        drop(log);
        let log = LeaseLog::open(folder.path()).unwrap();
        assert_eq!(log.left_over().unwrap(), [lease("b")]);
        assert_eq!(log.left_over().unwrap(), []);
        drop(log);
        let log = LeaseLog::open(folder.path()).unwrap();
        assert_eq!(log.left_over().unwrap(), [lease("b")], "who took it over is killed too");
        log.given_back(&lease("b"));
        drop(log);
        assert_eq!(LeaseLog::open(folder.path()).unwrap().left_over().unwrap(), []);
    }

    #[test]
    fn what_a_living_run_holds_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let other_rank = LeaseLog::open(folder.path()).unwrap();
        other_rank.taken(&lease("a"));
        let log = LeaseLog::open(folder.path()).unwrap();
        assert_eq!(log.left_over().unwrap(), []);
        drop(other_rank);
        assert_eq!(log.left_over().unwrap(), [lease("a")]);
    }

    #[test]
    fn a_run_that_gave_everything_back_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let log = LeaseLog::open(folder.path()).unwrap();
        log.taken(&lease("a"));
        log.given_back(&lease("a"));
        drop(log);
        assert_eq!(fs::read_dir(folder.path().join(FOLDER)).unwrap().count(), 0);
    }
}
