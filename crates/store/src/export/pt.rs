//! `.pt` export: all selected trajectories in one file.

use std::path::{Path, PathBuf};

use super::ExportError;
use super::sink::{Example, Sink, Subset};
use crate::durable::Existing;
use crate::pt::PtWriter;
use crate::run_record::RunMetadata;

/// Writes one `.pt` file with the trajectories of all iterations.
pub(super) struct Pt {
    path: PathBuf,
    writer: PtWriter,
    existing: Existing,
    metadata: RunMetadata,
}

impl Pt {
    pub(super) fn create(out: &Path, subset: Subset, existing: Existing) -> Result<Self, ExportError> {
        let path = out.join(format!("{}.pt", subset.as_str()));
        Ok(Self { writer: PtWriter::create(&path)?, path, existing, metadata: RunMetadata::default() })
    }
}

impl Sink for Pt {
    fn push(&mut self, example: &Example<'_>) -> Result<u64, ExportError> {
        let Example { id, trajectory, .. } = example;
        self.metadata.split = Some(id.split.to_string());
        self.metadata.iteration = i64::try_from(id.iteration).ok();
        self.writer.push(trajectory)?;
        Ok(1)
    }

    fn finish(self: Box<Self>) -> Result<Vec<PathBuf>, ExportError> {
        self.writer.finish(&self.metadata, self.existing)?;
        Ok(vec![self.path])
    }
}
