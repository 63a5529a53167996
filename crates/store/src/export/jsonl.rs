//! JSON Lines export: one complete trajectory per line.

use std::path::{Path, PathBuf};

use proto::trajectory::Trajectory;
use serde_json::json;

use super::ExportError;
use super::sink::{JsonFile, Sink, Subset};
use crate::durable::Existing;
use crate::layout::IterationId;

/// Writes one file of JSON lines.
pub(super) struct Jsonl(JsonFile);

impl Jsonl {
    pub(super) fn create(out: &Path, subset: Subset, existing: Existing) -> Result<Self, ExportError> {
        Ok(Self(JsonFile::lines(out.join(format!("{}.jsonl", subset.as_str())), existing)?))
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
