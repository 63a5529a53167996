//! Several real `webgym rollout` processes around one save path, a simulated farm and a policy each; and what they left.

use std::{collections::BTreeMap, io::Write, path::PathBuf, time::Duration};

use serde_json::json;
use store::{IterationFile, IterationId, SavePath, Split};
use testkit::{
    Webgym, eventually,
    sim_farm::{SimFarm, SimFarmOptions},
    sim_model::{ModelReply, ModelRequest, SimModel},
};

/// A loaded machine takes its time; a test that passes needs a few seconds.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);
pub(crate) const TASKS: usize = 24;
pub(crate) const ID: IterationId = IterationId::new(Split::Train, 0);

pub(crate) struct Scene {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) farm: SimFarm,
    pub(crate) quick: SimModel,
    pub(crate) ranks: usize,
    pub(crate) more: Vec<String>,
}

/// Two clicks, then the answer.
pub(crate) fn reply(question: &ModelRequest) -> ModelReply {
    if question.step() > 2 { ModelReply::answer("42") } else { ModelReply::click(500, 500) }
}

impl Scene {
    pub(crate) async fn new(ranks: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
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

    /// The same with a queue, whose collectors are taken for dead after so many seconds of silence.
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
            format!("save_path={}", self.save_path().root().display()),
            format!("data_path={}", self.folder.path().display()),
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
        arguments.extend(more.iter().map(|word| (*word).to_owned()));
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        Webgym::spawn_with(env!("CARGO_BIN_EXE_webgym"), &words, variables)
    }

    pub(crate) fn rank_file(&self, rank: u32) -> PathBuf {
        self.save_path().iteration_file(ID.with_rank(Some(rank)))
    }

    /// Whether anything of the iteration after this one is there.
    pub(crate) fn next_begun(&self) -> bool {
        let files = self.save_path().files(Split::Train).unwrap();
        let plans = self.save_path().plans(Split::Train).unwrap();
        files.iter().any(|file| file.id.iteration > 0) || plans.iter().any(|(iteration, _)| *iteration > 0)
    }

    pub(crate) fn journal(&self, rank: u32) -> PathBuf {
        self.save_path().journal(ID.with_rank(Some(rank)))
    }

    /// How many trajectories a rank has made durable so far.
    pub(crate) fn collected_by(&self, rank: u32) -> usize {
        let journal = IterationFile::open(&self.journal(rank));
        let file = journal.or_else(|_| IterationFile::open(&self.rank_file(rank)));
        file.map_or(0, |file| file.summaries().len())
    }

    pub(crate) async fn has_collected(&self, rank: u32, count: usize) {
        let what = format!("rank {rank} has collected {count}");
        eventually(&what, LIMIT, async || self.collected_by(rank) >= count).await;
    }

    /// Trajectory index → first screenshot, of the merged file; each index once, and all of them.
    pub(crate) fn merged(&self) -> BTreeMap<i64, String> {
        let file = IterationFile::open(&self.save_path().iteration_file(ID)).unwrap();
        let mut found = BTreeMap::new();
        for place in 0..file.summaries().len() {
            let trajectory = file.read(place).unwrap();
            let picture = trajectory.steps[0].observation.image_path.clone();
            assert!(std::path::Path::new(&picture).is_file(), "{picture}");
            let before = found.insert(trajectory.task.trajectory_index, picture);
            assert!(before.is_none(), "trajectory {} is there twice", trajectory.task.trajectory_index);
        }
        found
    }

    pub(crate) fn all_are_merged(&self) {
        let indices: Vec<i64> = self.merged().into_keys().collect();
        assert_eq!(indices, (0..TASKS as i64).collect::<Vec<_>>());
        assert!(!self.save_path().plan(Split::Train, 0).exists(), "the plan has done its duty");
    }
}

pub(crate) async fn ends_well(webgym: &mut Webgym) {
    let status = webgym.wait_for_exit(LIMIT).await;
    assert_eq!(status.code(), Some(0), "{}", webgym.log());
}

/// What it wrote may arrive after its end.
pub(crate) async fn says(webgym: &Webgym, words: &[&str]) {
    let what = format!("it says {words:?}");
    eventually(&what, LIMIT, async || {
        let log = webgym.log();
        words.iter().all(|word| log.contains(word))
    })
    .await;
}
