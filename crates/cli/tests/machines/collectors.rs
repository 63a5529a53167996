//! Two collectors on their own hosts, a policy with latency, and checks of what they saved.

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

/// Latency of the policy: long enough for faults to happen during an episode.
const POLICY_LATENCY: Duration = Duration::from_millis(400);
const RANKS: u32 = 2;

/// A run of two ranks.
pub(crate) struct Run {
    pub(crate) ranks: Vec<Webgym>,
    tasks: usize,
    folder: TempDir,
    pub(crate) model: SimModel,
    slow: SimModel,
    _sites: Sites,
}

fn act(request: &ModelRequest) -> ModelReply {
    match request.step() {
        1 | 3 => ModelReply::call("computer_use", &json!({"action": "scroll", "direction": "down"})),
        2 => ModelReply::click(500, 500),
        _ => ModelReply::answer("42"),
    }
}

fn write_tasks(folder: &TempDir, sites: &Sites, count: usize) {
    let paths = ["/shop/", "/wiki/", "/jobs/"];
    let lines: Vec<String> = (0..count)
        .map(|id| {
            json!({
                "task_id": format!("task-{id}"), "task_name": format!("look around, part {id}"),
                "website": sites.url(paths[id % paths.len()]), "domain": "d", "subdomain": "s", "difficulty": 1,
                "evaluator_reference": ["seen"], "definite_answer": "42",
            })
            .to_string()
        })
        .collect();
    std::fs::write(folder.path().join("tasks.jsonl"), lines.join("\n")).expect("a writable folder");
}

impl Run {
    /// Starts both ranks with the farm at this address and fixed shares of the tasks.
    pub(crate) async fn start(hosts: &[Host; 2], farm: (&str, u16), tasks: usize) -> Self {
        Self::start_as(hosts, farm, tasks, &[], false).await
    }

    /// Starts both ranks with a work queue that declares a collector dead after three seconds without a heartbeat. The
    /// second rank can get a slow policy.
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
        let model = SimModel::start_at(here, POLICY_LATENCY, false, Arc::new(act)).await;
        let slow = SimModel::start_at(here, 6 * POLICY_LATENCY, false, Arc::new(act)).await;
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
            let arguments = FIXED.iter().copied().chain(own.iter().chain(more).map(String::as_str));
            let arguments: Vec<&str> = arguments.collect();
            Webgym::spawn_on(&host.launcher(), WEBGYM, &arguments, &[("CPU_CLUSTER_TOKEN", KEY)])
        });
        Self { ranks: ranks.collect(), tasks, model, slow, folder, _sites: sites }
    }

    /// Waits until the policies have received this many requests.
    pub(crate) async fn wait_for_steps(&self, count: usize) {
        eventually("episodes make progress", LIMIT, async || self.model.count() + self.slow.count() >= count)
            .await;
    }

    /// Returns how many trajectories a rank has finished.
    pub(crate) fn collected_by(&self, rank: u32) -> usize {
        let id = IterationId::new(Split::Test, 0).with_rank(Some(rank));
        let save_path = SavePath::new(self.folder.path().join("run"));
        let file = IterationFile::open(&save_path.journal(id));
        let file = file.or_else(|_| IterationFile::open(&save_path.iteration_file(id)));
        file.map_or(0, |file| file.summaries().len())
    }

    /// Kills a rank and continues without it.
    pub(crate) async fn kill(&mut self, rank: usize) {
        let mut killed = self.ranks.remove(rank);
        killed.signal(rustix::process::Signal::KILL);
        killed.wait_for_exit(LIMIT).await;
    }

    /// Waits until all ranks have succeeded and checks that every task was collected exactly once.
    pub(crate) async fn assert_complete(mut self) {
        for rank in &mut self.ranks {
            let status = rank.wait_for_exit(LIMIT * 2).await;
            assert_eq!(status.code(), Some(0), "{}", rank.log());
        }
        let mut outcomes: BTreeMap<String, Vec<Option<Outcome>>> = BTreeMap::new();
        let path =
            SavePath::new(self.folder.path().join("run")).iteration_file(IterationId::new(Split::Test, 0));
        let file = IterationFile::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for index in 0..file.summaries().len() {
            let trajectory = file.read(index).expect("a readable trajectory");
            let task = trajectory.task.task_name.clone();
            outcomes.entry(task).or_default().push(trajectory.metadata.outcome);
        }
        assert_eq!(outcomes.len(), self.tasks, "{outcomes:?}");
        for (task, of_task) in &outcomes {
            assert_eq!(of_task, &[Some(Outcome::Success)], "{task} of {outcomes:?}");
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
