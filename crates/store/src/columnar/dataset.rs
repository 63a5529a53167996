//! The dataset of steps: one row a step, partitioned as `split=…/iteration=…/part-0.parquet`, which pandas, polars,
//! DuckDB and HuggingFace `datasets` open as it is. docs/formats.md describes the columns.

use std::path::{Path, PathBuf};

use proto::trajectory::{Evaluation, Step, StepExtras, TaskId, Trajectory};
use serde_json::Value;

use super::schema::Kind::{
    Bool, Int, OptionalBool, OptionalBytes, OptionalDoubleList, OptionalIntList, OptionalJson, OptionalText,
    Text, TextList,
};
use super::{Cell, Column, ColumnarError, TableWriter};
use crate::durable::Existing;
use crate::layout::{IterationId, SavePath};
use crate::screenshots;
use crate::summary::Summary;

/// Raised when a column is renamed, removed or changes its meaning; columns may be added without.
pub const SCHEMA_VERSION: u32 = 1;

const COLUMNS: [Column; 42] = [
    Column::new("trajectory_index", Int),
    Column::new("step", Int),
    Column::new("steps", Int),
    Column::new("is_last", Bool),
    Column::new("task_id", OptionalText),
    Column::new("task_name", Text),
    Column::new("website", Text),
    Column::new("domain", Text),
    Column::new("subdomain", Text),
    Column::new("difficulty", Int),
    Column::new("max_steps", Int),
    Column::new("attempt_level", Int),
    Column::new("reference_answer", OptionalText),
    Column::new("evaluator_reference", OptionalJson),
    Column::new("task_extra", OptionalJson),
    Column::new("outcome", Text),
    Column::new("trajectory_reward", Int),
    Column::new("trajectory_extra", OptionalJson),
    Column::new("reward", Int),
    Column::new("is_blocked", Bool),
    Column::new("submit", Bool),
    Column::new("submission_judgment", OptionalText),
    Column::new("evaluation", TextList),
    Column::new("is_keypoint", Bool),
    Column::new("screenshot_path", Text),
    Column::new("screenshot_sha256", OptionalText),
    Column::new("screenshot", OptionalBytes),
    Column::new("same_as_next_screenshot", OptionalBool),
    Column::new("url", Text),
    Column::new("title", Text),
    Column::new("ac_tree", OptionalText),
    Column::new("action_key", OptionalText),
    Column::new("action_arguments", OptionalJson),
    Column::new("action_string", OptionalText),
    Column::new("raw_prompt", Text),
    Column::new("raw_response", Text),
    Column::new("answering_tokens", OptionalJson),
    Column::new("prompt_token_ids", OptionalIntList),
    Column::new("token_ids", OptionalIntList),
    Column::new("logprobs", OptionalDoubleList),
    Column::new("timings_ms", OptionalJson),
    Column::new("schema_version", Int),
];

/// Names and types of the columns, as docs/formats.md must have them.
pub fn documented_columns() -> Vec<(&'static str, &'static str)> {
    COLUMNS.iter().map(|column| (column.name, column.kind.documented())).collect()
}

#[derive(Clone, Copy, Debug)]
pub struct DatasetOptions {
    /// Put the screenshots themselves into the file, not only their path and hash.
    pub inline_screenshots: bool,
    pub existing: Existing,
}

/// One iteration of the dataset in the making.
pub struct DatasetWriter {
    path: PathBuf,
    table: TableWriter,
    save_path: SavePath,
    options: DatasetOptions,
    missing_screenshots: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DatasetReport {
    pub path: PathBuf,
    pub rows: u64,
    /// Screenshots that are not where they were recorded; their hash is null.
    pub missing_screenshots: u64,
}

impl DatasetWriter {
    /// Begins the file of one iteration (or of one rank's share of it) below `root`.
    pub fn create(
        root: &Path,
        save_path: &SavePath,
        id: IterationId,
        options: DatasetOptions,
    ) -> Result<Self, ColumnarError> {
        let directory = root.join(format!("split={}", id.split)).join(format!("iteration={}", id.iteration));
        let path = directory.join(format!("part-{}.parquet", id.rank.unwrap_or(0)));
        std::fs::create_dir_all(&directory).map_err(|source| ColumnarError::io(&path, source))?;
        if options.existing == Existing::Refuse && path.exists() {
            return Err(ColumnarError::io(&path, std::io::ErrorKind::AlreadyExists.into()));
        }
        let metadata = [
            ("webgym.schema_version", SCHEMA_VERSION.to_string()),
            ("webgym.split", id.split.to_string()),
            ("webgym.iteration", id.iteration.to_string()),
        ];
        let bulky = ["raw_prompt", "raw_response", "ac_tree", "screenshot", "screenshot_sha256"];
        let table = TableWriter::create(&path, "webgym_step", &COLUMNS, &bulky, &metadata)?;
        Ok(Self { path, table, save_path: save_path.clone(), options, missing_screenshots: 0 })
    }

    pub fn push(&mut self, trajectory: &Trajectory) -> Result<(), ColumnarError> {
        let shared = Shared::of(trajectory);
        for (number, step) in (0_i64..).zip(&trajectory.steps) {
            let path = self.save_path.resolve_image(&step.observation.image_path);
            let hash = screenshots::sha256(&path).ok();
            self.missing_screenshots += u64::from(hash.is_none());
            let bytes = if self.options.inline_screenshots { std::fs::read(&path).ok() } else { None };
            push_step(
                &mut self.table,
                trajectory,
                &shared,
                (number, step),
                hash.as_deref(),
                bytes.as_deref(),
            )?;
        }
        Ok(())
    }

    pub fn finish(self) -> Result<DatasetReport, ColumnarError> {
        let rows = self.table.finish(self.options.existing)?;
        Ok(DatasetReport { path: self.path, rows, missing_screenshots: self.missing_screenshots })
    }
}

/// What all rows of a trajectory share, in the words of the table.
struct Shared {
    task_id: Option<String>,
    rubric: String,
    task_extra: Option<String>,
    trajectory_extra: Option<String>,
    outcome: &'static str,
    reward: i64,
}

impl Shared {
    fn of(trajectory: &Trajectory) -> Self {
        let task = &trajectory.task;
        let summary = Summary::of(trajectory);
        Self {
            task_id: task.task_id.as_ref().map(|id| match id {
                TaskId::Number(number) => number.to_string(),
                TaskId::Text(text) => text.clone(),
            }),
            rubric: serde_json::to_value(&task.evaluator_reference).unwrap_or_default().to_string(),
            task_extra: json(&Value::Object(task.extra.clone())),
            trajectory_extra: json(&Value::Object(trajectory.metadata.extra.clone())),
            outcome: summary.outcome_or_inferred().as_str(),
            reward: summary.reward,
        }
    }
}

fn push_step(
    table: &mut TableWriter,
    trajectory: &Trajectory,
    shared: &Shared,
    (number, step): (i64, &Step),
    hash: Option<&str>,
    screenshot: Option<&[u8]>,
) -> Result<(), ColumnarError> {
    let (task, count) = (&trajectory.task, i64::try_from(trajectory.steps.len()).unwrap_or(i64::MAX));
    let Step { observation, action, response, reward, extras, .. } = step;
    let arguments = action.as_ref().map(|action| Value::Object(action.arguments.clone()).to_string());
    let tokens = json(&Value::Object(response.answering_tokens.clone()));
    let StepExtras { prompt_token_ids, token_ids, logprobs, timings_ms } = extras;
    let widen =
        |ids: &Option<Vec<u32>>| ids.as_ref().map(|ids| ids.iter().map(|id| i64::from(*id)).collect());
    let (prompt_ids, reply_ids): (Option<Vec<i64>>, Option<Vec<i64>>) =
        (widen(prompt_token_ids), widen(token_ids));
    let timings = json(&Value::Object(timings_ms.clone()));
    let evaluation = match &reward.evaluation {
        Evaluation::Text(text) if text.is_empty() => Vec::new(),
        Evaluation::Text(text) => vec![text.as_str()],
        Evaluation::Texts(texts) => texts.iter().map(String::as_str).collect(),
    };
    table.push(&[
        Cell::Int(task.trajectory_index),
        Cell::Int(number),
        Cell::Int(count),
        Cell::Bool(number + 1 == count),
        Cell::OptionalText(shared.task_id.as_deref()),
        Cell::Text(&task.task_name),
        Cell::Text(&task.website),
        Cell::Text(&task.domain),
        Cell::Text(&task.subdomain),
        Cell::Int(task.difficulty),
        Cell::Int(task.max_steps),
        Cell::Int(task.attempt_level),
        Cell::OptionalText(task.reference_answer.as_deref()),
        Cell::OptionalText(Some(&shared.rubric)),
        Cell::OptionalText(shared.task_extra.as_deref()),
        Cell::Text(shared.outcome),
        Cell::Int(shared.reward),
        Cell::OptionalText(shared.trajectory_extra.as_deref()),
        Cell::Int(reward.reward),
        Cell::Bool(reward.is_blocked),
        Cell::Bool(reward.submit),
        Cell::OptionalText(reward.submission_judgment.as_deref()),
        Cell::Texts(evaluation),
        Cell::Bool(trajectory.metadata.keypoint_step_ids.contains(&number)),
        Cell::Text(&observation.image_path),
        Cell::OptionalText(hash),
        Cell::Bytes(screenshot),
        Cell::OptionalBool(step.same_as_next_screenshot),
        Cell::Text(&observation.url),
        Cell::Text(&observation.title),
        Cell::OptionalText(observation.ac_tree.as_deref()),
        Cell::OptionalText(action.as_ref().map(|action| action.key.as_str())),
        Cell::OptionalText(arguments.as_deref()),
        Cell::OptionalText(action.as_ref().map(|action| action.action_string.as_str())),
        Cell::Text(&response.raw_prompt),
        Cell::Text(&response.raw_response),
        Cell::OptionalText(tokens.as_deref()),
        Cell::Ints(prompt_ids.as_deref()),
        Cell::Ints(reply_ids.as_deref()),
        Cell::Doubles(logprobs.as_deref()),
        Cell::OptionalText(timings.as_deref()),
        Cell::Int(i64::from(SCHEMA_VERSION)),
    ])
}

/// Empty maps are null.
fn json(value: &Value) -> Option<String> {
    let is_empty = value.as_object().is_some_and(serde_json::Map::is_empty);
    (!is_empty).then(|| value.to_string())
}
