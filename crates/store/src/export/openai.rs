//! OpenAI's chat format: one line per step with the messages exactly as they were sent, followed by the reply.

use std::path::{Path, PathBuf};

use proto::trajectory::Trajectory;
use serde_json::{Value, json};

use super::ExportError;
use super::sink::{JsonFile, Sink, Subset};
use crate::durable::Existing;
use crate::layout::IterationId;

pub(super) struct OpenAiMessages(JsonFile);

impl OpenAiMessages {
    pub(super) fn create(out: &Path, subset: Subset, existing: Existing) -> Result<Self, ExportError> {
        Ok(Self(JsonFile::lines(out.join(format!("{}.jsonl", subset.as_str())), existing)?))
    }
}

impl Sink for OpenAiMessages {
    fn push(
        &mut self,
        id: IterationId,
        trajectory: &Trajectory,
        steps: &[usize],
    ) -> Result<u64, ExportError> {
        let mut count = 0;
        for number in steps {
            let step = &trajectory.steps[*number];
            let Ok(Value::Array(mut messages)) = serde_json::from_str(&step.response.raw_prompt) else {
                continue;
            };
            messages.push(json!({"role": "assistant", "content": step.response.raw_response}));
            let origin = json!({
                "split": id.split, "iteration": id.iteration, "step": number,
                "trajectory_index": trajectory.task.trajectory_index, "task_id": trajectory.task.task_id,
            });
            self.0.push(&json!({"messages": messages, "metadata": origin}))?;
            count += 1;
        }
        Ok(count)
    }

    fn finish(self: Box<Self>) -> Result<Vec<PathBuf>, ExportError> {
        Ok(vec![self.0.finish()?])
    }
}
