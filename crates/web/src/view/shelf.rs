//! The iterations that somebody looks at, kept open by their tables of contents. A file that changed since (a journal
//! that grows, a run that finished) is opened anew; no more than a few iterations are kept.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::UNIX_EPOCH;

use proto::trajectory::Trajectory;
use store::layout::{FileKind, FoundFile};
use store::{IterationFile, SavePath, Split, Summary, iteration, journal};

use super::ViewError;

/// Iterations whose summaries stay in memory: the one looked at, and some to compare with.
const KEPT_ITERATIONS: usize = 6;
/// Trajectories in full: the one on the screen asks for each of its screenshots.
const KEPT_TRAJECTORIES: usize = 8;

/// What a file looked like when it was opened.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Stamp {
    path: PathBuf,
    length: u64,
    changed: u128,
}

impl Stamp {
    fn of(found: &FoundFile) -> Self {
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
    fn open(split: Split, number: u64, found: &[FoundFile], stamps: Vec<Stamp>) -> Self {
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

    /// The same as long as no file changed; fit for an `ETag`.
    pub fn version(&self) -> String {
        version(&self.stamps)
    }
}

fn version(stamps: &[Stamp]) -> String {
    let mut hasher = DefaultHasher::new();
    stamps.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

type Slot = Arc<Mutex<Option<Arc<Iteration>>>>;

#[derive(Debug)]
pub(super) struct Shelf {
    save_path: SavePath,
    /// The most recently used last.
    slots: Mutex<VecDeque<((Split, u64), Slot)>>,
    trajectories: Mutex<VecDeque<(String, Arc<Trajectory>)>>,
}

impl Shelf {
    pub(super) const fn new(save_path: SavePath) -> Self {
        Self { save_path, slots: Mutex::new(VecDeque::new()), trajectories: Mutex::new(VecDeque::new()) }
    }

    pub(super) const fn save_path(&self) -> &SavePath {
        &self.save_path
    }

    /// The files of every iteration of a split, by number; only the directory is read.
    pub(super) fn numbers(&self, split: Split) -> Result<Vec<u64>, ViewError> {
        iteration::iterations(&self.save_path, split).map_err(|source| self.cannot_list(split, source))
    }

    fn cannot_list(&self, split: Split, source: std::io::Error) -> ViewError {
        ViewError::List { path: self.save_path.split_directory(split), source }
    }

    /// Opens an iteration, or gives the one that is open if none of its files changed.
    pub(super) fn iteration(&self, split: Split, number: u64) -> Result<Arc<Iteration>, ViewError> {
        let (found, stamps) = self.find(split, number)?;
        let slot = self.slot(split, number);
        // Held while the files are read: whoever asks for the same meanwhile waits and shares it.
        let mut kept = locked(&slot);
        if let Some(kept) = kept.as_ref().filter(|kept| kept.stamps == stamps) {
            return Ok(Arc::clone(kept));
        }
        let opened = Arc::new(Iteration::open(split, number, &found, stamps));
        *kept = Some(Arc::clone(&opened));
        Ok(opened)
    }

    fn find(&self, split: Split, number: u64) -> Result<(Vec<FoundFile>, Vec<Stamp>), ViewError> {
        let found = iteration::files_of(&self.save_path, split, number)
            .map_err(|source| self.cannot_list(split, source))?;
        if found.is_empty() {
            return Err(ViewError::NoIteration { split, iteration: number });
        }
        let stamps = found.iter().map(Stamp::of).collect();
        Ok((found, stamps))
    }

    fn slot(&self, split: Split, number: u64) -> Slot {
        let mut slots = locked(&self.slots);
        let at = slots.iter().position(|(name, _)| *name == (split, number));
        let (_, slot) =
            at.and_then(|at| slots.remove(at)).unwrap_or_else(|| ((split, number), Slot::default()));
        slots.push_back(((split, number), Arc::clone(&slot)));
        while slots.len() > KEPT_ITERATIONS {
            slots.pop_front();
        }
        slot
    }

    /// One trajectory in full.
    pub(super) fn trajectory(&self, iteration: &Iteration, key: &str) -> Result<Arc<Trajectory>, ViewError> {
        let entry = iteration.find(key)?;
        let name = format!("{}/{}/{}/{key}", iteration.version(), iteration.split, iteration.number);
        if let Some((_, kept)) = locked(&self.trajectories).iter().find(|(kept, _)| *kept == name) {
            return Ok(Arc::clone(kept));
        }
        let read = Arc::new(iteration.read(entry)?);
        let mut kept = locked(&self.trajectories);
        kept.push_back((name, Arc::clone(&read)));
        while kept.len() > KEPT_TRAJECTORIES {
            kept.pop_front();
        }
        Ok(read)
    }
}

/// Nothing that is kept here can be left half done, so a panic elsewhere does not spoil it.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answers by iteration that are kept as long as its files stay the same, also when the files are no longer open.
#[derive(Debug)]
pub(super) struct Memo<T>(Mutex<Answers<T>>);

/// By iteration: the version of its files, and the answer.
type Answers<T> = HashMap<(Split, u64), (String, Arc<T>)>;

impl<T> Default for Memo<T> {
    fn default() -> Self {
        Self(Mutex::new(HashMap::new()))
    }
}

impl<T> Memo<T> {
    pub(super) fn get(
        &self,
        shelf: &Shelf,
        (split, number): (Split, u64),
        make: impl FnOnce(&Iteration) -> T,
    ) -> Result<Arc<T>, ViewError> {
        let version = version(&shelf.find(split, number)?.1);
        if let Some((_, kept)) = locked(&self.0).get(&(split, number)).filter(|(kept, _)| *kept == version) {
            return Ok(Arc::clone(kept));
        }
        let iteration = shelf.iteration(split, number)?;
        let made = Arc::new(make(&iteration));
        locked(&self.0).insert((split, number), (iteration.version(), Arc::clone(&made)));
        Ok(made)
    }
}
