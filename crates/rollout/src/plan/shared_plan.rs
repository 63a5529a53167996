//! The plan that the ranks of a run share: a file beside the trajectories, written by the first rank and read by the others. It
//! contains the selected tasks, so that a blocklist that changes between two starts cannot make two ranks select differently.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    io::Write,
    path::Path,
};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::durable::{AtomicFile, Existing};

use super::{PlanError, ranks::Ranks, sampler::Selected, tasks::TaskFile};
use crate::config::{Config, RankWeights, Split};

/// Metadata key of the launch that started the ranks.
pub(super) const LAUNCH_KEY: &str = "launch";
const FORMAT: u32 = 1;
const GROUP_SIZE: &str = "env_config.group_size";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SharedPlan {
    format: u32,
    /// Identifies this run among all runs, also of the same iteration.
    pub run_id: String,
    pub iteration: u64,
    pub seed: u64,
    pub(super) begun: String,
    /// The launch that started the ranks, such as a Slurm job, where it is known.
    launch: Option<String>,
    /// Settings that must be equal for all ranks, by configuration key.
    terms: BTreeMap<String, Value>,
    /// The entry index in the task file, by trajectory index.
    tasks: Vec<usize>,
}

/// What this rank would plan, to compare with an existing plan.
pub(super) struct Proposal<'a> {
    pub(super) config: &'a Config,
    pub(super) ranks: &'a Ranks,
    pub(super) file: &'a TaskFile,
    pub(super) now: jiff::Timestamp,
}

impl Proposal<'_> {
    /// Returns the settings that must be equal for all ranks, so that their shares fit together.
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
                (GROUP_SIZE, json!(env.group_size)),
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
        let mut entries = vec![0; tasks.len()];
        for selected in tasks {
            entries[selected.trajectory_index] = selected.entry_index;
        }
        SharedPlan {
            format: FORMAT,
            run_id: uuid::Uuid::new_v4().simple().to_string(),
            iteration,
            seed,
            begun: self.now.to_string(),
            launch: self.config.env_config.launch_id.clone(),
            terms: self.terms(),
            tasks: entries,
        }
    }

    /// Returns an error for a plan with other settings, with the first one that differs.
    pub(super) fn check_agrees(&self, plan: &SharedPlan, path: &Path) -> Result<(), PlanError> {
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
            Some((key, there, here)) => {
                Err(PlanError::DifferentConfig { path: path.to_owned(), key, there, here })
            }
        }
    }
}

impl SharedPlan {
    pub fn read(path: &Path) -> Result<Option<Self>, PlanError> {
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(PlanError::io("read", path, source)),
        };
        let mismatch = |reason: String| PlanError::Mismatch { path: path.to_owned(), reason };
        let plan: Self = serde_json::from_slice(&bytes).map_err(|error| mismatch(error.to_string()))?;
        if plan.format > FORMAT {
            return Err(mismatch(format!("its format is {}, which a later webgym wrote", plan.format)));
        }
        Ok(Some(plan))
    }

    pub(super) fn publish(&self, path: &Path) -> Result<(), PlanError> {
        let written = AtomicFile::create(path).and_then(|mut file| {
            file.write_all(&serde_json::to_vec(self)?)?;
            file.commit(Existing::Refuse)
        });
        written.map_err(|source| PlanError::io("write", path, source))
    }

    /// Returns the metadata that the files of all ranks contain.
    pub(super) fn metadata(&self) -> serde_json::Map<String, Value> {
        let launch = self.launch.as_ref().map(|launch| (LAUNCH_KEY.to_owned(), json!(launch)));
        [(store::aggregate::RUN_ID.to_owned(), json!(self.run_id))].into_iter().chain(launch).collect()
    }

    /// Returns the number of trajectories of all ranks together.
    pub fn total(&self) -> usize {
        self.tasks.len()
    }

    /// Returns the number of ranks.
    pub fn ranks(&self) -> usize {
        let weights = self.terms.get("env_config.all_rank_weights").and_then(Value::as_str);
        weights.map_or(1, |weights| weights.split(',').count())
    }

    /// Returns a digest of tasks and settings that is equal on every machine.
    pub fn digest(&self) -> String {
        let text = json!([self.run_id, self.seed, self.terms, self.tasks]).to_string();
        format!("{:032x}", crate::plan::tasks::digest(&[text.as_bytes()]))
    }

    /// Returns all tasks in order.
    pub(super) fn all_tasks(&self) -> Vec<Selected> {
        let tasks = self.tasks.iter().enumerate();
        tasks
            .map(|(trajectory_index, entry_index)| Selected { entry_index: *entry_index, trajectory_index })
            .collect()
    }

    fn group_size(&self) -> usize {
        let size = self.terms.get(GROUP_SIZE).and_then(Value::as_u64);
        size.and_then(|size| usize::try_from(size).ok()).unwrap_or(1).max(1)
    }

    /// Returns a rank's fixed share: groups of train tasks by trajectory index, test tasks with all their repeats by their
    /// order in the file.
    pub(super) fn share(&self, split: Split, ranks: &Ranks) -> Vec<Selected> {
        let group_size = self.group_size();
        let key = |selected: &Selected| match split {
            Split::Train => selected.trajectory_index / group_size,
            Split::Test => selected.entry_index,
        };
        let mut tasks = self.all_tasks();
        let keys: BTreeSet<usize> = tasks.iter().map(key).collect();
        let owners: HashMap<usize, usize> = keys.iter().copied().zip(ranks.assign(keys.len())).collect();
        tasks.retain(|selected| owners[&key(selected)] == ranks.rank);
        tasks
    }

    /// Returns whether the plan belongs to the launch; `None` when either launch is unknown.
    pub(super) fn is_of_launch(&self, launch: Option<&str>) -> Option<bool> {
        Some(self.launch.as_deref()? == launch?)
    }
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
        /// A rank that reads the plan gets the same share as one that samples.
        #[test]
        fn plan_shares_equal_sampler_shares(
            difficulties in prop::collection::vec(1_i64..12, 1..40), seed: u64, is_test: bool,
            weights in prop::collection::vec(1_u32..6, 1..5), group_size in 1_usize..4,
        ) {
            let folder = tempfile::tempdir().unwrap();
            let file = file(folder.path(), &difficulties);
            let weights: Vec<f64> = weights.into_iter().map(f64::from).collect();
            let select = |ranks: &Ranks| if is_test {
                sampler::select_test_tasks(file.entries(), 0, 2, ranks)
            } else {
                let draw = Draw { size: 30, group_size, sampler: Sampler::Uniform, seed };
                sampler::draw_train_tasks(&file, &draw, |_| false, |_| false, ranks)
            };
            let split = if is_test { Split::Test } else { Split::Train };
            let whole = select(&Ranks::single()).tasks;
            let mut config = Config::default();
            config.env_config.group_size = group_size;
            let plan = plan(&config, &file, &whole);
            prop_assert_eq!(plan.all_tasks(), whole);
            for rank in 0..weights.len() {
                let ranks = Ranks::new(rank, &weights).unwrap();
                prop_assert_eq!(plan.share(split, &ranks), select(&ranks).tasks);
            }
        }
    }

    #[test]
    fn differing_setting_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (file(folder.path(), &[1, 2]), file(folder.path(), &[1, 3]));
        let mut config = Config { seed: Some(5), ..Config::default() };
        let ranks = Ranks::new(0, &[1.0, 2.0]).unwrap();
        let now = jiff::Timestamp::UNIX_EPOCH;
        let agreed = Proposal { config: &config, ranks: &ranks, file: &one, now }.plan(0, 5, &[]);
        let path = Path::new("p");
        let error_of = |config: &Config, ranks: &Ranks, file: &TaskFile| {
            let proposal = Proposal { config, ranks, file, now };
            proposal.check_agrees(&agreed, path).err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert_eq!(error_of(&config, &ranks, &one), "");
        assert!(error_of(&config, &ranks, &other).contains("the content of the task file"));
        let weights = error_of(&config, &Ranks::new(0, &[1.0, 1.0]).unwrap(), &one);
        assert!(weights.contains("env_config.all_rank_weights is \"1,1\" here, but \"1,2\""), "{weights}");
        config.seed = Some(6);
        assert!(error_of(&config, &ranks, &one).contains("seed is 6 here, but 5"));
        config.seed = None;
        assert_eq!(error_of(&config, &ranks, &one), "", "a rank without a seed takes that of the plan");
        config.env_config.work_queue = Some("redis://h".into());
        assert!(error_of(&config, &ranks, &one).contains("env_config.work_queue"));
    }
}
