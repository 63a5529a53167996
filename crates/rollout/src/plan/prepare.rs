//! Plans a run: chooses between resuming and a new run, selects the tasks, alone or together with other ranks, and opens the
//! journal.

use std::{
    collections::{BTreeMap, HashMap},
    path::{Path, PathBuf},
};

use proto::trajectory::{Outcome, Task};
use store::{IterationId, Journal, JournalError, RunMetadata, RunRecord, SavePath};

use super::{
    PlanError, SharedPlan, joining,
    ranks::Ranks,
    resume::{self, Resumable},
    sampler::Selection,
    selection::{
        config_digest, dataset, group_size, max_steps, run_metadata, select_tasks, store_split,
        write_selection_file,
    },
    shared_plan::Proposal,
    tasks::TaskFile,
};
use crate::{
    config::{Config, Resolved},
    session_options::SessionSource,
};

/// What to do with a journal that an earlier run left unfinished.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Unfinished {
    /// Report it as an error.
    #[default]
    Refuse,
    /// Resume it; without one, start a new run.
    Resume,
    /// Resume this journal.
    ResumeFrom(PathBuf),
    /// Rename it and start a new run.
    SetAside,
}

/// A run that is ready to start.
pub struct Plan {
    pub id: IterationId,
    pub run: RunRecord,
    pub save_path: SavePath,
    pub ranks: Ranks,
    /// The tasks still to be collected, in order.
    pub tasks: Vec<Task>,
    /// The number of each attempt among those at the same task, from 0, by trajectory index. Finished ones are included.
    pub attempts: HashMap<i64, u32>,
    /// What an earlier part of the run has finished, by trajectory index.
    pub finished: BTreeMap<i64, Outcome>,
    /// The number of trajectories of this rank's iteration.
    pub total: usize,
    /// The number of attempts at each task that belong to one group.
    pub group_size: usize,
    pub journal: Journal,
    /// The plan that all ranks share, where there are several.
    pub shared: Option<SharedPlan>,
    /// Remarks for the user.
    pub notes: Vec<String>,
}

/// Checks that the configuration has the keys that every run needs.
pub fn check(config: &Config) -> Result<(), PlanError> {
    save_path(config)?;
    dataset(config).map(drop)
}

fn save_path(config: &Config) -> Result<&Path, PlanError> {
    config.save_path.as_deref().ok_or(PlanError::Missing { key: "save_path", example: "runs/first" })
}

/// Selects the tasks and opens the journal.
pub fn prepare(
    resolved: &Resolved,
    unfinished: &Unfinished,
    now: jiff::Timestamp,
) -> Result<Plan, PlanError> {
    let config = &resolved.config;
    let root = save_path(config)?;
    // Screenshots are stored with absolute paths, so that a policy server on the same disk can read them.
    let root = std::path::absolute(root).map_err(|source| PlanError::io("find", root, source))?;
    let save_path = SavePath::new(&root);
    let split = store_split(config.env_config.split);
    let ranks =
        Ranks::from_config(&config.env_config).map_err(|(key, reason)| PlanError::Ranks(key, reason))?;
    let rank = (ranks.count() > 1).then_some(ranks.rank as u32);
    let _lock = if is_shared(config, &ranks) {
        save_path.create_directories(split).map_err(|source| PlanError::io("create", &root, source))?;
        Some(joining::PlanLock::acquire(&save_path, split))
    } else {
        None
    };
    match resume::find(&save_path, split, rank, unfinished)? {
        Some(journal) => Resumable { config, save_path, ranks, journal: &journal }.resume(),
        None => NewRun { resolved, save_path, ranks, rank, now }.start(unfinished),
    }
}

/// Returns whether several collectors work on the same selection of tasks.
pub(super) fn is_shared(config: &Config, ranks: &Ranks) -> bool {
    ranks.count() > 1 || config.env_config.work_queue.is_some()
}

/// The inputs for planning a new run.
struct NewRun<'a> {
    resolved: &'a Resolved,
    save_path: SavePath,
    ranks: Ranks,
    rank: Option<u32>,
    now: jiff::Timestamp,
}

/// What a new run collects.
struct Selected {
    iteration: u64,
    seed: u64,
    selection: Selection,
    shared: Option<SharedPlan>,
}

impl NewRun<'_> {
    fn start(self, unfinished: &Unfinished) -> Result<Plan, PlanError> {
        let config = &self.resolved.config;
        let split = store_split(config.env_config.split);
        let path = dataset(config)?;
        let file = TaskFile::open(&path, config.env_config.skip_bad_tasks)?;
        let mut notes = self.resolved.notes.clone();
        let id = IterationId::new(split, 0).with_rank(self.rank);
        let selected = if is_shared(config, &self.ranks) {
            self.select_shared(&file, id, unfinished, &mut notes)?
        } else {
            self.select_alone(&file, id, &mut notes)?
        };
        let id = IterationId { iteration: selected.iteration, ..id };
        let tasks = selected.selection.load(&file, max_steps(config))?;
        SessionSource::for_tasks(config, &tasks)?;
        let run = self.run_record(id, &path, &selected, tasks.len());
        // Files are created only now, so that a run that is refused leaves nothing behind.
        let root = self.save_path.root();
        let created = self.save_path.create_directories(split);
        created.map_err(|source| PlanError::io("create", root, source))?;
        let journal = self.save_path.journal(id);
        let group_size = group_size(&config.env_config);
        write_selection_file(&journal, &path, &selected.selection, group_size)?;
        let journal = Journal::create(&journal, &run).map_err(|error| match error {
            JournalError::Unfinished { .. } => PlanError::Unfinished(error),
            other => PlanError::Journal(other),
        })?;
        let attempts = selected.selection.attempts();
        notes.extend(selected.selection.notes);
        let (save_path, ranks, shared) = (self.save_path, self.ranks, selected.shared);
        let (finished, total) = (BTreeMap::new(), tasks.len());
        Ok(Plan {
            id,
            run,
            save_path,
            ranks,
            tasks,
            attempts,
            finished,
            total,
            group_size,
            journal,
            shared,
            notes,
        })
    }

    fn run_record(&self, id: IterationId, dataset: &Path, selected: &Selected, tasks: usize) -> RunRecord {
        let config = &self.resolved.config;
        let Selected { iteration, seed, shared, .. } = selected;
        RunRecord {
            split: id.split,
            iteration: *iteration,
            rank: self.rank,
            seed: *seed,
            config_digest: config_digest(config),
            tasks: tasks as u64,
            metadata: RunMetadata {
                server_size: i64::try_from(self.ranks.share(config.env_config.server_size)).ok(),
                ..run_metadata(config, dataset, (*iteration, *seed), shared.as_ref(), self.now)
            },
        }
    }

    /// Selects the tasks of a new iteration.
    fn select_alone(
        &self,
        file: &TaskFile,
        id: IterationId,
        notes: &mut Vec<String>,
    ) -> Result<Selected, PlanError> {
        let (config, save_path) = (&self.resolved.config, &self.save_path);
        let iteration = save_path.next_iteration(id.split, id.rank);
        let iteration = iteration.map_err(|source| PlanError::io("list", save_path.root(), source))?;
        let iteration = iteration.max(config.env_config.first_iteration);
        let seed = config.seed.unwrap_or_else(|| self.now.as_nanosecond() as u64);
        let selection = select_tasks(config, file, save_path, seed, self.now, notes)?;
        Ok(Selected { iteration, seed, selection, shared: None })
    }

    /// Joins the run that another rank has started, or starts one for all ranks.
    fn select_shared(
        &self,
        file: &TaskFile,
        id: IterationId,
        unfinished: &Unfinished,
        notes: &mut Vec<String>,
    ) -> Result<Selected, PlanError> {
        let config = &self.resolved.config;
        let env = &config.env_config;
        let proposal = Proposal { config, ranks: &self.ranks, file, now: self.now };
        let plan = match joining::find_plan(&self.save_path, id, unfinished, env.launch_id.as_deref())? {
            Some((path, plan)) => {
                proposal.check_agrees(&plan, &path)?;
                notes.push(format!("joining iteration {}, planned in {}", plan.iteration, path.display()));
                plan
            }
            None => self.publish_plan(&proposal, id, notes)?,
        };
        let tasks =
            if env.work_queue.is_some() { plan.all_tasks() } else { plan.share(env.split, &self.ranks) };
        let selection = Selection { tasks, notes: Vec::new(), total: plan.total() };
        Ok(Selected { iteration: plan.iteration, seed: plan.seed, selection, shared: Some(plan) })
    }

    fn publish_plan(
        &self,
        proposal: &Proposal<'_>,
        id: IterationId,
        notes: &mut Vec<String>,
    ) -> Result<SharedPlan, PlanError> {
        let save_path = &self.save_path;
        let launch = proposal.config.env_config.launch_id.as_deref();
        if let Some(iteration) = joining::missed_iteration(save_path, id, launch)? {
            return Err(PlanError::MergedWithout { iteration });
        }
        let selected = self.select_alone(proposal.file, id.with_rank(None), notes)?;
        notes.extend(joining::merged_without(save_path, id)?.map(|missed| {
            format!(
                "iteration {missed} was merged without this rank; to add its share there, start it with --resume. This run \
                 starts iteration {}",
                selected.iteration
            )
        }));
        let plan = proposal.plan(selected.iteration, selected.seed, &selected.selection.tasks);
        notes.extend(selected.selection.notes);
        plan.publish(&save_path.plan(id.split, selected.iteration))?;
        Ok(plan)
    }
}
