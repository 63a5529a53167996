//! JSON Lines export: one complete trajectory per line.

use std::path::{Path, PathBuf};

use proto::trajectory::Trajectory;
use serde_json::json;

use super::ExportError;
use super::sink::{Example, JsonFile, Sink, Subset};
use crate::durable::Existing;
use crate::masked::steps_without_rewards;

/// Writes one file of JSON lines.
pub(super) struct Jsonl(JsonFile);

impl Jsonl {
    pub(super) fn create(out: &Path, subset: Subset, existing: Existing) -> Result<Self, ExportError> {
        Ok(Self(JsonFile::lines(out.join(format!("{}.jsonl", subset.as_str())), existing)?))
    }
}

impl Sink for Jsonl {
    fn push(&mut self, example: &Example<'_>) -> Result<u64, ExportError> {
        let Example { id, trajectory: Trajectory { task, steps, metadata }, reward, advantage, .. } = example;
        let steps = if example.is_masked() { steps_without_rewards(steps) } else { json!(steps) };
        let line = json!({
            "split": id.split, "iteration": id.iteration, "reward": reward, "is_masked": example.is_masked(),
            "advantage": advantage, "task": task, "steps": steps, "metadata": metadata,
        });
        self.0.push(&line)?;
        Ok(1)
    }

    fn finish(self: Box<Self>) -> Result<Vec<PathBuf>, ExportError> {
        Ok(vec![self.0.finish()?])
    }
}
