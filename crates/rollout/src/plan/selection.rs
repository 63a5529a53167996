//! The tasks of a new run and what is recorded about them: the selection file beside the journal, and the metadata of the run.

use std::{
    collections::HashSet,
    io::Write,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::{
    IterationId, RunMetadata, SavePath,
    durable::{AtomicFile, Existing},
    layout::{acknowledged_path, selection_path},
};

use super::{
    PlanError, SharedPlan,
    blocklist::Blocklist,
    ranks::Ranks,
    sampler::{self, Draw, Sampler, Selected, Selection},
    tasks::{TaskFile, TaskKey},
};
use crate::config::{Config, EnvConfig, JudgeKind, MaxSteps, Question, SamplerKind, Split};

/// The judge in the metadata of a run that compares with the reference answers.
const REFERENCE_JUDGE: &str = "reference";
const PROGRAM_JUDGE: &str = "program";

/// The selected tasks, stored beside the journal because blocklist and task file may change while a run is interrupted.
#[derive(Serialize, Deserialize)]
pub(super) struct SelectionFile {
    pub(super) dataset: PathBuf,
    /// Entry index in the task file and trajectory index of each task.
    tasks: Vec<(usize, usize)>,
    pub(super) total: usize,
    #[serde(default = "one")]
    pub(super) group_size: usize,
}

const fn one() -> usize {
    1
}

impl SelectionFile {
    /// Reads the selection file of a journal.
    pub(super) fn read(journal: &Path) -> Result<Self, PlanError> {
        let path = selection_path(journal);
        let text = std::fs::read(&path).map_err(|source| PlanError::io("read", &path, source))?;
        serde_json::from_slice(&text)
            .map_err(|error| PlanError::Mismatch { path: journal.to_owned(), reason: error.to_string() })
    }

    pub(super) fn selected(&self) -> impl Iterator<Item = Selected> {
        self.tasks.iter().map(|&(entry_index, trajectory_index)| Selected { entry_index, trajectory_index })
    }
}

/// Selects all tasks of a new run, for all ranks together.
pub(super) fn select_tasks(
    config: &Config,
    file: &TaskFile,
    save_path: &SavePath,
    seed: u64,
    now: jiff::Timestamp,
    notes: &mut Vec<String>,
) -> Result<Selection, PlanError> {
    let env = &config.env_config;
    let ranks = &Ranks::single();
    if env.split == Split::Test {
        let (size, repeat) = (env.test_tasks_rollout_size, env.test_tasks_repeat_times);
        return Ok(sampler::select_test_tasks(file.entries(), size, repeat, ranks));
    }
    let (blocked, warnings) = Blocklist::read(save_path.root(), now)
        .map_err(|source| PlanError::io("read", &save_path.blocklist(), source))?;
    notes.extend(warnings);
    let seen = if env.deduplicate_across_iterations { earlier_tasks(save_path)? } else { HashSet::new() };
    let sampler = match env.train_tasks_sampler {
        SamplerKind::Uniform => Sampler::Uniform,
        SamplerKind::Ratio if env.difficulty_ratio.is_empty() => {
            tracing::warn!(
                "env_config.train_tasks_sampler is ratio, but env_config.difficulty_ratio has no classes: tasks are drawn \
                 uniformly"
            );
            Sampler::Uniform
        }
        SamplerKind::Ratio => Sampler::Ratio(&env.difficulty_ratio),
    };
    let size = usize::try_from(env.train_tasks_rollout_size).unwrap_or(0);
    let draw = Draw { size, group_size: group_size(env), sampler, seed };
    let selection = sampler::draw_train_tasks(
        file,
        &draw,
        |domain| blocked.is_blocked(domain),
        |key| seen.contains(key),
        ranks,
    );
    if selection.tasks.is_empty() {
        return Err(PlanError::NoTasks(format!(
            "{} has no task that may be used now",
            file.path().display()
        )));
    }
    Ok(selection)
}

/// Returns the number of attempts at a task that belong to one group. Test tasks are repeated without groups.
pub(super) const fn group_size(env: &EnvConfig) -> usize {
    match env.split {
        Split::Train => env.group_size,
        Split::Test => 1,
    }
}

/// Returns the tasks of all earlier train iterations.
fn earlier_tasks(save_path: &SavePath) -> Result<HashSet<TaskKey>, PlanError> {
    let earlier = |error: &dyn std::fmt::Display| PlanError::Earlier(error.to_string());
    let mut keys = HashSet::new();
    for iteration in store::iteration::iterations(save_path, store::Split::Train).map_err(|e| earlier(&e))? {
        let summaries = store::iteration::summaries_of(save_path, store::Split::Train, iteration)
            .map_err(|e| earlier(&e))?;
        keys.extend(
            summaries
                .iter()
                .map(|task| TaskKey::new(&task.subdomain, &task.website, task.difficulty, &task.task_name)),
        );
    }
    Ok(keys)
}

/// Returns who judges the run, and the models of each kind of question.
fn judge_models(config: &Config) -> (Option<String>, Value) {
    let model = |question| config.judge_endpoint(question).request.model;
    match config.judge {
        JudgeKind::None => (None, json!({})),
        JudgeKind::Reference => (Some(REFERENCE_JUDGE.to_owned()), json!({})),
        JudgeKind::Program => (Some(PROGRAM_JUDGE.to_owned()), json!({})),
        JudgeKind::Auto | JudgeKind::Openai => (
            Some(config.openai_config.model.clone()),
            json!({
                "keypoint_detection": model(Question::KeypointDetection),
                "blocking_detection": model(Question::BlockingDetection),
                "evaluation": model(Question::Evaluation),
            }),
        ),
    }
}

pub(super) fn run_metadata(
    config: &Config,
    dataset: &Path,
    (iteration, seed): (u64, u64),
    shared: Option<&SharedPlan>,
    now: jiff::Timestamp,
) -> RunMetadata {
    let env = &config.env_config;
    let (judge_model, judge_model_overrides) = judge_models(config);
    let steps = max_steps(config);
    RunMetadata {
        solution_model: config.policy_model(),
        judge_model,
        judge_model_overrides,
        dataset_file: Some(dataset.display().to_string()),
        split: Some(store_split(env.split).to_string()),
        server_size: None,
        max_steps: json!({"easy": steps.easy, "medium": steps.medium, "hard": steps.hard}),
        timestamp: Some(now.to_string()),
        iteration: i64::try_from(iteration).ok(),
        seed: Some(seed),
        extra: shared.map(SharedPlan::metadata).unwrap_or_default(),
    }
}

/// Returns the absolute path of the task file.
pub(super) fn dataset(config: &Config) -> Result<PathBuf, PlanError> {
    let (key, example) = match config.env_config.split {
        Split::Train => ("env_config.train_tasks", "train.jsonl"),
        Split::Test => ("env_config.test_tasks", "test.jsonl"),
    };
    let path = config.tasks_path().ok_or(PlanError::Missing { key, example })?;
    std::path::absolute(&path).map_err(|source| PlanError::io("find", &path, source))
}

pub(super) fn max_steps(config: &Config) -> &MaxSteps {
    match config.env_config.split {
        Split::Train => &config.env_config.train_difficulty_max_steps,
        Split::Test => &config.env_config.test_difficulty_max_steps,
    }
}

/// Returns a digest that shows whether the configuration has changed.
pub(super) fn config_digest(config: &Config) -> String {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    serde_json::to_string(config).unwrap_or_default().hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

pub(super) fn write_selection_file(
    journal: &Path,
    dataset: &Path,
    selection: &Selection,
    group_size: usize,
) -> Result<(), PlanError> {
    let path = selection_path(journal);
    let tasks =
        selection.tasks.iter().map(|selected| (selected.entry_index, selected.trajectory_index)).collect();
    let chosen = SelectionFile { dataset: dataset.to_owned(), tasks, total: selection.total, group_size };
    let written = AtomicFile::create(&path).and_then(|mut file| {
        file.write_all(&serde_json::to_vec(&chosen)?)?;
        file.commit(Existing::Replace)
    });
    written.map_err(|source| PlanError::io("write", &path, source))
}

/// Removes the shared plan of a run that a single collector has finished.
pub fn remove_plan_file(save_path: &SavePath, id: IterationId) {
    let _ = std::fs::remove_file(save_path.plan(id.split, id.iteration));
}

/// Removes the files beside a journal, which only an unfinished run needs: the selection and the acknowledgments.
pub fn remove_selection_file(journal: &Path) {
    let _ = std::fs::remove_file(selection_path(journal));
    let _ = std::fs::remove_file(acknowledged_path(journal));
}

pub(super) fn store_split(split: Split) -> store::Split {
    match split {
        Split::Train => store::Split::Train,
        Split::Test => store::Split::Test,
    }
}
