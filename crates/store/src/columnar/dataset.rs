//! The dataset of steps: one row per step, in files `<split>/iteration-<N>-part-<rank>.parquet`, which pandas, polars, DuckDB and
//! Hugging Face `datasets` can open directly. Split and iteration are columns: not all of them read folder names. docs/formats.md describes the columns.

use std::path::{Path, PathBuf};

use proto::trajectory::{Evaluation, Outcome, Step, StepExtras, TaskId, Trajectory, TrajectoryMetadata};
use serde_json::{Map, Value};

use super::schema::Kind::{
    Bool, Int, OptionalBool, OptionalBytes, OptionalDouble, OptionalDoubleList, OptionalInt, OptionalIntList,
    OptionalJson, OptionalText, Text, TextList,
};
use super::{Cell, Column, ColumnarError, TableWriter};
use crate::durable::Existing;
use crate::layout::{IterationId, SavePath};
use crate::screenshots;
use crate::summary::Summary;

/// Increased when a column is renamed, removed or changes its meaning, but not when a column is added.
pub const SCHEMA_VERSION: u32 = 3;

const COLUMNS: [Column; 49] = [
    Column::new("split", Text),
    Column::new("iteration", Int),
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
    Column::new("trajectory_reward", OptionalInt),
    Column::new("is_masked", Bool),
    Column::new("group_id", OptionalText),
    Column::new("advantage", OptionalDouble),
    Column::new("trajectory_extra", OptionalJson),
    Column::new("reward", OptionalInt),
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
    Column::new("finish_reason", OptionalText),
    Column::new("policy_version", OptionalText),
    Column::new("timings_ms", OptionalJson),
    Column::new("schema_version", Int),
];

/// Names and types of the columns. A test compares them with docs/formats.md.
pub fn documented_columns() -> Vec<(&'static str, &'static str)> {
    COLUMNS.iter().map(|column| (column.name, column.kind.documented())).collect()
}

#[derive(Clone, Copy, Debug)]
pub struct DatasetOptions {
    /// Store the screenshots in the file, in addition to their paths and hashes.
    pub inline_screenshots: bool,
    pub existing: Existing,
}

/// Writes the file of one iteration.
pub struct DatasetWriter {
    path: PathBuf,
    id: IterationId,
    table: TableWriter,
    save_path: SavePath,
    options: DatasetOptions,
    missing_screenshots: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DatasetReport {
    pub path: PathBuf,
    pub rows: u64,
    /// Number of screenshots that could not be found; their hash is null.
    pub missing_screenshots: u64,
}

impl DatasetWriter {
    /// Creates the file of one iteration, or of one rank of it, below `root`.
    pub fn create(
        root: &Path,
        save_path: &SavePath,
        id: IterationId,
        options: DatasetOptions,
    ) -> Result<Self, ColumnarError> {
        let directory = root.join(id.split.as_str());
        let path =
            directory.join(format!("iteration-{}-part-{}.parquet", id.iteration, id.rank.unwrap_or(0)));
        std::fs::create_dir_all(&directory).map_err(|source| ColumnarError::io(&path, source))?;
        if options.existing == Existing::Refuse && path.exists() {
            return Err(ColumnarError::io(&path, std::io::ErrorKind::AlreadyExists.into()));
        }
        let metadata = [
            ("webgym.schema_version", SCHEMA_VERSION.to_string()),
            ("webgym.split", id.split.to_string()),
            ("webgym.iteration", id.iteration.to_string()),
        ];
        let plain = ["raw_prompt", "raw_response", "ac_tree", "screenshot", "screenshot_sha256"];
        let table = TableWriter::create(&path, "webgym_step", &COLUMNS, &plain, &metadata)?;
        Ok(Self { path, id, table, save_path: save_path.clone(), options, missing_screenshots: 0 })
    }

    pub fn push(&mut self, trajectory: &Trajectory, advantage: Option<f64>) -> Result<(), ColumnarError> {
        let trajectory_values = TrajectoryValues::of(trajectory, advantage);
        for (number, step) in (0_i64..).zip(&trajectory.steps) {
            let screenshot = self.read_screenshot(&step.observation.image_path);
            let step_values = StepValues::of(step);
            let mut row = Vec::with_capacity(COLUMNS.len());
            row.extend(position_cells(self.id, trajectory, number));
            row.extend(trajectory_values.cells(trajectory));
            row.extend(reward_cells(trajectory, number, step, trajectory_values.outcome.is_masked()));
            row.extend(screenshot.cells(step));
            row.extend(step_values.cells(step));
            row.push(Cell::Int(i64::from(SCHEMA_VERSION)));
            self.table.push(&row)?;
        }
        Ok(())
    }

    fn read_screenshot(&mut self, recorded: &str) -> Screenshot {
        let path = self.save_path.resolve_image(recorded);
        let sha256 = screenshots::sha256(&path).ok();
        self.missing_screenshots += u64::from(sha256.is_none());
        let bytes = if self.options.inline_screenshots { std::fs::read(&path).ok() } else { None };
        Screenshot { sha256, bytes }
    }

    pub fn finish(self) -> Result<DatasetReport, ColumnarError> {
        let rows = self.table.finish(self.options.existing)?;
        Ok(DatasetReport { path: self.path, rows, missing_screenshots: self.missing_screenshots })
    }
}

/// Returns the cells of the columns `split` to `is_last`.
fn position_cells(id: IterationId, trajectory: &Trajectory, number: i64) -> [Cell<'static>; 6] {
    let count = i64::try_from(trajectory.steps.len()).unwrap_or(i64::MAX);
    [
        Cell::Text(id.split.as_str()),
        Cell::Int(i64::try_from(id.iteration).unwrap_or(i64::MAX)),
        Cell::Int(trajectory.task.trajectory_index),
        Cell::Int(number),
        Cell::Int(count),
        Cell::Bool(number + 1 == count),
    ]
}

/// Converted values that all rows of a trajectory share.
struct TrajectoryValues {
    task_id: Option<String>,
    rubric: String,
    task_extra: Option<String>,
    trajectory_extra: Option<String>,
    outcome: Outcome,
    reward: i64,
    advantage: Option<f64>,
}

impl TrajectoryValues {
    fn of(trajectory: &Trajectory, advantage: Option<f64>) -> Self {
        let task = &trajectory.task;
        let summary = Summary::of(trajectory);
        Self {
            task_id: task.task_id.as_ref().map(|id| match id {
                TaskId::Number(number) => number.to_string(),
                TaskId::Text(text) => text.clone(),
            }),
            rubric: serde_json::to_value(&task.evaluator_reference).unwrap_or_default().to_string(),
            task_extra: json_or_null(&task.extra),
            trajectory_extra: json_or_null(&trajectory_extra(&trajectory.metadata)),
            outcome: summary.outcome_or_inferred(),
            reward: summary.reward,
            advantage,
        }
    }

    /// Returns the cells of the columns `task_id` to `trajectory_extra`.
    fn cells<'a>(&'a self, trajectory: &'a Trajectory) -> [Cell<'a>; 17] {
        let task = &trajectory.task;
        let is_masked = self.outcome.is_masked();
        [
            Cell::OptionalText(self.task_id.as_deref()),
            Cell::Text(&task.task_name),
            Cell::Text(&task.website),
            Cell::Text(&task.domain),
            Cell::Text(&task.subdomain),
            Cell::Int(task.difficulty),
            Cell::Int(task.max_steps),
            Cell::Int(task.attempt_level),
            Cell::OptionalText(task.reference_answer.as_deref()),
            Cell::OptionalText(Some(&self.rubric)),
            Cell::OptionalText(self.task_extra.as_deref()),
            Cell::Text(self.outcome.as_str()),
            Cell::OptionalInt((!is_masked).then_some(self.reward)),
            Cell::Bool(is_masked),
            Cell::OptionalText(trajectory.metadata.group_id.as_deref()),
            Cell::OptionalDouble(self.advantage),
            Cell::OptionalText(self.trajectory_extra.as_deref()),
        ]
    }
}

/// Returns the cells of the columns `reward` to `is_keypoint`.
fn reward_cells<'a>(trajectory: &Trajectory, number: i64, step: &'a Step, is_masked: bool) -> [Cell<'a>; 6] {
    let reward = &step.reward;
    let evaluation = match &reward.evaluation {
        Evaluation::Text(text) if text.is_empty() => Vec::new(),
        Evaluation::Text(text) => vec![text.as_str()],
        Evaluation::Texts(texts) => texts.iter().map(String::as_str).collect(),
    };
    [
        Cell::OptionalInt((!is_masked).then_some(reward.reward)),
        Cell::Bool(reward.is_blocked),
        Cell::Bool(reward.submit),
        Cell::OptionalText(reward.submission_judgment.as_deref()),
        Cell::Texts(evaluation),
        Cell::Bool(trajectory.metadata.keypoint_step_ids.contains(&number)),
    ]
}

/// The screenshot of a step. Both fields are `None` if it cannot be read; `bytes` also if screenshots are not inlined.
struct Screenshot {
    sha256: Option<String>,
    bytes: Option<Vec<u8>>,
}

impl Screenshot {
    /// Returns the cells of the columns `screenshot_path` to `ac_tree`.
    fn cells<'a>(&'a self, step: &'a Step) -> [Cell<'a>; 7] {
        let observation = &step.observation;
        [
            Cell::Text(&observation.image_path),
            Cell::OptionalText(self.sha256.as_deref()),
            Cell::Bytes(self.bytes.as_deref()),
            Cell::OptionalBool(step.same_as_next_screenshot),
            Cell::Text(&observation.url),
            Cell::Text(&observation.title),
            Cell::OptionalText(observation.ac_tree.as_deref()),
        ]
    }
}

/// Converted values of a step.
struct StepValues {
    action_arguments: Option<String>,
    answering_tokens: Option<String>,
    prompt_token_ids: Option<Vec<i64>>,
    token_ids: Option<Vec<i64>>,
    timings_ms: Option<String>,
}

impl StepValues {
    fn of(step: &Step) -> Self {
        let StepExtras { prompt_token_ids, token_ids, timings_ms, .. } = &step.extras;
        let widen =
            |ids: &Option<Vec<u32>>| ids.as_ref().map(|ids| ids.iter().map(|id| i64::from(*id)).collect());
        Self {
            action_arguments: step
                .action
                .as_ref()
                .map(|action| Value::Object(action.arguments.clone()).to_string()),
            answering_tokens: json_or_null(&step.response.answering_tokens),
            prompt_token_ids: widen(prompt_token_ids),
            token_ids: widen(token_ids),
            timings_ms: json_or_null(timings_ms),
        }
    }

    /// Returns the cells of the columns `action_key` to `timings_ms`.
    fn cells<'a>(&'a self, step: &'a Step) -> [Cell<'a>; 12] {
        let Step { action, response, extras, .. } = step;
        [
            Cell::OptionalText(action.as_ref().map(|action| action.key.as_str())),
            Cell::OptionalText(self.action_arguments.as_deref()),
            Cell::OptionalText(action.as_ref().map(|action| action.action_string.as_str())),
            Cell::Text(&response.raw_prompt),
            Cell::Text(&response.raw_response),
            Cell::OptionalText(self.answering_tokens.as_deref()),
            Cell::Ints(self.prompt_token_ids.as_deref()),
            Cell::Ints(self.token_ids.as_deref()),
            Cell::Doubles(extras.logprobs.as_deref()),
            Cell::OptionalText(extras.finish_reason.as_deref()),
            Cell::OptionalText(extras.policy_version.as_deref()),
            Cell::OptionalText(self.timings_ms.as_deref()),
        ]
    }
}

/// A map as JSON text; `None` if it is empty.
/// Returns the metadata that has no column of its own.
fn trajectory_extra(metadata: &TrajectoryMetadata) -> Map<String, Value> {
    let network = metadata.network.as_ref().and_then(|network| serde_json::to_value(network).ok());
    let network = network.map(|network| ("network".to_owned(), network));
    let forked = metadata.forked_at_step.map(|step| ("forked_at_step".to_owned(), step.into()));
    forked.into_iter().chain(network).chain(metadata.extra.clone()).collect()
}

fn json_or_null(map: &Map<String, Value>) -> Option<String> {
    (!map.is_empty()).then(|| Value::Object(map.clone()).to_string())
}
