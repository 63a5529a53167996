//! Which tasks a new run has, and what is written down about them: the choice beside the journal, and what the run says
//! of itself in its files.

use std::{
    collections::HashSet,
    io::Write,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use serde_json::json;
use store::{
    IterationId, RunMetadata, SavePath,
    durable::{AtomicFile, Existing},
};

use super::{PlanError, SharedPlan, io, split};
use crate::{
    config::{Config, MaxSteps, Question, SamplerKind, Split},
    plan::{
        blocklist::Blocklist,
        sampler::{self, Draw, Sampler, Selection},
        shares::Ranks,
        tasks::{TaskFile, TaskKey},
    },
};

/// The choice of tasks, beside the journal: the blocklist and the task file may change while a run is interrupted.
#[derive(Serialize, Deserialize)]
pub(super) struct Chosen {
    pub(super) dataset: PathBuf,
    pub(super) tasks: Vec<(usize, usize)>,
    pub(super) total: usize,
}

/// All tasks of a new run, whoever collects them.
pub(super) fn choose(
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
        .map_err(|source| io("read", &save_path.blocklist(), source))?;
    notes.extend(warnings);
    let seen = if env.deduplicate_across_iterations { seen(save_path)? } else { HashSet::new() };
    let sampler = match env.train_tasks_sampler {
        SamplerKind::Uniform => Sampler::Uniform,
        SamplerKind::Ratio => Sampler::Ratio(&env.difficulty_ratio),
    };
    let size = usize::try_from(env.train_tasks_rollout_size).unwrap_or(0);
    let draw = Draw { size, sampler, seed };
    let selection = sampler::draw_train_tasks(
        file,
        &draw,
        |domain| blocked.is_blocked(domain),
        |key| seen.contains(key),
        ranks,
    );
    if selection.tasks.is_empty() {
        return Err(PlanError::NoTasks(format!("{} has none that may be used now", file.path().display())));
    }
    Ok(selection)
}

fn seen(save_path: &SavePath) -> Result<HashSet<TaskKey>, PlanError> {
    let earlier = |error: &dyn std::fmt::Display| PlanError::Earlier(error.to_string());
    let mut keys = HashSet::new();
    for iteration in store::iteration::iterations(save_path, store::Split::Train).map_err(|e| earlier(&e))? {
        let summaries = store::iteration::summaries_of(save_path, store::Split::Train, iteration)
            .map_err(|e| earlier(&e))?;
        keys.extend(
            summaries
                .iter()
                .map(|one| TaskKey::new(&one.subdomain, &one.website, one.difficulty, &one.task_name)),
        );
    }
    Ok(keys)
}

pub(super) fn metadata(
    config: &Config,
    dataset: &Path,
    (iteration, seed): (u64, u64),
    shared: Option<&SharedPlan>,
    now: jiff::Timestamp,
) -> RunMetadata {
    let env = &config.env_config;
    let judge = |question| config.judge_endpoint(question).model;
    let overrides = json!({
        "keypoint_detection": judge(Question::KeypointDetection),
        "blocking_detection": judge(Question::BlockingDetection),
        "evaluation": judge(Question::Evaluation),
    });
    let steps = max_steps(config);
    RunMetadata {
        solution_model: config.policy_model(),
        judge_model: Some(config.openai_config.model.clone()),
        judge_model_overrides: overrides,
        dataset_file: Some(dataset.display().to_string()),
        split: Some(split(env.split).to_string()),
        server_size: None,
        max_steps: json!({"easy": steps.easy, "medium": steps.medium, "hard": steps.hard}),
        timestamp: Some(now.to_string()),
        iteration: i64::try_from(iteration).ok(),
        seed: Some(seed),
        extra: shared.map(SharedPlan::facts).unwrap_or_default(),
    }
}

pub(super) fn dataset(config: &Config) -> Result<PathBuf, PlanError> {
    let (key, example) = match config.env_config.split {
        Split::Train => ("env_config.train_tasks", "train.jsonl"),
        Split::Test => ("env_config.test_tasks", "test.jsonl"),
    };
    let path = config.tasks_path().ok_or(PlanError::Missing { key, example })?;
    std::path::absolute(&path).map_err(|source| io("find", &path, source))
}

pub(super) fn max_steps(config: &Config) -> &MaxSteps {
    match config.env_config.split {
        Split::Train => &config.env_config.train_difficulty_max_steps,
        Split::Test => &config.env_config.test_difficulty_max_steps,
    }
}

/// Tells whether two configurations are the same.
pub(super) fn digest(config: &Config) -> String {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    serde_json::to_string(config).unwrap_or_default().hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

pub(super) fn choice_path(journal: &Path) -> PathBuf {
    let mut name = journal.as_os_str().to_owned();
    name.push(".tasks.json");
    name.into()
}

pub(super) fn write_choice(journal: &Path, dataset: &Path, selection: &Selection) -> Result<(), PlanError> {
    let path = choice_path(journal);
    let tasks =
        selection.tasks.iter().map(|selected| (selected.entry_index, selected.trajectory_index)).collect();
    let chosen = Chosen { dataset: dataset.to_owned(), tasks, total: selection.total };
    let written = AtomicFile::create(&path).and_then(|mut file| {
        file.write_all(&serde_json::to_vec(&chosen)?)?;
        file.commit(Existing::Replace)
    });
    written.map_err(|source| io("write", &path, source))
}

/// Throws away the plan of a run that one collector has finished alone.
pub fn forget_plan(save_path: &SavePath, id: IterationId) {
    let _ = std::fs::remove_file(save_path.plan(id.split, id.iteration));
}

/// Throws away what only an unfinished run needs.
pub fn forget_choice(journal: &Path) {
    let _ = std::fs::remove_file(choice_path(journal));
}
