//! What the ranks of one run agree on: a file beside the trajectories that the first of them writes and the others
//! read. It holds the choice of tasks itself, so that a blocklist or a clock that moves between two starts cannot
//! make two ranks choose differently.

use std::{
    collections::BTreeMap,
    fs::File,
    io::Write,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::{
    IterationId, SavePath,
    durable::{AtomicFile, Existing},
    layout::FileKind,
    pt::{PtFile, PtWriter},
};

use super::{PlanError, Unfinished, io};
use crate::{
    config::{Config, RankWeights, Split},
    plan::{sampler::Selected, shares::Ranks, tasks::TaskFile},
};

/// In the metadata of a file: what started its ranks.
const LAUNCH: &str = "launch";
const FORMAT: u32 = 1;
/// A plan this young may belong to a rank that has not begun its journal yet.
const JUST_MADE: Duration = Duration::from_secs(60);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SharedPlan {
    format: u32,
    /// Tells this run from every other, also of the same iteration.
    pub run_id: String,
    pub iteration: u64,
    pub seed: u64,
    begun: String,
    /// What started the ranks, such as a Slurm job, where that is known.
    launch: Option<String>,
    /// What every rank must have alike, by the key it is set with.
    terms: BTreeMap<String, Value>,
    /// By trajectory index, the place of its task in the file.
    tasks: Vec<usize>,
}

/// What this rank would plan, to be held against what is there.
pub(super) struct Proposal<'a> {
    pub(super) config: &'a Config,
    pub(super) ranks: &'a Ranks,
    pub(super) file: &'a TaskFile,
    pub(super) now: jiff::Timestamp,
}

impl Proposal<'_> {
    /// What must be alike in all ranks for their shares to fit together.
    fn terms(&self) -> BTreeMap<String, Value> {
        let env = &self.config.env_config;
        let mut terms = vec![
            ("env_config.split", json!(env.split)),
            ("env_config.all_rank_weights", json!(RankWeights(self.ranks.weights()))),
            (
                "env_config.work_queue",
                json!(if env.work_queue.is_some() { "a queue" } else { "fixed shares" }),
            ),
            ("the content of the task file", json!(self.file.digest())),
        ];
        match env.split {
            Split::Train => terms.extend([
                ("env_config.train_tasks_rollout_size", json!(env.train_tasks_rollout_size)),
                ("env_config.train_tasks_sampler", json!(env.train_tasks_sampler)),
                ("env_config.difficulty_ratio", json!(env.difficulty_ratio)),
                ("env_config.train_difficulty_max_steps", json!(env.train_difficulty_max_steps)),
            ]),
            Split::Test => terms.extend([
                ("env_config.test_tasks_rollout_size", json!(env.test_tasks_rollout_size)),
                ("env_config.test_tasks_repeat_times", json!(env.test_tasks_repeat_times)),
                ("env_config.test_difficulty_max_steps", json!(env.test_difficulty_max_steps)),
            ]),
        }
        terms.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }

    pub(super) fn plan(&self, iteration: u64, seed: u64, tasks: &[Selected]) -> SharedPlan {
        let mut places = vec![0; tasks.len()];
        for selected in tasks {
            places[selected.trajectory_index] = selected.entry_index;
        }
        SharedPlan {
            format: FORMAT,
            run_id: uuid::Uuid::new_v4().simple().to_string(),
            iteration,
            seed,
            begun: self.now.to_string(),
            launch: self.config.env_config.launch_id.clone(),
            terms: self.terms(),
            tasks: places,
        }
    }

    /// Refuses a plan that was made under other terms, naming the first that differs.
    pub(super) fn agrees_with(&self, plan: &SharedPlan, path: &Path) -> Result<(), PlanError> {
        let here = self.terms();
        let differs = here.iter().find_map(|(key, value)| {
            let there = plan.terms.get(key).unwrap_or(&Value::Null);
            (there != value).then(|| (key.clone(), there.to_string(), value.to_string()))
        });
        let seed = self.config.seed.filter(|seed| *seed != plan.seed);
        let differs =
            differs.or_else(|| seed.map(|seed| ("seed".into(), plan.seed.to_string(), seed.to_string())));
        match differs {
            None => Ok(()),
            Some((key, there, here)) => Err(PlanError::Disagree { path: path.to_owned(), key, there, here }),
        }
    }
}

impl SharedPlan {
    pub fn read(path: &Path) -> Result<Option<Self>, PlanError> {
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(io("read", path, source)),
        };
        let mismatch = |why: String| PlanError::Mismatch { path: path.to_owned(), why };
        let plan: Self = serde_json::from_slice(&bytes).map_err(|error| mismatch(error.to_string()))?;
        if plan.format > FORMAT {
            return Err(mismatch(format!("it is of format {}, which a later webgym wrote", plan.format)));
        }
        Ok(Some(plan))
    }

    pub(super) fn publish(&self, path: &Path) -> Result<(), PlanError> {
        let written = AtomicFile::create(path).and_then(|mut file| {
            file.write_all(&serde_json::to_vec(self)?)?;
            file.commit(Existing::Refuse)
        });
        written.map_err(|source| io("write", path, source))
    }

    /// What the files of its ranks say of it.
    pub(super) fn facts(&self) -> serde_json::Map<String, Value> {
        let launch = self.launch.as_ref().map(|launch| (LAUNCH.to_owned(), json!(launch)));
        [(store::aggregate::RUN_ID.to_owned(), json!(self.run_id))].into_iter().chain(launch).collect()
    }

    /// How many trajectories all ranks have together.
    pub fn total(&self) -> usize {
        self.tasks.len()
    }

    /// How many ranks take part.
    pub fn ranks(&self) -> usize {
        let weights = self.terms.get("env_config.all_rank_weights").and_then(Value::as_str);
        weights.map_or(1, |weights| weights.split(',').count())
    }

    /// The same for the same choice under the same terms, on every machine.
    pub fn digest(&self) -> String {
        let text = json!([self.run_id, self.seed, self.terms, self.tasks]).to_string();
        format!("{:032x}", crate::plan::tasks::digest(&[text.as_bytes()]))
    }

    /// All tasks in queue order.
    pub(super) fn all(&self) -> Vec<Selected> {
        let tasks = self.tasks.iter().enumerate();
        tasks
            .map(|(trajectory_index, entry_index)| Selected { entry_index: *entry_index, trajectory_index })
            .collect()
    }

    /// A rank's fixed share: train by the order of the queue, test by the order of the file.
    pub(super) fn share(&self, split: Split, ranks: &Ranks) -> Vec<Selected> {
        let mut order: Vec<usize> = (0..self.tasks.len()).collect();
        if split == Split::Test {
            order.sort_by_key(|index| (self.tasks[*index], *index));
        }
        let mut owner = vec![0; order.len()];
        for (index, rank) in order.into_iter().zip(ranks.deal(self.tasks.len())) {
            owner[index] = rank;
        }
        self.all().into_iter().filter(|selected| owner[selected.trajectory_index] == ranks.rank).collect()
    }

    /// Whether the same launch made it; `None` when one of the two does not know its launch.
    fn is_of_launch(&self, launch: Option<&str>) -> Option<bool> {
        Some(self.launch.as_deref()? == launch?)
    }
}

/// Held while a rank looks for a plan or makes one, so that two never make one each.
pub(super) struct Deciding(#[allow(dead_code, reason = "held for its lock")] Option<File>);

impl Deciding {
    pub(super) fn begin(save_path: &SavePath, split: store::Split) -> Self {
        let path = save_path.split_directory(split).join(".plans.lock");
        let file = File::options().create(true).append(true).open(path).ok();
        // Where there are no locks, publishing under a taken name still fails.
        Self(file.filter(|file| file.lock().is_ok()))
    }
}

/// The plan that this rank has still to take part in, if another rank has made one.
pub(super) fn find(
    save_path: &SavePath,
    id: IterationId,
    unfinished: &Unfinished,
    launch: Option<&str>,
) -> Result<Option<(PathBuf, SharedPlan)>, PlanError> {
    let root = save_path.root();
    let plans = save_path.plans(id.split).map_err(|source| io("look through", root, source))?;
    for (iteration, path) in plans {
        let of = |rank| save_path.iteration_file(IterationId { iteration, rank, ..id });
        if of(id.rank).exists() {
            continue;
        }
        let Some(plan) = SharedPlan::read(&path)? else { continue };
        // What was merged without this rank is taken up only by who belongs there, or asks for it.
        let belongs = *unfinished == Unfinished::Resume || plan.is_of_launch(launch) == Some(true);
        if of(None).exists() && !belongs {
            continue;
        }
        match (unfinished, plan.is_of_launch(launch)) {
            (Unfinished::Refuse, Some(false)) => {
                return Err(PlanError::OtherLaunch { path, begun: plan.begun, iteration });
            }
            (Unfinished::SetAside, Some(false)) => set_aside(&path)?,
            (Unfinished::SetAside, None) if is_left(save_path, id, iteration, &path) => set_aside(&path)?,
            _ => return Ok(Some((path, plan))),
        }
    }
    Ok(None)
}

/// The latest iteration that still waits for this rank though it was merged without it.
pub(super) fn merged_without(save_path: &SavePath, id: IterationId) -> Result<Option<u64>, PlanError> {
    let plans = save_path.plans(id.split).map_err(|source| io("look through", save_path.root(), source))?;
    let is_there = |iteration, rank| save_path.iteration_file(IterationId { iteration, rank, ..id }).exists();
    let waits =
        |iteration: &u64| id.rank.is_some() && is_there(*iteration, None) && !is_there(*iteration, id.rank);
    Ok(plans.into_iter().map(|(iteration, _)| iteration).filter(waits).max())
}

/// The last iteration, if this launch has collected and merged it in full before this rank came. The rank has had its turn
/// then: an empty file says so, and its next run is the next iteration, as for its fellows.
pub(super) fn missed(
    save_path: &SavePath,
    id: IterationId,
    launch: Option<&str>,
) -> Result<Option<u64>, PlanError> {
    let (Some(launch), Some(_)) = (launch, id.rank) else { return Ok(None) };
    let files = save_path.files(id.split).map_err(|source| io("look through", save_path.root(), source))?;
    let last = files.iter().rfind(|file| file.kind == FileKind::Finished && file.id.rank.is_none());
    let Some(merged) =
        last.and_then(|last| PtFile::open(&last.path).ok().map(|file| (last.id.iteration, file)))
    else {
        return Ok(None);
    };
    let (iteration, file) = merged;
    let own = save_path.iteration_file(IterationId { iteration, ..id });
    let metadata = file.own_metadata().filter(|metadata| metadata.extra.get(LAUNCH) == Some(&json!(launch)));
    let Some(metadata) = metadata.filter(|_| !own.exists()) else { return Ok(None) };
    let written = PtWriter::create(&own).and_then(|writer| writer.finish(metadata, Existing::Refuse));
    written.map_err(|error| PlanError::Mismatch { path: own, why: error.to_string() })?;
    Ok(Some(iteration))
}

/// Nobody works on this plan any more: it is not new, and no rank keeps its journal locked.
fn is_left(save_path: &SavePath, id: IterationId, iteration: u64, path: &Path) -> bool {
    let age =
        std::fs::metadata(path).and_then(|about| about.modified()).ok().and_then(|at| at.elapsed().ok());
    let young = age.is_some_and(|age| age < JUST_MADE);
    let files = save_path.files(id.split).unwrap_or_default();
    let journals = files.iter().filter(|file| file.id.iteration == iteration);
    !young && !journals.into_iter().any(|file| store::journal::is_being_written(&file.path))
}

/// Renames a plan that nobody is to join any more. Nothing is deleted.
pub(super) fn set_aside(path: &Path) -> Result<(), PlanError> {
    let time = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%S%.6fZ").to_string();
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{time}"));
    std::fs::rename(path, &name).map_err(|source| io("set aside", path, source))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::plan::sampler::{self, Draw, Sampler};

    fn file(folder: &Path, difficulties: &[i64]) -> TaskFile {
        let line = |(number, difficulty): (usize, &i64)| {
            let task = json!({"task_name": format!("t{number}"), "website": format!("s{number}.test"), "domain": "d",
                              "subdomain": "s", "difficulty": difficulty, "evaluator_reference": "r"});
            format!("{task}\n")
        };
        let path = folder.join("tasks.jsonl");
        std::fs::write(&path, difficulties.iter().enumerate().map(line).collect::<String>()).unwrap();
        TaskFile::open(&path, false).unwrap()
    }

    fn plan(config: &Config, file: &TaskFile, tasks: &[Selected]) -> SharedPlan {
        let proposal = Proposal { config, ranks: &Ranks::single(), file, now: jiff::Timestamp::UNIX_EPOCH };
        proposal.plan(0, 1, tasks)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]
        /// Who only reads the plan has the same share as who draws it.
        #[test]
        fn shares_of_a_plan_are_those_of_the_sampler(
            difficulties in prop::collection::vec(1_i64..12, 1..40), seed: u64, is_test: bool,
            weights in prop::collection::vec(1_u32..6, 1..5),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let file = file(folder.path(), &difficulties);
            let weights: Vec<f64> = weights.into_iter().map(f64::from).collect();
            let select = |ranks: &Ranks| if is_test {
                sampler::select_test_tasks(file.entries(), 0, 2, ranks)
            } else {
                let draw = Draw { size: 30, sampler: Sampler::Uniform, seed };
                sampler::draw_train_tasks(&file, &draw, |_| false, |_| false, ranks)
            };
            let split = if is_test { Split::Test } else { Split::Train };
            let whole = select(&Ranks::single()).tasks;
            let plan = plan(&Config::default(), &file, &whole);
            prop_assert_eq!(plan.all(), whole);
            for rank in 0..weights.len() {
                let ranks = Ranks::new(rank, &weights).unwrap();
                prop_assert_eq!(plan.share(split, &ranks), select(&ranks).tasks);
            }
        }
    }

    #[test]
    fn a_rank_that_would_plan_differently_is_told_what_differs() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (file(folder.path(), &[1, 2]), file(folder.path(), &[1, 3]));
        let mut config = Config { seed: Some(5), ..Config::default() };
        let ranks = Ranks::new(0, &[1.0, 2.0]).unwrap();
        let now = jiff::Timestamp::UNIX_EPOCH;
        let agreed = Proposal { config: &config, ranks: &ranks, file: &one, now }.plan(0, 5, &[]);
        let path = Path::new("p");
        let refused = |config: &Config, ranks: &Ranks, file: &TaskFile| {
            let proposal = Proposal { config, ranks, file, now };
            proposal.agrees_with(&agreed, path).err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert_eq!(refused(&config, &ranks, &one), "");
        assert!(refused(&config, &ranks, &other).contains("the content of the task file"));
        let weights = refused(&config, &Ranks::new(0, &[1.0, 1.0]).unwrap(), &one);
        assert!(weights.contains("env_config.all_rank_weights is \"1,1\" here, but \"1,2\""), "{weights}");
        config.seed = Some(6);
        assert!(refused(&config, &ranks, &one).contains("seed is 6 here, but 5"));
        config.seed = None;
        assert_eq!(refused(&config, &ranks, &one), "", "who has none takes that of the plan");
        config.env_config.work_queue = Some("redis://h".into());
        assert!(refused(&config, &ranks, &one).contains("env_config.work_queue"));
    }
}
