//! One iteration with all of its files: one per rank, or the journal of a run in progress. Holds the summaries and reads
//! trajectories; each trajectory has a key that stays the same while the run continues.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use proto::trajectory::Trajectory;
use store::layout::{FileKind, FoundFile};
use store::{IterationFile, Split, Summary, journal};

use super::ViewError;

/// Path, length and modification time of a file, to notice changes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct FileStamp {
    path: PathBuf,
    length: u64,
    changed: u128,
}

impl FileStamp {
    pub(super) fn of(found: &FoundFile) -> Self {
        let metadata = found.path.metadata().ok();
        let changed = metadata.as_ref().and_then(|data| data.modified().ok());
        let changed = changed.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        Self {
            path: found.path.clone(),
            length: metadata.map_or(0, |data| data.len()),
            changed: changed.map_or(0, |time| time.as_nanos()),
        }
    }
}

/// Where a trajectory is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Location {
    /// A finished trajectory, by its position in a file.
    Finished { file: usize, position: usize },
    /// An episode that has begun but not finished, in a journal.
    Unfinished { file: usize },
}

/// One trajectory of an iteration: its key in URLs and where it is stored.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The trajectory index, followed by `~1`, `~2`… if several trajectories of foreign files have the same index.
    pub key: String,
    location: Location,
}

impl Entry {
    /// Returns true if the episode is still running.
    pub const fn is_running(&self) -> bool {
        matches!(self.location, Location::Unfinished { .. })
    }
}

/// One iteration over all of its files.
#[derive(Debug)]
pub struct Iteration {
    pub split: Split,
    pub number: u64,
    stamps: Vec<FileStamp>,
    files: Vec<IterationFile>,
    entries: Vec<Entry>,
    /// Messages about unreadable files and damaged lines.
    pub problems: Vec<String>,
    pub is_finished: bool,
}

impl Iteration {
    pub(super) fn open(split: Split, number: u64, found: &[FoundFile], stamps: Vec<FileStamp>) -> Self {
        let mut iteration = Self {
            split,
            number,
            stamps,
            files: Vec::new(),
            entries: Vec::new(),
            problems: Vec::new(),
            is_finished: found.iter().all(|file| file.kind == FileKind::Finished),
        };
        for file in found {
            match IterationFile::open_found(file) {
                Ok(file) => iteration.files.push(file),
                Err(error) => iteration.problems.push(error.to_string()),
            }
        }
        iteration.record_damage();
        iteration.add_entries();
        iteration
    }

    fn record_damage(&mut self) {
        for file in &self.files {
            for damage in file.scan().into_iter().flat_map(|scan| &scan.damaged) {
                let path = file.path().display();
                self.problems.push(format!("{path}, line {}: {}", damage.line, damage.reason));
            }
        }
    }

    fn add_entries(&mut self) {
        let mut located: Vec<(i64, Location)> = Vec::new();
        for (file, opened) in self.files.iter().enumerate() {
            let summaries = opened.summaries().iter().enumerate();
            located.extend(summaries.map(|(position, summary)| {
                (summary.trajectory_index, Location::Finished { file, position })
            }));
            let unfinished = opened.scan().into_iter().flat_map(|scan| scan.unfinished_summaries.keys());
            located.extend(unfinished.map(|index| (*index, Location::Unfinished { file })));
        }
        located.sort_by_key(|(index, _)| *index);
        let mut previous = None;
        let mut repeats = 0_usize;
        for (index, location) in located {
            repeats = if previous == Some(index) { repeats + 1 } else { 0 };
            previous = Some(index);
            let key = if repeats == 0 { index.to_string() } else { format!("{index}~{repeats}") };
            self.entries.push(Entry { key, location });
        }
    }

    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub fn summary(&self, entry: &Entry) -> Option<&Summary> {
        match entry.location {
            Location::Finished { file, position } => self.files.get(file)?.summaries().get(position),
            Location::Unfinished { file } => {
                let index: i64 = entry.key.split('~').next()?.parse().ok()?;
                self.files.get(file)?.scan()?.unfinished_summaries.get(&index)
            }
        }
    }

    /// Returns the summaries of finished episodes.
    pub fn finished(&self) -> impl Iterator<Item = &Summary> {
        self.files.iter().flat_map(IterationFile::summaries)
    }

    /// Counts the episodes that are still running.
    pub fn running(&self) -> usize {
        self.entries.iter().filter(|entry| entry.is_running()).count()
    }

    pub fn find(&self, key: &str) -> Result<&Entry, ViewError> {
        self.entries.iter().find(|entry| entry.key == key).ok_or_else(|| ViewError::NoTrajectory {
            split: self.split,
            iteration: self.number,
            key: key.to_owned(),
        })
    }

    pub fn read(&self, entry: &Entry) -> Result<Trajectory, ViewError> {
        let missing =
            || ViewError::NoTrajectory { split: self.split, iteration: self.number, key: entry.key.clone() };
        match entry.location {
            Location::Finished { file, position } => {
                Ok(self.files.get(file).ok_or_else(missing)?.read(position)?)
            }
            Location::Unfinished { file } => {
                let file = self.files.get(file).ok_or_else(missing)?;
                let index = self.summary(entry).ok_or_else(missing)?.trajectory_index;
                let read = journal::read_unfinished(file.path(), index).map_err(store::pt::PtError::from)?;
                read.ok_or_else(missing)
            }
        }
    }

    pub fn metadata(&self) -> Option<&store::RunMetadata> {
        self.files.first().map(IterationFile::metadata)
    }

    /// Returns how many trajectories an unfinished run plans, according to its journals; `None` if it is finished.
    pub fn planned(&self) -> Option<u64> {
        let of_file = |file: &IterationFile| match file.scan() {
            Some(scan) => scan.run.as_ref().map(|run| run.tasks),
            None => Some(file.summaries().len() as u64),
        };
        (!self.is_finished).then(|| self.files.iter().filter_map(of_file).sum())
    }

    pub fn bytes(&self) -> u64 {
        self.stamps.iter().map(|stamp| stamp.length).sum()
    }

    /// Returns the time of the latest change in Unix seconds.
    pub fn changed(&self) -> u64 {
        let latest = self.stamps.iter().map(|stamp| stamp.changed).max().unwrap_or(0);
        u64::try_from(latest / 1_000_000_000).unwrap_or(u64::MAX)
    }

    /// Returns true if the files still are as they were when this iteration was opened.
    pub(super) fn is_current(&self, stamps: &[FileStamp]) -> bool {
        self.stamps == stamps
    }

    /// Returns a string that changes when a file changes; used as `ETag`.
    pub fn version(&self) -> String {
        version(&self.stamps)
    }
}

pub(super) fn version(stamps: &[FileStamp]) -> String {
    let mut hasher = DefaultHasher::new();
    stamps.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}
