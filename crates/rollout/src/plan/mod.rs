//! Before a run: which tasks, in which order, under which number, written to which journal. A resumed run takes
//! all of that from what the interrupted one wrote down, whatever has changed since.

pub mod blocklist;
mod choice;
pub mod ranks;
pub mod sampler;
mod shared;
pub mod shares;
pub mod tasks;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use choice::{Chosen, choice_path, choose, dataset, digest, max_steps, metadata, write_choice};
pub use choice::{forget_choice, forget_plan};
use proto::trajectory::{Outcome, Task};
pub use shared::SharedPlan;
use store::{
    IterationId, Journal, JournalError, RunMetadata, RunRecord, SavePath,
    journal::{JournalReader, Record},
    layout::FoundFile,
};

use crate::{
    config::{Config, Resolved, Split},
    plan::{
        sampler::{Selected, Selection},
        shares::Ranks,
        tasks::{TaskError, TaskFile},
    },
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
    #[error(
        "the ranks do not agree: {key} is {here} here, but {there} for the rank that began the run ({path}). Start all ranks \
         with the same configuration", path = path.display()
    )]
    Disagree { path: PathBuf, key: String, there: String, here: String },
    #[error(
        "iteration {iteration} was begun by another launch at {begun} ({path}) and is not merged. To take part in it add \
         --resume; to leave it aside and start a new run add --fresh, for all ranks", path = path.display()
    )]
    OtherLaunch { path: PathBuf, begun: String, iteration: u64 },
    #[error("iteration {iteration} was collected and merged without this rank; there is nothing left to do")]
    DoneWithout { iteration: u64 },
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
    /// What all ranks agree on, where there are several.
    pub shared: Option<SharedPlan>,
    pub notes: Vec<String>,
}

/// Whether the configuration names what no run can do without.
pub fn check(config: &Config) -> Result<(), PlanError> {
    if config.save_path.is_none() {
        return Err(PlanError::Missing { key: "save_path", example: "runs/first" });
    }
    dataset(config).map(drop)
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
    let _deciding = if is_shared(config, &ranks) {
        save_path.create_directories(split).map_err(|source| io("create", &root, source))?;
        Some(shared::Deciding::begin(&save_path, split))
    } else {
        None
    };
    let found =
        save_path.unfinished_journal(split, rank).map_err(|source| io("look through", &root, source))?;
    let resume = match (unfinished, found) {
        (Unfinished::ResumeFrom(path), _) => Some(path.clone()),
        (Unfinished::Resume, Some(found)) => Some(found.path),
        (Unfinished::SetAside, Some(found)) => {
            retire_plan(&save_path, &found)?;
            let aside = store::journal::set_aside(&found.path)?;
            // Its choice of tasks goes with it, so that it can still be resumed by name.
            let _ = std::fs::rename(choice_path(&found.path), choice_path(&aside));
            None
        }
        (Unfinished::Refuse, Some(found)) => return Err(unfinished_error(&found.path)),
        (_, None) => None,
    };
    if let (None, Unfinished::Resume, Some(rank)) = (&resume, unfinished, rank) {
        let overtaken = save_path.superseded_journal(split, rank);
        if let Some(found) = overtaken.map_err(|source| io("look through", &root, source))? {
            let aside = store::journal::set_aside(&found.path)?;
            let _ = std::fs::rename(choice_path(&found.path), choice_path(&aside));
            return Err(PlanError::DoneWithout { iteration: found.id.iteration });
        }
    }
    match resume {
        Some(journal) => resume_run(config, save_path, ranks, &journal),
        None => new_run(resolved, save_path, ranks, rank, unfinished, now),
    }
}

/// Several collectors work on one choice of tasks.
fn is_shared(config: &Config, ranks: &Ranks) -> bool {
    ranks.count() > 1 || config.env_config.work_queue.is_some()
}

/// A plan goes aside with the journal of the first rank that leaves it; a newer one stays.
fn retire_plan(save_path: &SavePath, journal: &FoundFile) -> Result<(), PlanError> {
    let path = save_path.plan(journal.id.split, journal.id.iteration);
    let Some(plan) = SharedPlan::read(&path)? else { return Ok(()) };
    let first = JournalReader::open(&journal.path)?.next();
    let own = match first.and_then(Result::ok).map(|entry| entry.record) {
        Some(Ok(Record::Run(header))) => run_id(&header.run).map(str::to_owned),
        _ => None,
    };
    if own.is_some_and(|own| own == plan.run_id) { shared::set_aside(&path) } else { Ok(()) }
}

/// What tells the run of this record from every other; only runs of several ranks have it.
pub fn run_id(run: &RunRecord) -> Option<&str> {
    run.metadata.extra.get(store::aggregate::RUN_ID)?.as_str()
}

fn unfinished_error(path: &Path) -> PlanError {
    if store::journal::is_being_written(path) {
        return JournalError::Locked { path: path.to_owned() }.into();
    }
    let (finished, tasks) = store::journal::scan(path)
        .map_or((0, 0), |scan| (scan.finished.len() as u64, scan.run.map_or(0, |run| run.tasks)));
    PlanError::Unfinished(JournalError::Unfinished { path: path.to_owned(), finished, tasks })
}

fn new_run(
    resolved: &Resolved,
    save_path: SavePath,
    ranks: Ranks,
    rank: Option<u32>,
    unfinished: &Unfinished,
    now: jiff::Timestamp,
) -> Result<Plan, PlanError> {
    let config = &resolved.config;
    let split = split(config.env_config.split);
    let path = dataset(config)?;
    let file = TaskFile::open(&path, config.env_config.skip_bad_tasks)?;
    let mut notes = resolved.notes.clone();
    let id = IterationId::new(split, 0).with_rank(rank);
    let Agreed { iteration, seed, selection, shared } = if is_shared(config, &ranks) {
        let proposal = shared::Proposal { config, ranks: &ranks, file: &file, now };
        agree(&proposal, &save_path, id, unfinished, &mut notes)?
    } else {
        alone(config, &file, &save_path, id, now, &mut notes)?
    };
    let id = IterationId { iteration, ..id };
    let tasks = selection.load(&file, max_steps(config))?;
    let run = RunRecord {
        split,
        iteration,
        rank,
        seed,
        config_digest: digest(config),
        tasks: tasks.len() as u64,
        metadata: RunMetadata {
            server_size: i64::try_from(ranks.share(config.env_config.server_size)).ok(),
            ..metadata(config, &path, (iteration, seed), shared.as_ref(), now)
        },
    };
    // Not before all is well: a run that is refused leaves nothing behind.
    save_path.create_directories(split).map_err(|source| io("create", save_path.root(), source))?;
    write_choice(&save_path.journal(id), &path, &selection)?;
    let journal = Journal::create(&save_path.journal(id), &run).map_err(|error| match error {
        JournalError::Unfinished { .. } => PlanError::Unfinished(error),
        other => PlanError::Journal(other),
    })?;
    notes.extend(selection.notes);
    let total = tasks.len();
    Ok(Plan { id, run, save_path, ranks, tasks, finished: BTreeMap::new(), total, journal, shared, notes })
}

/// What a new run collects.
struct Agreed {
    iteration: u64,
    seed: u64,
    selection: Selection,
    shared: Option<SharedPlan>,
}

fn alone(
    config: &Config,
    file: &TaskFile,
    save_path: &SavePath,
    id: IterationId,
    now: jiff::Timestamp,
    notes: &mut Vec<String>,
) -> Result<Agreed, PlanError> {
    let next = save_path.next_iteration(id.split, id.rank);
    let iteration = next.map_err(|source| io("look through", save_path.root(), source))?;
    let seed = config.seed.unwrap_or_else(|| now.as_nanosecond() as u64);
    let selection = choose(config, file, save_path, seed, now, notes)?;
    Ok(Agreed { iteration, seed, selection, shared: None })
}

/// Takes part in the run that another rank has begun, or begins one for all.
fn agree(
    proposal: &shared::Proposal<'_>,
    save_path: &SavePath,
    id: IterationId,
    unfinished: &Unfinished,
    notes: &mut Vec<String>,
) -> Result<Agreed, PlanError> {
    let shared::Proposal { config, ranks, file, now } = *proposal;
    let env = &config.env_config;
    let plan = match shared::find(save_path, id, unfinished, env.launch_id.as_deref())? {
        Some((path, plan)) => {
            proposal.agrees_with(&plan, &path)?;
            notes.push(format!("taking part in iteration {}, planned in {}", plan.iteration, path.display()));
            plan
        }
        None => {
            if let Some(iteration) = shared::missed(save_path, id, env.launch_id.as_deref())? {
                return Err(PlanError::DoneWithout { iteration });
            }
            let begun = alone(config, file, save_path, id.with_rank(None), now, notes)?;
            notes.extend(shared::merged_without(save_path, id)?.map(|missed| {
                format!(
                    "iteration {missed} was merged without this rank; to add its share there, start it with --resume. This run \
                     begins iteration {}",
                    begun.iteration
                )
            }));
            let plan = proposal.plan(begun.iteration, begun.seed, &begun.selection.tasks);
            notes.extend(begun.selection.notes);
            plan.publish(&save_path.plan(id.split, begun.iteration))?;
            plan
        }
    };
    let tasks = if env.work_queue.is_some() { plan.all() } else { plan.share(env.split, ranks) };
    let selection = Selection { tasks, notes: Vec::new(), total: plan.total() };
    Ok(Agreed { iteration: plan.iteration, seed: plan.seed, selection, shared: Some(plan) })
}

fn resume_run(config: &Config, save_path: SavePath, ranks: Ranks, path: &Path) -> Result<Plan, PlanError> {
    let choice = choice_path(path);
    let text = std::fs::read(&choice).map_err(|source| io("read", &choice, source))?;
    let mismatch = |why: String| PlanError::Mismatch { path: path.to_owned(), why };
    let chosen: Chosen = serde_json::from_slice(&text).map_err(|error| mismatch(error.to_string()))?;
    let (journal, recovered) = Journal::resume(path)?;
    crate::episode::screenshots::discard_abandoned(&save_path.images(), &recovered.scan);
    let file = TaskFile::open(&chosen.dataset, true)?;
    let tasks: Vec<Selected> = chosen
        .tasks
        .iter()
        .map(|(entry_index, trajectory_index)| Selected {
            entry_index: *entry_index,
            trajectory_index: *trajectory_index,
        })
        .collect();
    if tasks.iter().any(|selected| selected.entry_index >= file.entries().len()) {
        return Err(mismatch(format!("{} has fewer tasks than it had", chosen.dataset.display())));
    }
    let total = tasks.len();
    let selection = Selection { tasks, notes: Vec::new(), total: chosen.total };
    let mut tasks = selection.load(&file, max_steps(config))?;
    tasks.retain(|task| !recovered.finished.contains(&task.trajectory_index));
    let outcome = |located: &store::journal::LocatedRecord| located.summary.outcome_or_inferred();
    let finished: BTreeMap<i64, Outcome> =
        recovered.scan.finished.iter().map(|(index, located)| (*index, outcome(located))).collect();
    let mut notes =
        vec![format!("resuming {}: {} of {total} trajectories are there", path.display(), finished.len())];
    if recovered.truncated_bytes > 0 {
        notes.push(format!(
            "the last record was cut short by {} bytes; its episode is collected again",
            recovered.truncated_bytes
        ));
    }
    if recovered.run.config_digest != digest(config) {
        notes.push(
            "the configuration has changed since the run began; tasks and order stay as they were".into(),
        );
    }
    let run = recovered.run;
    let shared = if is_shared(config, &ranks) { shared_of(&save_path, &run, path)? } else { None };
    Ok(Plan { id: run.id(), run, save_path, ranks, tasks, finished, total, journal, shared, notes })
}

/// The plan that a resumed rank took part in. Journals of before there were plans have none.
fn shared_of(save_path: &SavePath, run: &RunRecord, journal: &Path) -> Result<Option<SharedPlan>, PlanError> {
    let Some(own) = run_id(run) else { return Ok(None) };
    let path = save_path.plan(run.split, run.iteration);
    match SharedPlan::read(&path)? {
        Some(plan) if plan.run_id == own => Ok(Some(plan)),
        found => {
            let what = if found.is_some() { "is of another run" } else { "is not there" };
            let why =
                format!("{} {what}; the run was merged or started afresh without this rank", path.display());
            Err(PlanError::Mismatch { path: journal.to_owned(), why })
        }
    }
}

fn split(split: Split) -> store::Split {
    match split {
        Split::Train => store::Split::Train,
        Split::Test => store::Split::Test,
    }
}

fn io(doing: &'static str, path: &Path, source: std::io::Error) -> PlanError {
    PlanError::Io { doing, path: path.to_owned(), source }
}
