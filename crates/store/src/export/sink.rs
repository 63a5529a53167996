//! The interface of the export formats, and the JSON files that several of them write.

use std::io::Write;
use std::path::{Path, PathBuf};

use proto::trajectory::Trajectory;
use serde_json::Value;

use super::ExportError;
use crate::durable::{self, AtomicFile, Existing};
use crate::layout::IterationId;

/// The subset of an export that an example belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subset {
    Train,
    Validation,
}

impl Subset {
    pub(super) const ALL: [Self; 2] = [Self::Train, Self::Validation];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Validation => "val",
        }
    }
}

/// A trajectory to export, and what is known about it.
pub(super) struct Example<'a> {
    pub(super) id: IterationId,
    pub(super) trajectory: &'a Trajectory,
    /// The steps that formats with one example per step export.
    pub(super) steps: &'a [usize],
    /// Unset for a masked trajectory.
    pub(super) reward: Option<i64>,
    pub(super) advantage: Option<f64>,
}

impl Example<'_> {
    pub(super) const fn is_masked(&self) -> bool {
        self.reward.is_none()
    }
}

/// An output that is being written.
pub(super) trait Sink {
    /// Adds a trajectory. Returns the number of examples.
    fn push(&mut self, example: &Example<'_>) -> Result<u64, ExportError>;
    /// Makes the files durable under their final names and returns their paths.
    fn finish(self: Box<Self>) -> Result<Vec<PathBuf>, ExportError>;
}

/// A file of JSON values, one per line or as an array.
pub(super) struct JsonFile {
    path: PathBuf,
    file: AtomicFile,
    existing: Existing,
    is_array: bool,
    count: u64,
}

impl JsonFile {
    pub(super) fn lines(path: PathBuf, existing: Existing) -> Result<Self, ExportError> {
        Self::create(path, existing, false)
    }

    pub(super) fn array(path: PathBuf, existing: Existing) -> Result<Self, ExportError> {
        Self::create(path, existing, true)
    }

    fn create(path: PathBuf, existing: Existing, is_array: bool) -> Result<Self, ExportError> {
        let file = AtomicFile::create(&path).map_err(|error| ExportError::io(&path, error))?;
        Ok(Self { path, file, existing, is_array, count: 0 })
    }

    pub(super) fn push(&mut self, value: &impl serde::Serialize) -> Result<(), ExportError> {
        let separator: &[u8] = match (self.is_array, self.count) {
            (false, _) => b"",
            (true, 0) => b"[\n",
            (true, _) => b",\n",
        };
        let written = self.file.write_all(separator).and_then(|()| {
            serde_json::to_writer(&mut self.file, value)?;
            if self.is_array { Ok(()) } else { self.file.write_all(b"\n") }
        });
        self.count += 1;
        written.map_err(|error| ExportError::io(&self.path, error))
    }

    pub(super) fn finish(mut self) -> Result<PathBuf, ExportError> {
        let end: &[u8] = match (self.is_array, self.count) {
            (false, _) => b"",
            (true, 0) => b"[]\n",
            (true, _) => b"\n]\n",
        };
        let Self { path, existing, .. } = &self;
        let (path, existing) = (path.clone(), *existing);
        self.file
            .write_all(end)
            .and_then(|()| self.file.commit(existing))
            .map_err(|error| ExportError::io(&path, error))?;
        Ok(path)
    }
}

/// Writes a JSON file.
pub(super) fn write_json(path: &Path, value: &Value, existing: Existing) -> Result<(), ExportError> {
    durable::write_json(path, value, existing).map_err(|error| ExportError::io(path, error))
}
