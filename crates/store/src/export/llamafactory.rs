//! LLaMA-Factory's ShareGPT format: one example per step with the history that the model saw, the reply of the step
//! and the image paths, and a `dataset_info.json` that describes the files.

use std::path::{Path, PathBuf};

use proto::trajectory::Step;
use serde_json::{Map, Value, json};

use super::conversation::{self, Conversation, Role};
use super::sink::{Example, JsonFile, Sink, Subset};
use super::{ExportError, sink};
use crate::durable::Existing;
use crate::layout::SavePath;

pub(super) struct LlamaFactory {
    save_path: SavePath,
    file: JsonFile,
}

impl LlamaFactory {
    pub(super) fn create(
        out: &Path,
        subset: Subset,
        save_path: &SavePath,
        existing: Existing,
    ) -> Result<Self, ExportError> {
        let file = JsonFile::array(out.join(file_name(subset)), existing)?;
        Ok(Self { save_path: save_path.clone(), file })
    }
}

impl Sink for LlamaFactory {
    fn push(&mut self, example: &Example<'_>) -> Result<u64, ExportError> {
        let mut count = 0;
        for number in example.steps {
            if let Some(conversation) = conversation(&example.trajectory.steps[*number], &self.save_path) {
                self.file.push(&conversation)?;
                count += 1;
            }
        }
        Ok(count)
    }

    fn finish(self: Box<Self>) -> Result<Vec<PathBuf>, ExportError> {
        Ok(vec![self.file.finish()?])
    }
}

/// Builds one example. LLaMA-Factory requires alternating human and gpt turns, starting with human and ending with
/// gpt, and one image per `<image>` tag.
fn conversation(step: &Step, save_path: &SavePath) -> Option<Value> {
    let conversation = Conversation::parse(&step.response.raw_prompt, save_path)?;
    let (system, turns, images) = conversation.into_alternating();
    let starts_and_ends_with_user = turns.first()?.role == Role::User && turns.last()?.role == Role::User;
    if !starts_and_ends_with_user {
        return None;
    }
    let mut conversations: Vec<Value> = turns
        .iter()
        .map(|turn| {
            let from = if turn.role == Role::User { "human" } else { "gpt" };
            json!({"from": from, "value": turn.text})
        })
        .collect();
    conversations
        .push(json!({"from": "gpt", "value": conversation::escape_media_tags(&step.response.raw_response)}));
    Some(json!({"conversations": conversations, "system": system, "images": images}))
}

fn file_name(subset: Subset) -> String {
    format!("{}.json", dataset_name(subset))
}

fn dataset_name(subset: Subset) -> String {
    format!("webgym_{}", subset.as_str())
}

/// Describes the files that were written.
pub(super) fn write_dataset_info(
    out: &Path,
    subsets: &[Subset],
    existing: Existing,
) -> Result<PathBuf, ExportError> {
    let description = |subset: &Subset| {
        let value = json!({
            "file_name": file_name(*subset),
            "formatting": "sharegpt",
            "columns": {"messages": "conversations", "system": "system", "images": "images"},
            "tags": {"role_tag": "from", "content_tag": "value", "user_tag": "human", "assistant_tag": "gpt"},
        });
        (dataset_name(*subset), value)
    };
    let path = out.join("dataset_info.json");
    let info: Map<String, Value> = subsets.iter().map(description).collect();
    sink::write_json(&path, &Value::Object(info), existing)?;
    Ok(path)
}
