//! Starts several real `webgym rollout` processes with one save path and a simulated farm, and reads their results.

use std::{collections::BTreeMap, io::Write, path::PathBuf, time::Duration};

use serde_json::json;
use store::{IterationFile, IterationId, SavePath, Split};
use testkit::{
    Webgym, eventually,
    sim_farm::{SimFarm, SimFarmOptions},
    sim_model::{ModelReply, ModelRequest, SimModel},
};

/// Generous for loaded machines; a passing test needs a few seconds.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);
pub(crate) const TASKS: usize = 24;
pub(crate) const ID: IterationId = IterationId::new(Split::Train, 0);

pub(crate) struct TestRun {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) farm: SimFarm,
    pub(crate) quick: SimModel,
    pub(crate) ranks: usize,
    pub(crate) more: Vec<String>,
}

/// The number of requests that [`reply`] gets for one trajectory.
pub(crate) const REQUESTS_PER_TASK: usize = 3;

/// A policy that clicks twice, then answers.
pub(crate) fn reply(request: &ModelRequest) -> ModelReply {
    if request.step() > 2 { ModelReply::answer("42") } else { ModelReply::click(500, 500) }
}

impl TestRun {
    pub(crate) async fn new(ranks: usize) -> Self {
        // A character that a URL would escape.
        let folder = tempfile::Builder::new().prefix("lr=1e-6").tempdir().unwrap();
        let mut file = std::fs::File::create(folder.path().join("tasks.jsonl")).unwrap();
        for number in 0..TASKS {
            let task = json!({
                "task_id": number, "task_name": format!("task number {number} here"), "website": "http://shop.test/",
                "domain": "d", "subdomain": "s", "difficulty": 1 + number % 9, "evaluator_reference": "shown",
                "definite_answer": "42",
            });
            writeln!(file, "{task}").unwrap();
        }
        let options = SimFarmOptions { latency: Duration::from_millis(5), ..SimFarmOptions::default() };
        let farm = SimFarm::start(options).await;
        Self { folder, farm, quick: SimModel::start(reply).await, ranks, more: Vec::new() }
    }

    /// Adds a work queue that declares a collector dead after this many seconds without a heartbeat.
    pub(crate) fn queued(mut self, address: &str, stale_after: f64) -> Self {
        self.more.push(format!("env_config.work_queue={address}"));
        self.more.push(format!("env_config.work_queue_stale_after={stale_after}"));
        self
    }

    pub(crate) fn save_path(&self) -> SavePath {
        SavePath::new(self.folder.path().join("run"))
    }

    pub(crate) fn start(&self, rank: usize, policy: &SimModel, more: &[&str]) -> Webgym {
        self.start_in(rank, policy, more, &[])
    }

    pub(crate) fn start_in(
        &self,
        rank: usize,
        policy: &SimModel,
        more: &[&str],
        variables: &[(&str, &str)],
    ) -> Webgym {
        let mut arguments = vec![
            "rollout".to_owned(),
            "--config-name=rollout_train".to_owned(),
            format!("save_path='{}'", self.save_path().root().display()),
            format!("data_path='{}'", self.folder.path().display()),
            "env_config.train_tasks=tasks.jsonl".to_owned(),
            format!("env_config.train_tasks_rollout_size={TASKS}"),
            "env_config.host_ip=127.0.0.1".to_owned(),
            format!("env_config.master_port={}", self.farm.port()),
            format!("env_config.vllm_server_url={}", policy.url()),
            "env_config.server_size=6".to_owned(),
            "env_config.completion_threshold=1.0".to_owned(),
            "env_config.monitor_port=null".to_owned(),
            "judge=reference".to_owned(),
        ];
        if variables.is_empty() {
            arguments.extend([format!("--rank={rank}"), format!("--num-ranks={}", self.ranks)]);
        }
        arguments.extend(self.more.iter().cloned());
        arguments.extend(more.iter().map(|argument| (*argument).to_owned()));
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        Webgym::spawn_with(env!("CARGO_BIN_EXE_webgym"), &arguments, variables)
    }

    pub(crate) fn rank_file(&self, rank: u32) -> PathBuf {
        self.save_path().iteration_file(ID.with_rank(Some(rank)))
    }

    /// Returns whether files of the next iteration exist.
    pub(crate) fn has_next_iteration(&self) -> bool {
        let files = self.save_path().files(Split::Train).unwrap();
        let plans = self.save_path().plans(Split::Train).unwrap();
        files.iter().any(|file| file.id.iteration > 0) || plans.iter().any(|(iteration, _)| *iteration > 0)
    }

    pub(crate) fn journal(&self, rank: u32) -> PathBuf {
        self.save_path().journal(ID.with_rank(Some(rank)))
    }

    /// Returns how many trajectories a rank has saved so far; 0 after the merge.
    pub(crate) fn collected_by(&self, rank: u32) -> usize {
        let journal = IterationFile::open(&self.journal(rank));
        let file = journal.or_else(|_| IterationFile::open(&self.rank_file(rank)));
        file.map_or(0, |file| file.summaries().len())
    }

    pub(crate) async fn wait_until_collected(&self, rank: u32, count: usize) {
        let what = format!("rank {rank} has collected {count} trajectories");
        eventually(&what, LIMIT, async || self.collected_by(rank) >= count).await;
    }

    /// Returns trajectory index → first screenshot of the merged file; panics if an index is there twice.
    pub(crate) fn merged(&self) -> BTreeMap<i64, String> {
        let file = IterationFile::open(&self.save_path().iteration_file(ID)).unwrap();
        let mut found = BTreeMap::new();
        for position in 0..file.summaries().len() {
            let trajectory = file.read(position).unwrap();
            let screenshot = trajectory.steps[0].observation.image_path.clone();
            assert!(std::path::Path::new(&screenshot).is_file(), "{screenshot}");
            let before = found.insert(trajectory.task.trajectory_index, screenshot);
            assert!(before.is_none(), "trajectory {} is there twice", trajectory.task.trajectory_index);
        }
        found
    }

    pub(crate) fn assert_all_merged(&self) {
        let indices: Vec<i64> = self.merged().into_keys().collect();
        assert_eq!(indices, (0..i64::try_from(TASKS).unwrap()).collect::<Vec<_>>());
        assert!(!self.save_path().plan(Split::Train, 0).exists(), "the plan is removed after the merge");
    }

    pub(crate) fn assert_rank_files_removed(&self) {
        let files = self.save_path().files(Split::Train).unwrap();
        assert!(files.iter().all(|file| file.id.rank.is_none()), "{files:?}");
    }
}

pub(crate) async fn assert_success(webgym: &mut Webgym) {
    let status = webgym.wait_for_exit(LIMIT).await;
    assert_eq!(status.code(), Some(0), "{}", webgym.log());
}

/// Waits until the log contains all of these texts; the last lines may arrive after the exit.
pub(crate) async fn wait_for_log(webgym: &Webgym, texts: &[&str]) {
    let what = format!("it logs {texts:?}");
    eventually(&what, LIMIT, async || {
        let log = webgym.log();
        texts.iter().all(|text| log.contains(text))
    })
    .await;
}
