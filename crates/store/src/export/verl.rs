//! verl's Parquet format: one row per step with the prompt as chat messages with `<image>` tags, the image paths, and
//! the inputs of a reward function. `messages` also contains the reply, for supervised training.

use std::path::{Path, PathBuf};

use proto::trajectory::Step;

use super::ExportError;
use super::conversation::{self, Conversation, Role};
use super::sink::{Example, Sink, Subset};
use crate::columnar::{Cell, Column, Kind, TableWriter};
use crate::durable::Existing;
use crate::layout::SavePath;

const MESSAGE: Kind = Kind::Records(&["role", "content"]);

const COLUMNS: [Column; 7] = [
    Column::new("data_source", Kind::Text),
    Column::new("prompt", MESSAGE),
    Column::new("images", Kind::Records(&["image"])),
    Column::new("ability", Kind::Text),
    Column::new(
        "reward_model",
        Kind::Group(&[Column::new("style", Kind::Text), Column::new("ground_truth", Kind::Text)]),
    ),
    Column::new(
        "extra_info",
        Kind::Group(&[
            Column::new("split", Kind::Text),
            Column::new("index", Kind::Int),
            Column::new("iteration", Kind::Int),
            Column::new("trajectory_index", Kind::Int),
            Column::new("step", Kind::Int),
            Column::new("task_name", Kind::Text),
            Column::new("website", Kind::Text),
            Column::new("difficulty", Kind::Int),
            Column::new("reward", Kind::OptionalInt),
            Column::new("is_masked", Kind::Bool),
            Column::new("advantage", Kind::OptionalDouble),
            Column::new("group_id", Kind::OptionalText),
            Column::new("policy_version", Kind::OptionalText),
            Column::new("forked_at_step", Kind::OptionalInt),
            Column::new("response", Kind::Text),
        ]),
    ),
    Column::new("messages", MESSAGE),
];

pub(super) struct Verl {
    path: PathBuf,
    save_path: SavePath,
    table: TableWriter,
    existing: Existing,
    subset: Subset,
    count: i64,
}

impl Verl {
    pub(super) fn create(
        out: &Path,
        subset: Subset,
        save_path: &SavePath,
        existing: Existing,
    ) -> Result<Self, ExportError> {
        let path = out.join(format!("{}.parquet", subset.as_str()));
        let plain = ["prompt.list.element.content", "messages.list.element.content", "extra_info.response"];
        let table = TableWriter::create(&path, "verl", &COLUMNS, &plain, &[])?;
        Ok(Self { path, save_path: save_path.clone(), table, existing, subset, count: 0 })
    }
}

impl Sink for Verl {
    fn push(&mut self, example: &Example<'_>) -> Result<u64, ExportError> {
        let Example { id, trajectory, steps, reward, advantage } = *example;
        let source = format!("webgym/{}", id.split);
        let task = &trajectory.task;
        let mut written = 0;
        for number in steps {
            let Step { response, extras, .. } = &trajectory.steps[*number];
            let Some(conversation) = Conversation::parse(&response.raw_prompt, &self.save_path) else {
                continue;
            };
            let reply = conversation::escape_media_tags(&response.raw_response);
            let mut roles: Vec<&str> = conversation.turns.iter().map(|turn| turn.role.as_str()).collect();
            let mut contents: Vec<&str> = conversation.turns.iter().map(|turn| turn.text.as_str()).collect();
            let prompt = vec![roles.clone(), contents.clone()];
            roles.push(Role::Assistant.as_str());
            contents.push(&reply);
            let images = conversation.images.iter().map(String::as_str).collect();
            self.table.push(&[
                Cell::Text(&source),
                Cell::Records(prompt),
                Cell::Records(vec![images]),
                Cell::Text("web"),
                Cell::Text("rule"),
                Cell::Text(task.reference_answer.as_deref().unwrap_or_default()),
                Cell::Text(self.subset.as_str()),
                Cell::Int(self.count),
                Cell::Int(i64::try_from(id.iteration).unwrap_or(i64::MAX)),
                Cell::Int(task.trajectory_index),
                Cell::Int(i64::try_from(*number).unwrap_or(i64::MAX)),
                Cell::Text(&task.task_name),
                Cell::Text(&task.website),
                Cell::Int(task.difficulty),
                Cell::OptionalInt(reward),
                Cell::Bool(example.is_masked()),
                Cell::OptionalDouble(advantage),
                Cell::OptionalText(trajectory.metadata.group_id.as_deref()),
                Cell::OptionalText(extras.policy_version.as_deref()),
                Cell::OptionalInt(
                    trajectory.metadata.forked_at_step.and_then(|step| i64::try_from(step).ok()),
                ),
                Cell::Text(&response.raw_response),
                Cell::Records(vec![roles, contents]),
            ])?;
            self.count += 1;
            written += 1;
        }
        Ok(written)
    }

    fn finish(self: Box<Self>) -> Result<Vec<PathBuf>, ExportError> {
        self.table.finish(self.existing)?;
        Ok(vec![self.path])
    }
}
