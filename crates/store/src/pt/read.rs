//! Reads `.pt` files: ours by their table of contents, one trajectory at a time wherever it lies; others from front to
//! back, keeping no more than one trajectory.

use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use proto::trajectory::Trajectory;

use super::container::{self, Container, Input};
use super::index::{Index, PtEntry};
use super::{PtError, convert};
use crate::run::RunMetadata;
use crate::summary::Summary;
use crate::unpickle::{Limits, Machine, PickleError, count_uses, load};

/// A `.pt` file that was looked at but not read.
#[derive(Clone, Debug)]
pub struct PtFile {
    path: PathBuf,
    container: Container,
    index: Option<Index>,
}

impl PtFile {
    pub fn open(path: &Path) -> Result<Self, PtError> {
        let container = Container::find(path)?;
        let index = container::read_index(path, &container);
        Ok(Self { path: path.to_path_buf(), container, index })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The table of contents, which only our own files have.
    pub fn entries(&self) -> Option<&[PtEntry]> {
        self.index.as_ref().map(|index| index.entries.as_slice())
    }

    /// The metadata of our own files, without reading the trajectories.
    pub fn own_metadata(&self) -> Option<&RunMetadata> {
        self.index.as_ref().map(|index| &index.header.metadata)
    }

    /// Reads one trajectory by its place in the file. Quick for our own files; others are read up to there.
    pub fn read(&self, position: usize) -> Result<Trajectory, PtError> {
        let missing = || self.shape(position, "there are not that many trajectories".to_owned());
        match (&self.index, self.container.data_start()) {
            (Some(index), Some(start)) => {
                let entry = index.entries.get(position).ok_or_else(missing)?;
                self.read_entry(start, index.header.names, entry, position)
            }
            _ => self.trajectories()?.nth(position).ok_or_else(missing)?,
        }
    }

    fn read_entry(
        &self,
        start: u64,
        names: u64,
        entry: &PtEntry,
        position: usize,
    ) -> Result<Trajectory, PtError> {
        let mut file = container::open(&self.path)?;
        let mut bytes = Vec::new();
        let mut take = |offset: u64, length: u64| {
            file.seek(SeekFrom::Start(start + offset))?;
            (&mut file).take(length).read_to_end(&mut bytes).map(|_| ())
        };
        take(0, names)
            .and_then(|()| take(entry.offset, entry.length))
            .map_err(|error| PtError::io("read", &self.path, error))?;
        bytes.push(b'.');
        let value = load(&bytes, Limits::default()).map_err(|error| self.pickle(error))?;
        let mut trajectory =
            convert::trajectory(&value, position).map_err(|reason| self.shape(position, reason))?;
        restore_task(&mut trajectory, &entry.summary);
        Ok(trajectory)
    }

    /// All of them, front to back, in memory of one (and of what later ones share with it).
    pub fn trajectories(&self) -> Result<Trajectories, PtError> {
        let Input { reader, length } = self.container.open(&self.path)?;
        let mut machine = Machine::new(reader, length, Limits::default());
        // Our own pickles remember little that is not fetched again; others remember everything.
        if self.index.is_none() {
            let Input { reader, length } = self.container.open(&self.path)?;
            machine = machine.with_uses(count_uses(reader, length).map_err(|error| self.pickle(error))?);
        }
        Ok(Trajectories { file: self.clone(), machine, position: 0, has_failed: false })
    }

    fn pickle(&self, source: PickleError) -> PtError {
        PtError::Pickle { path: self.path.clone(), source }
    }

    fn shape(&self, position: usize, reason: String) -> PtError {
        PtError::Shape { path: self.path.clone(), position, reason }
    }
}

/// Iterates over the trajectories of a file; afterwards it knows the metadata.
pub struct Trajectories {
    file: PtFile,
    machine: Machine<Box<dyn std::io::BufRead + Send>>,
    position: usize,
    has_failed: bool,
}

impl Trajectories {
    /// The `metadata` of the file. Reads to the end if that was not reached yet.
    pub fn metadata(&mut self) -> Result<RunMetadata, PtError> {
        if let Some(metadata) = self.file.own_metadata() {
            return Ok(metadata.clone());
        }
        while self.machine.next_item().map_err(|error| self.file.pickle(error))?.is_some() {}
        let metadata = self.machine.root().and_then(|root| root.get("metadata"));
        metadata.map_or_else(
            || Ok(RunMetadata::default()),
            |metadata| convert::metadata(metadata).map_err(|reason| self.file.shape(self.position, reason)),
        )
    }

    fn advance(&mut self) -> Result<Option<Trajectory>, PtError> {
        let Some(value) = self.machine.next_item().map_err(|error| self.file.pickle(error))? else {
            let is_kept = self.machine.root().is_some_and(|root| root.get("trajectories").is_none());
            let is_list = self.machine.root().is_some_and(|root| root.as_items().is_some());
            if is_kept && !is_list {
                let reason = "it holds no list of trajectories".to_owned();
                return Err(PtError::Container { path: self.file.path.clone(), reason });
            }
            return Ok(None);
        };
        let position = self.position;
        self.position += 1;
        // Tasks are not counted with the steps that share them, so that each counts once here.
        let task = convert::find_task(&value).map_or(0, crate::unpickle::Object::size);
        self.machine.charge(task).map_err(|error| self.file.pickle(error))?;
        let mut trajectory =
            convert::trajectory(&value, position).map_err(|reason| self.file.shape(position, reason))?;
        if let Some(entry) = self.file.entries().and_then(|entries| entries.get(position)) {
            restore_task(&mut trajectory, &entry.summary);
        }
        Ok(Some(trajectory))
    }
}

impl Iterator for Trajectories {
    type Item = Result<Trajectory, PtError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        let result = self.advance();
        self.has_failed = result.is_err();
        result.transpose()
    }
}

/// A trajectory without steps has no place for its task; the table of contents remembers the most of it.
fn restore_task(trajectory: &mut Trajectory, summary: &Summary) {
    if !trajectory.steps.is_empty() {
        return;
    }
    let task = &mut trajectory.task;
    task.task_name.clone_from(&summary.task_name);
    task.domain.clone_from(&summary.domain);
    task.subdomain.clone_from(&summary.subdomain);
    task.website.clone_from(&summary.website);
    task.task_id.clone_from(&summary.task_id);
    task.difficulty = summary.difficulty;
    task.max_steps = summary.max_steps;
    task.trajectory_index = summary.trajectory_index;
    trajectory.metadata.outcome = summary.outcome;
}
