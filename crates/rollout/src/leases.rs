//! Remembers which instances this save path holds, so that a run after a crash can give back what the crashed
//! one could not, and only that.

use std::{
    collections::BTreeSet,
    fs::{File, OpenOptions},
    io::{self, BufRead, BufReader, Write},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use crate::farm_client::Lease;

const FILE_NAME: &str = "leases.log";

/// An append-only file: a line when an instance is taken, a line when it is given back.
pub struct LeaseLog {
    path: PathBuf,
    file: Mutex<File>,
}

impl LeaseLog {
    pub fn open(save_path: &Path) -> io::Result<Self> {
        let path = save_path.join(FILE_NAME);
        let file = OpenOptions::new().create(true).append(true).open(&path)?;
        Ok(Self { path, file: Mutex::new(file) })
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
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = file.write_all(line.as_bytes()) {
            tracing::warn!(%error, path = %self.path.display(), "cannot note a lease");
        }
    }

    /// What an earlier run took and never gave back. The log starts anew.
    pub fn left_over(&self) -> io::Result<Vec<Lease>> {
        let mut held = BTreeSet::new();
        for line in BufReader::new(File::open(&self.path)?).lines() {
            let line = line?;
            let mut words = line.split('\t');
            let (Some(sign), Some(id), Some(node)) = (words.next(), words.next(), words.next()) else { continue };
            let lease = (id.to_owned(), node.to_owned());
            match sign {
                "+" => held.insert(lease),
                _ => held.remove(&lease),
            };
        }
        self.file.lock().unwrap_or_else(PoisonError::into_inner).set_len(0)?;
        Ok(held.into_iter().map(|(instance_id, node)| Lease { instance_id, node }).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_not_given_back_is_left_over() {
        let folder = tempfile::tempdir().unwrap();
        let lease = |name: &str| Lease { instance_id: name.into(), node: "http://n".into() };
        let log = LeaseLog::open(folder.path()).unwrap();
        log.taken(&lease("a"));
        log.taken(&lease("b"));
        log.given_back(&lease("a"));
        drop(log);
        let log = LeaseLog::open(folder.path()).unwrap();
        assert_eq!(log.left_over().unwrap(), [lease("b")]);
        assert_eq!(log.left_over().unwrap(), []);
    }
}
