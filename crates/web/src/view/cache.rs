//! Recently viewed iterations and trajectories, kept in memory. An iteration whose files changed (a growing journal, a run
//! that finished) is opened again; only a few iterations are kept.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use proto::trajectory::Trajectory;
use store::layout::FoundFile;
use store::{SavePath, Split, iteration};

use super::ViewError;
use super::iteration::{FileStamp, Iteration, version};

/// Iterations whose summaries are kept: the one being viewed and some to compare it with.
const MAX_ITERATIONS: usize = 6;
/// Complete trajectories that are kept: the page requests each screenshot of a trajectory separately.
const MAX_TRAJECTORIES: usize = 8;

/// One cached iteration. Locked while its files are read, so that concurrent requests read them once.
type Slot = Arc<Mutex<Option<Arc<Iteration>>>>;

/// Least-recently-used caches over one save path.
#[derive(Debug)]
pub(super) struct IterationCache {
    save_path: SavePath,
    /// Ordered by use, the most recent last.
    slots: Mutex<VecDeque<((Split, u64), Slot)>>,
    trajectories: Mutex<VecDeque<(String, Arc<Trajectory>)>>,
}

impl IterationCache {
    pub(super) const fn new(save_path: SavePath) -> Self {
        Self { save_path, slots: Mutex::new(VecDeque::new()), trajectories: Mutex::new(VecDeque::new()) }
    }

    pub(super) const fn save_path(&self) -> &SavePath {
        &self.save_path
    }

    /// Lists the iteration numbers of a split. Reads only the directory.
    pub(super) fn numbers(&self, split: Split) -> Result<Vec<u64>, ViewError> {
        iteration::iterations(&self.save_path, split).map_err(|source| self.list_error(split, source))
    }

    fn list_error(&self, split: Split, source: std::io::Error) -> ViewError {
        ViewError::List { path: self.save_path.split_directory(split), source }
    }

    /// Returns an iteration, opening it if it is not cached or one of its files changed.
    pub(super) fn iteration(&self, split: Split, number: u64) -> Result<Arc<Iteration>, ViewError> {
        let (found, stamps) = self.find(split, number)?;
        let slot = self.slot(split, number);
        let mut cached = lock(&slot);
        if let Some(cached) = cached.as_ref().filter(|cached| cached.is_current(&stamps)) {
            return Ok(Arc::clone(cached));
        }
        let opened = Arc::new(Iteration::open(split, number, &found, stamps));
        *cached = Some(Arc::clone(&opened));
        Ok(opened)
    }

    fn find(&self, split: Split, number: u64) -> Result<(Vec<FoundFile>, Vec<FileStamp>), ViewError> {
        let found = iteration::files_of(&self.save_path, split, number)
            .map_err(|source| self.list_error(split, source))?;
        if found.is_empty() {
            return Err(ViewError::NoIteration { split, iteration: number });
        }
        let stamps = found.iter().map(FileStamp::of).collect();
        Ok((found, stamps))
    }

    fn slot(&self, split: Split, number: u64) -> Slot {
        let mut slots = lock(&self.slots);
        let position = slots.iter().position(|(name, _)| *name == (split, number));
        let (_, slot) = position
            .and_then(|position| slots.remove(position))
            .unwrap_or_else(|| ((split, number), Slot::default()));
        slots.push_back(((split, number), Arc::clone(&slot)));
        while slots.len() > MAX_ITERATIONS {
            slots.pop_front();
        }
        slot
    }

    /// Returns a complete trajectory.
    pub(super) fn trajectory(&self, iteration: &Iteration, key: &str) -> Result<Arc<Trajectory>, ViewError> {
        let entry = iteration.find(key)?;
        let name = format!("{}/{}/{}/{key}", iteration.version(), iteration.split, iteration.number);
        if let Some((_, cached)) = lock(&self.trajectories).iter().find(|(cached, _)| *cached == name) {
            return Ok(Arc::clone(cached));
        }
        let read = Arc::new(iteration.read(entry)?);
        let mut cached = lock(&self.trajectories);
        cached.push_back((name, Arc::clone(&read)));
        while cached.len() > MAX_TRAJECTORIES {
            cached.pop_front();
        }
        Ok(read)
    }
}

/// Locks a mutex even if a thread panicked while holding it: every update here is a single assignment.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Values computed from iterations. A value is kept until the iteration's files change, even when the iteration itself is no
/// longer cached.
#[derive(Debug)]
pub(super) struct Memo<T>(Mutex<Values<T>>);

/// Maps an iteration to the version of its files and the value computed from them.
type Values<T> = HashMap<(Split, u64), (String, Arc<T>)>;

impl<T> Default for Memo<T> {
    fn default() -> Self {
        Self(Mutex::new(HashMap::new()))
    }
}

impl<T> Memo<T> {
    /// Returns the value for an iteration, computing it if its files changed.
    pub(super) fn get(
        &self,
        cache: &IterationCache,
        (split, number): (Split, u64),
        compute: impl FnOnce(&Iteration) -> T,
    ) -> Result<Arc<T>, ViewError> {
        let version = version(&cache.find(split, number)?.1);
        if let Some((_, value)) = lock(&self.0).get(&(split, number)).filter(|(known, _)| *known == version) {
            return Ok(Arc::clone(value));
        }
        let iteration = cache.iteration(split, number)?;
        let value = Arc::new(compute(&iteration));
        lock(&self.0).insert((split, number), (iteration.version(), Arc::clone(&value)));
        Ok(value)
    }
}
