//! LLaMA-Factory's ShareGPT format: one example a step, the history as it was shown to the model and the step's reply
//! last, images by path, and the `dataset_info.json` that announces the files.

use std::path::{Path, PathBuf};

use proto::trajectory::{Step, Trajectory};
use serde_json::{Map, Value, json};

use super::messages::{self, Role};
use super::sink::{JsonFile, Part, Sink};
use super::{ExportError, sink};
use crate::durable::Existing;
use crate::layout::{IterationId, SavePath};

pub(super) struct LlamaFactory {
    save_path: SavePath,
    file: JsonFile,
}

impl LlamaFactory {
    pub(super) fn create(
        out: &Path,
        part: Part,
        save_path: &SavePath,
        existing: Existing,
    ) -> Result<Self, ExportError> {
        let file = JsonFile::array(out.join(file_name(part)), existing)?;
        Ok(Self { save_path: save_path.clone(), file })
    }
}

impl Sink for LlamaFactory {
    fn push(&mut self, _: IterationId, trajectory: &Trajectory, steps: &[usize]) -> Result<u64, ExportError> {
        let mut count = 0;
        for number in steps {
            if let Some(example) = example(&trajectory.steps[*number], &self.save_path) {
                self.file.push(&example)?;
                count += 1;
            }
        }
        Ok(count)
    }

    fn finish(self: Box<Self>) -> Result<Vec<PathBuf>, ExportError> {
        Ok(vec![self.file.finish()?])
    }
}

/// LLaMA-Factory wants human and gpt in turn, a human first and a gpt last, and as many images as marks.
fn example(step: &Step, save_path: &SavePath) -> Option<Value> {
    let conversation = messages::parse(&step.response.raw_prompt, save_path)?;
    let (system, turns, images) = conversation.into_alternating();
    let is_dialogue = turns.first()?.role == Role::User && turns.last()?.role == Role::User;
    if !is_dialogue {
        return None;
    }
    let mut conversations: Vec<Value> = turns
        .iter()
        .map(|turn| {
            let from = if turn.role == Role::User { "human" } else { "gpt" };
            json!({"from": from, "value": turn.text})
        })
        .collect();
    conversations.push(json!({"from": "gpt", "value": messages::escape(&step.response.raw_response)}));
    Some(json!({"conversations": conversations, "system": system, "images": images}))
}

fn file_name(part: Part) -> String {
    format!("{}.json", dataset_name(part))
}

fn dataset_name(part: Part) -> String {
    format!("webgym_{}", part.as_str())
}

/// Announces the files of the parts that were written.
pub(super) fn write_dataset_info(
    out: &Path,
    parts: &[Part],
    existing: Existing,
) -> Result<PathBuf, ExportError> {
    let description = |part: &Part| {
        let value = json!({
            "file_name": file_name(*part),
            "formatting": "sharegpt",
            "columns": {"messages": "conversations", "system": "system", "images": "images"},
            "tags": {"role_tag": "from", "content_tag": "value", "user_tag": "human", "assistant_tag": "gpt"},
        });
        (dataset_name(*part), value)
    };
    let path = out.join("dataset_info.json");
    let info: Map<String, Value> = parts.iter().map(description).collect();
    sink::write_json(&path, &Value::Object(info), existing)?;
    Ok(path)
}
