//! Parquet export: the dataset of steps.

use std::path::PathBuf;

use super::ExportError;
use super::sink::{Example, Sink};
use crate::columnar::{DatasetOptions, DatasetWriter};
use crate::layout::{IterationId, SavePath};

/// Writes one Parquet file per iteration.
pub(super) struct ParquetDataset {
    root: PathBuf,
    save_path: SavePath,
    options: DatasetOptions,
    current: Option<(IterationId, DatasetWriter)>,
    files: Vec<PathBuf>,
}

impl ParquetDataset {
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

impl Sink for ParquetDataset {
    fn push(&mut self, example: &Example<'_>) -> Result<u64, ExportError> {
        let Example { id, trajectory, advantage, .. } = *example;
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
        writer.push(trajectory, advantage)?;
        Ok(trajectory.steps.len() as u64)
    }

    fn finish(mut self: Box<Self>) -> Result<Vec<PathBuf>, ExportError> {
        self.finish_current()?;
        Ok(self.files)
    }
}
