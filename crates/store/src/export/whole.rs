//! The formats that keep trajectories whole: JSON lines, `.pt` and the Parquet dataset.

use std::path::{Path, PathBuf};

use proto::trajectory::Trajectory;
use serde_json::json;

use super::ExportError;
use super::sink::{JsonFile, Part, Sink};
use crate::columnar::{DatasetOptions, DatasetWriter};
use crate::durable::Existing;
use crate::layout::{IterationId, SavePath};
use crate::pt::PtWriter;
use crate::run::RunMetadata;

/// One trajectory a line, with all that we know of it.
pub(super) struct Jsonl(JsonFile);

impl Jsonl {
    pub(super) fn create(out: &Path, part: Part, existing: Existing) -> Result<Self, ExportError> {
        Ok(Self(JsonFile::lines(out.join(format!("{}.jsonl", part.as_str())), existing)?))
    }
}

impl Sink for Jsonl {
    fn push(&mut self, id: IterationId, trajectory: &Trajectory, _: &[usize]) -> Result<u64, ExportError> {
        let Trajectory { task, steps, metadata } = trajectory;
        let line = json!({
            "split": id.split, "iteration": id.iteration, "task": task, "steps": steps, "metadata": metadata,
        });
        self.0.push(&line)?;
        Ok(1)
    }

    fn finish(self: Box<Self>) -> Result<Vec<PathBuf>, ExportError> {
        Ok(vec![self.0.finish()?])
    }
}

/// One `.pt` file over all iterations.
pub(super) struct Pt {
    path: PathBuf,
    writer: PtWriter,
    existing: Existing,
    metadata: RunMetadata,
}

impl Pt {
    pub(super) fn create(out: &Path, part: Part, existing: Existing) -> Result<Self, ExportError> {
        let path = out.join(format!("{}.pt", part.as_str()));
        Ok(Self { writer: PtWriter::create(&path)?, path, existing, metadata: RunMetadata::default() })
    }
}

impl Sink for Pt {
    fn push(&mut self, id: IterationId, trajectory: &Trajectory, _: &[usize]) -> Result<u64, ExportError> {
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

/// The dataset of steps: a file for each iteration.
pub(super) struct Parquet {
    root: PathBuf,
    save_path: SavePath,
    options: DatasetOptions,
    current: Option<(IterationId, DatasetWriter)>,
    files: Vec<PathBuf>,
}

impl Parquet {
    pub(super) fn create(root: PathBuf, save_path: &SavePath, options: DatasetOptions) -> Self {
        Self { root, save_path: save_path.clone(), options, current: None, files: Vec::new() }
    }

    fn finish_current(&mut self) -> Result<(), ExportError> {
        if let Some((_, writer)) = self.current.take() {
            self.files.push(writer.finish()?.path);
        }
        Ok(())
    }
}

impl Sink for Parquet {
    fn push(&mut self, id: IterationId, trajectory: &Trajectory, _: &[usize]) -> Result<u64, ExportError> {
        if self.current.as_ref().is_none_or(|(current, _)| *current != id) {
            self.finish_current()?;
        }
        let (_, writer) = match &mut self.current {
            Some(current) => current,
            none => {
                let writer = DatasetWriter::create(&self.root, &self.save_path, id, self.options)?;
                none.insert((id, writer))
            }
        };
        writer.push(trajectory)?;
        Ok(trajectory.steps.len() as u64)
    }

    fn finish(mut self: Box<Self>) -> Result<Vec<PathBuf>, ExportError> {
        self.finish_current()?;
        Ok(self.files)
    }
}
