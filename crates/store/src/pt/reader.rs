//! Reads `.pt` files. Our own files have an index for random access; other files are read in order. Only one
//! trajectory is in memory at a time.

use std::path::{Path, PathBuf};

use proto::trajectory::Trajectory;

use super::container::{self, Container, Input};
use super::index::{Index, PtEntry};
use super::{PtError, convert};
use crate::run_record::RunMetadata;
use crate::summary::Summary;
use crate::unpickle::{Machine, PickleError, UnpickleLimits, count_memo_uses, load};

/// An open `.pt` file; its trajectories are read on request.
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

    /// The index, which only our own files have.
    pub fn entries(&self) -> Option<&[PtEntry]> {
        self.index.as_ref().map(|index| index.entries.as_slice())
    }

    /// The metadata in the index, which only our own files have.
    pub fn own_metadata(&self) -> Option<&RunMetadata> {
        self.index.as_ref().map(|index| &index.header.metadata)
    }

    /// Reads the trajectory at `position`. Fast for our own files; other files are read up to that position.
    pub fn read(&self, position: usize) -> Result<Trajectory, PtError> {
        let missing = || self.shape_error(position, "the file has fewer trajectories".to_owned());
        if let Some(index) = &self.index {
            let entry = index.entries.get(position).ok_or_else(missing)?;
            let names = (0, Some(0), index.header.names);
            let parts = [names, (entry.offset, entry.compressed_offset, entry.length)];
            if let Some(bytes) = self.container.read_parts(&self.path, &parts) {
                return self.read_entry(bytes?, entry, position);
            }
        }
        self.trajectories()?.nth(position).ok_or_else(missing)?
    }

    fn read_entry(
        &self,
        mut bytes: Vec<u8>,
        entry: &PtEntry,
        position: usize,
    ) -> Result<Trajectory, PtError> {
        bytes.push(b'.');
        let value = load(&bytes, UnpickleLimits::default()).map_err(|error| self.pickle_error(error))?;
        let mut trajectory =
            convert::trajectory(&value, position).map_err(|reason| self.shape_error(position, reason))?;
        restore_task(&mut trajectory, &entry.summary);
        Ok(trajectory)
    }

    /// Reads all trajectories in order. Memory holds one trajectory and the values that later ones share.
    pub fn trajectories(&self) -> Result<Trajectories, PtError> {
        let Input { reader, length } = self.container.open(&self.path)?;
        let mut machine = Machine::new(reader, length, UnpickleLimits::default());
        // Our own pickles store few values in the memo; others store all of them, most without reading them again.
        if self.index.is_none() {
            let Input { reader, length } = self.container.open(&self.path)?;
            machine =
                machine.with_uses(count_memo_uses(reader, length).map_err(|error| self.pickle_error(error))?);
        }
        Ok(Trajectories { file: self.clone(), machine, position: 0, has_failed: false })
    }

    fn pickle_error(&self, source: PickleError) -> PtError {
        PtError::Pickle { path: self.path.clone(), source }
    }

    fn shape_error(&self, position: usize, reason: String) -> PtError {
        PtError::Shape { path: self.path.clone(), position, reason }
    }
}

/// Iterator over the trajectories of a file. The metadata is known at the end.
pub struct Trajectories {
    file: PtFile,
    machine: Machine<Box<dyn std::io::BufRead + Send>>,
    position: usize,
    has_failed: bool,
}

impl Trajectories {
    /// The `metadata` of the file. Reads to the end of the file if necessary.
    pub fn metadata(&mut self) -> Result<RunMetadata, PtError> {
        if let Some(metadata) = self.file.own_metadata() {
            return Ok(metadata.clone());
        }
        while self.machine.next_item().map_err(|error| self.file.pickle_error(error))?.is_some() {}
        let metadata = self.machine.root().and_then(|root| root.get("metadata"));
        metadata.map_or_else(
            || Ok(RunMetadata::default()),
            |metadata| {
                convert::metadata(metadata).map_err(|reason| self.file.shape_error(self.position, reason))
            },
        )
    }

    fn read_next(&mut self) -> Result<Option<Trajectory>, PtError> {
        let Some(value) = self.machine.next_item().map_err(|error| self.file.pickle_error(error))? else {
            let has_no_trajectories =
                self.machine.root().is_some_and(|root| root.get("trajectories").is_none());
            let is_list = self.machine.root().is_some_and(|root| root.as_items().is_some());
            if has_no_trajectories && !is_list {
                let reason = "it contains no list of trajectories".to_owned();
                return Err(PtError::Container { path: self.file.path.clone(), reason });
            }
            return Ok(None);
        };
        let position = self.position;
        self.position += 1;
        // The cost of a step does not include its shared task; charge the task once per trajectory.
        let task_size = convert::find_task(&value).map_or(0, crate::unpickle::Object::size);
        self.machine.charge(task_size).map_err(|error| self.file.pickle_error(error))?;
        let mut trajectory = convert::trajectory(&value, position)
            .map_err(|reason| self.file.shape_error(position, reason))?;
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
        let result = self.read_next();
        self.has_failed = result.is_err();
        result.transpose()
    }
}

/// Restores the task of a trajectory without steps from the index, because the pickle stores tasks only in steps.
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
