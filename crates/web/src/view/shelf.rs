//! The iterations that somebody looks at, kept open by their tables of contents. A file that changed since (a journal
//! that grows, a run that finished) is opened anew; no more than a few iterations are kept.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use proto::trajectory::Trajectory;
use store::layout::FoundFile;
use store::{SavePath, Split, iteration};

use super::ViewError;
use super::iteration::{Iteration, Stamp, version};

/// Iterations whose summaries stay in memory: the one looked at, and some to compare with.
const KEPT_ITERATIONS: usize = 6;
/// Trajectories in full: the one on the screen asks for each of its screenshots.
const KEPT_TRAJECTORIES: usize = 8;

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
        if let Some(kept) = kept.as_ref().filter(|kept| kept.is_of(&stamps)) {
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
