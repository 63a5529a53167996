//! One iteration over all of its files: those of several ranks, or the journal of a run that goes on. Holds their
//! summaries and reads trajectories; names each by a key that stays the same while the run does.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use proto::trajectory::Trajectory;
use store::layout::{FileKind, FoundFile};
use store::{IterationFile, Split, Summary, journal};

use super::ViewError;

/// What a file looked like when it was opened.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Stamp {
    path: PathBuf,
    length: u64,
    changed: u128,
}

impl Stamp {
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

/// Where a trajectory lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The position in a file.
    Finished { file: usize, position: usize },
    /// An episode of a journal that has begun and is not over.
    Begun { file: usize },
}

/// One line of the table: its name in addresses and where it lies.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The trajectory index; with `~1`, `~2`… after it where files of other origin use one several times.
    pub key: String,
    place: Place,
}

impl Entry {
    pub const fn is_begun(&self) -> bool {
        matches!(self.place, Place::Begun { .. })
    }
}

/// One iteration over all of its files.
#[derive(Debug)]
pub struct Iteration {
    pub split: Split,
    pub number: u64,
    stamps: Vec<Stamp>,
    files: Vec<IterationFile>,
    entries: Vec<Entry>,
    /// Files that cannot be read, and damaged lines, in words.
    pub problems: Vec<String>,
    pub is_finished: bool,
}

impl Iteration {
    pub(super) fn open(split: Split, number: u64, found: &[FoundFile], stamps: Vec<Stamp>) -> Self {
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
        iteration.note_damage();
        iteration.enter();
        iteration
    }

    fn note_damage(&mut self) {
        for file in &self.files {
            for damage in file.scan().into_iter().flat_map(|scan| &scan.damaged) {
                let path = file.path().display();
                self.problems.push(format!("{path}, line {}: {}", damage.line, damage.reason));
            }
        }
    }

    fn enter(&mut self) {
        let mut places: Vec<(i64, Place)> = Vec::new();
        for (file, opened) in self.files.iter().enumerate() {
            let summaries = opened.summaries().iter().enumerate();
            places.extend(
                summaries.map(|(position, one)| (one.trajectory_index, Place::Finished { file, position })),
            );
            let begun = opened.scan().into_iter().flat_map(|scan| scan.begun.keys());
            places.extend(begun.map(|index| (*index, Place::Begun { file })));
        }
        places.sort_by_key(|(index, _)| *index);
        let mut repeats: (Option<i64>, usize) = (None, 0);
        for (index, place) in places {
            repeats = if repeats.0 == Some(index) { (repeats.0, repeats.1 + 1) } else { (Some(index), 0) };
            let key = if repeats.1 == 0 { index.to_string() } else { format!("{index}~{}", repeats.1) };
            self.entries.push(Entry { key, place });
        }
    }

    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub fn summary(&self, entry: &Entry) -> Option<&Summary> {
        match entry.place {
            Place::Finished { file, position } => self.files.get(file)?.summaries().get(position),
            Place::Begun { file } => {
                let index: i64 = entry.key.split('~').next()?.parse().ok()?;
                self.files.get(file)?.scan()?.begun.get(&index)
            }
        }
    }

    /// Of what is over; an episode that still runs has no figures yet.
    pub fn finished(&self) -> impl Iterator<Item = &Summary> {
        self.files.iter().flat_map(IterationFile::summaries)
    }

    pub fn begun(&self) -> usize {
        self.entries.iter().filter(|entry| entry.is_begun()).count()
    }

    pub fn find(&self, key: &str) -> Result<&Entry, ViewError> {
        self.entries.iter().find(|entry| entry.key == key).ok_or_else(|| ViewError::NoTrajectory {
            split: self.split,
            iteration: self.number,
            key: key.to_owned(),
        })
    }

    pub fn read(&self, entry: &Entry) -> Result<Trajectory, ViewError> {
        let gone =
            || ViewError::NoTrajectory { split: self.split, iteration: self.number, key: entry.key.clone() };
        match entry.place {
            Place::Finished { file, position } => {
                Ok(self.files.get(file).ok_or_else(gone)?.read(position)?)
            }
            Place::Begun { file } => {
                let file = self.files.get(file).ok_or_else(gone)?;
                let index = self.summary(entry).ok_or_else(gone)?.trajectory_index;
                let read = journal::read_unfinished(file.path(), index).map_err(store::pt::PtError::from)?;
                read.ok_or_else(gone)
            }
        }
    }

    pub fn metadata(&self) -> Option<&store::RunMetadata> {
        self.files.first().map(IterationFile::metadata)
    }

    /// How many trajectories the run had announced, where journals say so.
    pub fn announced(&self) -> Option<u64> {
        let of_file = |file: &IterationFile| match file.scan() {
            Some(scan) => scan.run.as_ref().map(|run| run.tasks),
            None => Some(file.summaries().len() as u64),
        };
        (!self.is_finished).then(|| self.files.iter().filter_map(of_file).sum())
    }

    pub fn bytes(&self) -> u64 {
        self.stamps.iter().map(|stamp| stamp.length).sum()
    }

    /// Unix seconds of the latest change.
    pub fn changed(&self) -> u64 {
        let latest = self.stamps.iter().map(|stamp| stamp.changed).max().unwrap_or(0);
        u64::try_from(latest / 1_000_000_000).unwrap_or(u64::MAX)
    }

    /// None of its files changed since.
    pub(super) fn is_of(&self, stamps: &[Stamp]) -> bool {
        self.stamps == stamps
    }

    /// The same as long as no file changed; fit for an `ETag`.
    pub fn version(&self) -> String {
        version(&self.stamps)
    }
}

pub(super) fn version(stamps: &[Stamp]) -> String {
    let mut hasher = DefaultHasher::new();
    stamps.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}
