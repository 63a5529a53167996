//! Two collectors on hosts of their own, a policy that takes its time, and what they must have saved.

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc, time::Duration};

use practice::Sites;
use proto::trajectory::Outcome;
use serde_json::json;
use store::{IterationFile, IterationId, SavePath, Split};
use tempfile::TempDir;
use testkit::{
    Webgym, eventually,
    hosts::{Host, TEST_HOST},
    sim_model::{ModelReply, ModelRequest, SimModel},
};

use crate::{LIMIT, WEBGYM, cluster::KEY};

/// How long the policy thinks about each step: long enough for faults to come in between.
const THINKING: Duration = Duration::from_millis(400);
const RANKS: u32 = 2;

/// A run of two ranks over so many tasks.
pub(crate) struct Run {
    pub(crate) ranks: Vec<Webgym>,
    tasks: usize,
    folder: TempDir,
    pub(crate) model: SimModel,
    slow: SimModel,
    _sites: Sites,
}

fn act(question: &ModelRequest) -> ModelReply {
    match question.step() {
        1 | 3 => ModelReply::call("computer_use", &json!({"action": "scroll", "direction": "down"})),
        2 => ModelReply::click(500, 500),
        _ => ModelReply::answer("42"),
    }
}

fn write_tasks(folder: &TempDir, sites: &Sites, count: usize) {
    let places = ["/shop/", "/wiki/", "/jobs/"];
    let lines: Vec<String> = (0..count)
        .map(|id| {
            json!({
                "task_id": format!("task-{id}"), "task_name": format!("look around, part {id}"),
                "website": sites.url(places[id % places.len()]), "domain": "d", "subdomain": "s", "difficulty": 1,
                "evaluator_reference": ["seen"], "definite_answer": "42",
            })
            .to_string()
        })
        .collect();
    std::fs::write(folder.path().join("tasks.jsonl"), lines.join("\n")).expect("the folder is ours");
}

impl Run {
    /// Starts both ranks against the farm at this address, with fixed shares.
    pub(crate) async fn start(hosts: &[Host; 2], farm: (&str, u16), tasks: usize) -> Self {
        Self::start_as(hosts, farm, tasks, &[], false).await
    }

    /// The same with tasks from a queue, whose collectors are taken for dead after a few seconds of silence. The second
    /// rank's policy may be a slow one.
    pub(crate) async fn start_queued(
        hosts: &[Host; 2],
        farm: (&str, u16),
        tasks: usize,
        redis: &str,
        slow_rank: bool,
    ) -> Self {
        let queue =
            [format!("env_config.work_queue={redis}"), "env_config.work_queue_stale_after=3".to_owned()];
        Self::start_as(hosts, farm, tasks, &queue, slow_rank).await
    }

    async fn start_as(
        hosts: &[Host; 2],
        farm: (&str, u16),
        tasks: usize,
        more: &[String],
        slow_rank: bool,
    ) -> Self {
        let here = SocketAddr::new(TEST_HOST.into(), 0);
        let sites = Sites::start(here).expect("the practice sites start");
        let model = SimModel::start_at(here, THINKING, false, Arc::new(act)).await;
        let slow = SimModel::start_at(here, 6 * THINKING, false, Arc::new(act)).await;
        let folder = TempDir::new().expect("a folder");
        write_tasks(&folder, &sites, tasks);
        let ranks = (0..).zip(hosts).map(|(rank, host)| {
            let policy = if slow_rank && rank == 1 { &slow } else { &model };
            let own = [
                format!("save_path={}", folder.path().join("run").display()),
                format!("data_path={}", folder.path().display()),
                format!("env_config.vllm_server_url={}", policy.url()),
                format!("env_config.host_ip={}", farm.0),
                format!("env_config.master_port={}", farm.1),
                format!("--rank={rank}"),
                format!("--num-ranks={RANKS}"),
            ];
            let words = FIXED.iter().copied().chain(own.iter().chain(more).map(String::as_str));
            let words: Vec<&str> = words.collect();
            Webgym::spawn_on(&host.launcher(), WEBGYM, &words, &[("CPU_CLUSTER_TOKEN", KEY)])
        });
        Self { ranks: ranks.collect(), tasks, model, slow, folder, _sites: sites }
    }

    /// Waits until the policy has been asked so often.
    pub(crate) async fn steps(&self, count: usize) {
        eventually("episodes go on", LIMIT, async || self.model.count() + self.slow.count() >= count).await;
    }

    /// How many trajectories a rank has finished.
    pub(crate) fn collected_by(&self, rank: u32) -> usize {
        let id = IterationId::new(Split::Test, 0).with_rank(Some(rank));
        let save_path = SavePath::new(self.folder.path().join("run"));
        let file = IterationFile::open(&save_path.journal(id));
        let file = file.or_else(|_| IterationFile::open(&save_path.iteration_file(id)));
        file.map_or(0, |file| file.summaries().len())
    }

    /// Kills a rank where it stands, and goes on without it.
    pub(crate) async fn kill(&mut self, rank: usize) {
        let mut dead = self.ranks.remove(rank);
        dead.signal(rustix::process::Signal::KILL);
        dead.wait_for_exit(LIMIT).await;
    }

    /// Waits until all ranks have ended well, and checks that every task was collected exactly once.
    pub(crate) async fn complete(mut self) {
        for rank in &mut self.ranks {
            let status = rank.wait_for_exit(LIMIT * 2).await;
            assert_eq!(status.code(), Some(0), "{}", rank.log());
        }
        let mut times: BTreeMap<String, Vec<Option<Outcome>>> = BTreeMap::new();
        let path =
            SavePath::new(self.folder.path().join("run")).iteration_file(IterationId::new(Split::Test, 0));
        let file = IterationFile::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for place in 0..file.summaries().len() {
            let trajectory = file.read(place).expect("it can be read");
            let task = trajectory.task.task_name.clone();
            times.entry(task).or_default().push(trajectory.metadata.outcome);
        }
        assert_eq!(times.len(), self.tasks, "{times:?}");
        for (task, outcomes) in &times {
            assert_eq!(outcomes, &[Some(Outcome::Success)], "{task} of {times:?}");
        }
    }
}

const FIXED: &[&str] = &[
    "--quiet",
    "rollout",
    "--config-name=rollout_test",
    "env_config.test_tasks=tasks.jsonl",
    "env_config.test_tasks_rollout_size=0",
    "env_config.test_tasks_repeat_times=1",
    "env_config.server_size=4",
    "env_config.operation_timeout=6",
    "env_config.max_retries=1",
    "env_config.completion_threshold=1",
    "context_config.interaction_mode=coordinates",
    "judge=reference",
];
