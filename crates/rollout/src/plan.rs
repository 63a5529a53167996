//! Before a run: which tasks, in which order, under which number, written to which journal. A resumed run takes
//! all of that from what the interrupted one wrote down, whatever has changed since.

use std::{
    collections::{BTreeMap, HashSet},
    io::Write,
    path::{Path, PathBuf},
};

use proto::trajectory::{Outcome, Task};
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::{
    IterationId, Journal, JournalError, RunMetadata, RunRecord, SavePath,
    durable::{AtomicFile, Existing},
};

use crate::{
    blocklist::Blocklist,
    config::{Config, MaxSteps, Question, Resolved, SamplerKind, Split},
    sampler::{self, Draw, Sampler, Selected, Selection},
    shares::Ranks,
    tasks::{TaskError, TaskFile, TaskKey},
};

#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    #[error("{key} is not set; give it on the command line, for example {key}={example}")]
    Missing { key: &'static str, example: &'static str },
    #[error("env_config.{0}: {1}")]
    Ranks(&'static str, String),
    #[error("{0}")]
    Tasks(#[from] TaskError),
    #[error("no task is left to collect: {0}")]
    NoTasks(String),
    #[error("{0}")]
    Journal(#[from] JournalError),
    #[error(
        "{0}. To go on with it add --resume; to leave it aside and start a new run add --fresh (nothing is deleted)"
    )]
    Unfinished(JournalError),
    #[error("cannot {doing} {path}: {source}", path = path.display())]
    Io { doing: &'static str, path: PathBuf, source: std::io::Error },
    #[error("{path} does not fit the run it should resume: {why}", path = path.display())]
    Mismatch { path: PathBuf, why: String },
    #[error("cannot read what earlier iterations collected: {0}")]
    Earlier(String),
}

/// What to do about a journal that an earlier run left unfinished.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Unfinished {
    /// Say so and stop.
    #[default]
    Refuse,
    /// Collect the rest of it; if there is none, start a new run.
    Resume,
    /// Collect the rest of this one.
    ResumeFrom(PathBuf),
    /// Rename it and start a new run.
    SetAside,
}

/// A run that is ready to go.
pub struct Plan {
    pub id: IterationId,
    pub run: RunRecord,
    pub save_path: SavePath,
    pub ranks: Ranks,
    /// What is still to be collected, in queue order.
    pub tasks: Vec<Task>,
    /// What an earlier part of the run has finished, by trajectory index.
    pub finished: BTreeMap<i64, Outcome>,
    /// How many trajectories this rank's iteration will have.
    pub total: usize,
    pub journal: Journal,
    pub notes: Vec<String>,
}

/// The choice of tasks, beside the journal: the blocklist and the task file may change while a run is interrupted.
#[derive(Serialize, Deserialize)]
struct Chosen {
    dataset: PathBuf,
    tasks: Vec<(usize, usize)>,
    total: usize,
}

/// Chooses the tasks and opens the journal.
pub fn prepare(
    resolved: &Resolved,
    unfinished: &Unfinished,
    now: jiff::Timestamp,
) -> Result<Plan, PlanError> {
    let config = &resolved.config;
    let root =
        config.save_path.as_deref().ok_or(PlanError::Missing { key: "save_path", example: "runs/first" })?;
    // Pictures are named by their whole path, so that a policy server elsewhere on this disk finds them.
    let root = std::path::absolute(root).map_err(|source| io("find", root, source))?;
    let save_path = SavePath::new(&root);
    let split = split(config.env_config.split);
    let ranks = Ranks::of(&config.env_config).map_err(|(key, why)| PlanError::Ranks(key, why))?;
    let rank = (ranks.count() > 1).then_some(ranks.rank as u32);
    let found =
        save_path.unfinished_journal(split, rank).map_err(|source| io("look through", &root, source))?;
    let resume = match (unfinished, found) {
        (Unfinished::ResumeFrom(path), _) => Some(path.clone()),
        (Unfinished::Resume, Some(found)) => Some(found.path),
        (Unfinished::SetAside, Some(found)) => {
            let aside = store::journal::set_aside(&found.path)?;
            // Its choice of tasks goes with it, so that it can still be resumed by name.
            let _ = std::fs::rename(choice_path(&found.path), choice_path(&aside));
            None
        }
        (Unfinished::Refuse, Some(found)) => return Err(unfinished_error(&found.path)),
        (_, None) => None,
    };
    match resume {
        Some(journal) => resume_run(config, save_path, ranks, &journal),
        None => new_run(resolved, save_path, ranks, rank, now),
    }
}

fn unfinished_error(path: &Path) -> PlanError {
    let (finished, tasks) = store::journal::scan(path)
        .map_or((0, 0), |scan| (scan.finished.len() as u64, scan.run.map_or(0, |run| run.tasks)));
    PlanError::Unfinished(JournalError::Unfinished { path: path.to_owned(), finished, tasks })
}

fn new_run(
    resolved: &Resolved,
    save_path: SavePath,
    ranks: Ranks,
    rank: Option<u32>,
    now: jiff::Timestamp,
) -> Result<Plan, PlanError> {
    let config = &resolved.config;
    let split = split(config.env_config.split);
    let root = save_path.root().to_owned();
    let iteration =
        save_path.next_iteration(split, rank).map_err(|source| io("look through", &root, source))?;
    let id = IterationId::new(split, iteration).with_rank(rank);
    let seed = config.seed.unwrap_or_else(|| now.as_nanosecond() as u64);
    let path = dataset(config)?;
    let file = TaskFile::open(&path, config.env_config.skip_bad_tasks)?;
    let mut notes = resolved.notes.clone();
    let selection = choose(config, &file, &save_path, &ranks, seed, now, &mut notes)?;
    if selection.tasks.is_empty() {
        return Err(PlanError::NoTasks(format!("{} has none that may be used now", path.display())));
    }
    let tasks = selection.load(&file, max_steps(config))?;
    let run = RunRecord {
        split,
        iteration,
        rank,
        seed,
        config_digest: digest(config),
        tasks: tasks.len() as u64,
        metadata: metadata(config, &path, iteration, seed, now),
    };
    // Not before all is well: a run that is refused leaves nothing behind.
    save_path.create_directories(split).map_err(|source| io("create", &root, source))?;
    write_choice(&save_path.journal(id), &path, &selection)?;
    let journal = Journal::create(&save_path.journal(id), &run).map_err(|error| match error {
        JournalError::Unfinished { .. } => PlanError::Unfinished(error),
        other => PlanError::Journal(other),
    })?;
    notes.extend(selection.notes);
    let total = tasks.len();
    Ok(Plan { id, run, save_path, ranks, tasks, finished: BTreeMap::new(), total, journal, notes })
}

fn resume_run(config: &Config, save_path: SavePath, ranks: Ranks, path: &Path) -> Result<Plan, PlanError> {
    let choice = choice_path(path);
    let text = std::fs::read(&choice).map_err(|source| io("read", &choice, source))?;
    let mismatch = |why: String| PlanError::Mismatch { path: path.to_owned(), why };
    let chosen: Chosen = serde_json::from_slice(&text).map_err(|error| mismatch(error.to_string()))?;
    let (journal, recovered) = Journal::resume(path)?;
    let file = TaskFile::open(&chosen.dataset, true)?;
    let tasks: Vec<Selected> = chosen
        .tasks
        .iter()
        .map(|(place, trajectory_index)| Selected { place: *place, trajectory_index: *trajectory_index })
        .collect();
    if tasks.iter().any(|selected| selected.place >= file.entries().len()) {
        return Err(mismatch(format!("{} has fewer tasks than it had", chosen.dataset.display())));
    }
    let total = tasks.len();
    let selection = Selection { tasks, notes: Vec::new(), total: chosen.total };
    let mut tasks = selection.load(&file, max_steps(config))?;
    tasks.retain(|task| !recovered.finished.contains(&task.trajectory_index));
    let outcome = |located: &store::journal::Located| located.summary.outcome_or_inferred();
    let finished: BTreeMap<i64, Outcome> =
        recovered.scan.finished.iter().map(|(index, located)| (*index, outcome(located))).collect();
    let mut notes =
        vec![format!("resuming {}: {} of {total} trajectories are there", path.display(), finished.len())];
    if recovered.cut > 0 {
        notes.push(format!(
            "the last record was cut short by {} bytes; its episode is collected again",
            recovered.cut
        ));
    }
    if recovered.run.config_digest != digest(config) {
        notes.push(
            "the configuration has changed since the run began; tasks and order stay as they were".into(),
        );
    }
    let run = recovered.run;
    Ok(Plan { id: run.id(), run, save_path, ranks, tasks, finished, total, journal, notes })
}

fn choose(
    config: &Config,
    file: &TaskFile,
    save_path: &SavePath,
    ranks: &Ranks,
    seed: u64,
    now: jiff::Timestamp,
    notes: &mut Vec<String>,
) -> Result<Selection, PlanError> {
    let env = &config.env_config;
    if env.split == Split::Test {
        return Ok(sampler::test(
            file.entries(),
            env.test_tasks_rollout_size,
            env.test_tasks_repeat_times,
            ranks,
        ));
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
    Ok(sampler::train(file, &draw, |domain| blocked.is_blocked(domain), |key| seen.contains(key), ranks))
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

fn metadata(config: &Config, dataset: &Path, iteration: u64, seed: u64, now: jiff::Timestamp) -> RunMetadata {
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
        server_size: i64::try_from(env.server_size).ok(),
        max_steps: json!({"easy": steps.easy, "medium": steps.medium, "hard": steps.hard}),
        timestamp: Some(now.to_string()),
        iteration: i64::try_from(iteration).ok(),
        seed: Some(seed),
        extra: serde_json::Map::new(),
    }
}

fn dataset(config: &Config) -> Result<PathBuf, PlanError> {
    let (key, example) = match config.env_config.split {
        Split::Train => ("env_config.train_tasks", "train.jsonl"),
        Split::Test => ("env_config.test_tasks", "test.jsonl"),
    };
    let path = config.tasks_path().ok_or(PlanError::Missing { key, example })?;
    std::path::absolute(&path).map_err(|source| io("find", &path, source))
}

fn max_steps(config: &Config) -> &MaxSteps {
    match config.env_config.split {
        Split::Train => &config.env_config.train_difficulty_max_steps,
        Split::Test => &config.env_config.test_difficulty_max_steps,
    }
}

fn split(split: Split) -> store::Split {
    match split {
        Split::Train => store::Split::Train,
        Split::Test => store::Split::Test,
    }
}

/// Tells whether two configurations are the same.
fn digest(config: &Config) -> String {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    serde_json::to_string(config).unwrap_or_default().hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

fn choice_path(journal: &Path) -> PathBuf {
    let mut name = journal.as_os_str().to_owned();
    name.push(".tasks.json");
    name.into()
}

fn write_choice(journal: &Path, dataset: &Path, selection: &Selection) -> Result<(), PlanError> {
    let path = choice_path(journal);
    let tasks = selection.tasks.iter().map(|selected| (selected.place, selected.trajectory_index)).collect();
    let chosen = Chosen { dataset: dataset.to_owned(), tasks, total: selection.total };
    let written = AtomicFile::create(&path).and_then(|mut file| {
        file.write_all(&serde_json::to_vec(&chosen)?)?;
        file.commit(Existing::Replace)
    });
    written.map_err(|source| io("write", &path, source))
}

/// Throws away what only an unfinished run needs.
pub fn forget_choice(journal: &Path) {
    let _ = std::fs::remove_file(choice_path(journal));
}

fn io(doing: &'static str, path: &Path, source: std::io::Error) -> PlanError {
    PlanError::Io { doing, path: path.to_owned(), source }
}
