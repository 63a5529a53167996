//! OpenAI's chat format: one line per step with the messages exactly as they were sent, followed by the reply.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::ExportError;
use super::sink::{Example, JsonFile, Sink, Subset};
use crate::durable::Existing;

pub(super) struct OpenAiMessages(JsonFile);

impl OpenAiMessages {
    pub(super) fn create(out: &Path, subset: Subset, existing: Existing) -> Result<Self, ExportError> {
        Ok(Self(JsonFile::lines(out.join(format!("{}.jsonl", subset.as_str())), existing)?))
    }
}

impl Sink for OpenAiMessages {
    fn push(&mut self, example: &Example<'_>) -> Result<u64, ExportError> {
        let Example { id, trajectory, steps, reward, advantage } = example;
        let mut count = 0;
        for number in *steps {
            let step = &trajectory.steps[*number];
            let Ok(Value::Array(mut messages)) = serde_json::from_str(&step.response.raw_prompt) else {
                continue;
            };
            messages.push(json!({"role": "assistant", "content": step.response.raw_response}));
            let origin = json!({
                "split": id.split, "iteration": id.iteration, "step": number,
                "trajectory_index": trajectory.task.trajectory_index, "task_id": trajectory.task.task_id,
                "group_id": trajectory.metadata.group_id, "policy_version": step.extras.policy_version,
                "forked_at_step": trajectory.metadata.forked_at_step,
                "reward": reward, "is_masked": example.is_masked(), "advantage": advantage,
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
