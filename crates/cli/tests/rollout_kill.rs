//! Kills `webgym rollout` with SIGKILL at random moments, then resumes it: every finished trajectory is there exactly once,
//! and the result equals that of an undisturbed run. The farm and the policy are simulated.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed helper fails its test")]

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write,
    path::{Path, PathBuf},
    time::Duration,
};

use proto::trajectory::Outcome;
use rustix::process::Signal;
use serde_json::json;
use store::{IterationFile, IterationId, SavePath, Split};
use testkit::{
    Webgym,
    sim_farm::{Fault, SimFarm, SimFarmOptions},
    sim_model::{ModelReply, ModelRequest, SimModel},
};

const TASKS: usize = 24;
const KILLS: usize = 20;
const EXIT_TIMEOUT: Duration = Duration::from_secs(180);
const ID: IterationId = IterationId::new(Split::Train, 0);

struct TestRun {
    folder: tempfile::TempDir,
    farm: SimFarm,
    policy: SimModel,
}

/// Task name, action keys and outcome: what must be equal however often the run was interrupted.
type Summary = (String, Vec<String>, Outcome);

impl TestRun {
    async fn new() -> Self {
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
        // Every seventh lease is lost once, so that retried episodes are interrupted too.
        let script = |call: &testkit::sim_farm::Call| {
            let is_lost = call.lease % 7 == 3 && call.runs("click_coords") && call.nth == 1;
            if is_lost { Fault::InstanceLost } else { Fault::None }
        };
        let options = SimFarmOptions { latency: Duration::from_millis(3), ..SimFarmOptions::default() };
        let farm = SimFarm::start(options.with_script(script)).await;
        Self { folder, farm, policy: SimModel::start(reply).await }
    }

    fn save_path(&self, name: &str) -> SavePath {
        SavePath::new(self.folder.path().join(name))
    }

    fn start(&self, name: &str) -> Webgym {
        let arguments = [
            "--quiet".to_owned(),
            "rollout".to_owned(),
            "--resume".to_owned(),
            "--config-name=rollout_train".to_owned(),
            format!("save_path={}", self.save_path(name).root().display()),
            format!("data_path={}", self.folder.path().display()),
            "env_config.train_tasks=tasks.jsonl".to_owned(),
            format!("env_config.train_tasks_rollout_size={TASKS}"),
            "env_config.host_ip=127.0.0.1".to_owned(),
            format!("env_config.master_port={}", self.farm.port()),
            format!("env_config.vllm_server_url={}", self.policy.url()),
            "env_config.server_size=4".to_owned(),
            "env_config.completion_threshold=1.0".to_owned(),
            "judge=reference".to_owned(),
            "seed=7".to_owned(),
        ];
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        Webgym::spawn(env!("CARGO_BIN_EXE_webgym"), &arguments)
    }

    fn result(&self, name: &str) -> BTreeMap<i64, Summary> {
        summaries(&self.save_path(name).iteration_file(ID))
    }

    /// Returns trajectory index → first screenshot of the journal. Every attempt has its own file names.
    fn journal(&self, name: &str) -> BTreeMap<i64, PathBuf> {
        let path = self.save_path(name).journal(ID);
        let Ok(file) = IterationFile::open(&path) else { return BTreeMap::new() };
        let read = |index| {
            let trajectory = file.read(index).unwrap();
            let screenshot = PathBuf::from(&trajectory.steps[0].observation.image_path);
            assert!(screenshot.is_file(), "{}", screenshot.display());
            (trajectory.task.trajectory_index, screenshot)
        };
        (0..file.summaries().len()).map(read).collect()
    }
}

/// Clicks a few times and answers; the task determines how often it clicks and whether the answer is right.
fn reply(request: &ModelRequest) -> ModelReply {
    let number: usize = request.task().split(' ').nth(2).and_then(|number| number.parse().ok()).unwrap();
    match request.step() > 1 + number % 4 {
        false => ModelReply::click(500, 500),
        true if number.is_multiple_of(3) => ModelReply::answer("no idea"),
        true => ModelReply::answer("42"),
    }
}

fn summaries(path: &Path) -> BTreeMap<i64, Summary> {
    let file = IterationFile::open(path).unwrap();
    let mut found = BTreeMap::new();
    for index in 0..file.summaries().len() {
        let trajectory = file.read(index).unwrap();
        let keys = trajectory.steps.iter().map(|step| step.action.as_ref().unwrap().key.clone()).collect();
        let summary = (trajectory.task.task_name.clone(), keys, trajectory.metadata.outcome.unwrap());
        let before = found.insert(trajectory.task.trajectory_index, summary);
        assert!(before.is_none(), "trajectory {} is there twice", trajectory.task.trajectory_index);
    }
    found
}

async fn assert_success(webgym: &mut Webgym) {
    let status = webgym.wait_for_exit(EXIT_TIMEOUT).await;
    assert_eq!(status.code(), Some(0), "{}", webgym.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_runs_resume_without_loss_or_duplicates() {
    let run = TestRun::new().await;
    assert_success(&mut run.start("undisturbed")).await;
    let wanted = run.result("undisturbed");
    assert_eq!(wanted.len(), TASKS);
    assert!(!run.save_path("undisturbed").journal(ID).exists(), "a finished run leaves no journal");
    let (mut random, mut kills, mut runs) = (0x9e37_79b9_u64, 0, 0);
    while kills < KILLS {
        runs += 1;
        let name = format!("run{runs}");
        let mut finished: BTreeMap<i64, PathBuf> = BTreeMap::new();
        loop {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let requests = run.farm.requests() + 1 + (random >> 33) as usize % 70;
            let mut webgym = run.start(&name);
            let Some(()) = kill_after(&mut webgym, &run.farm, requests).await else { break };
            kills += 1;
            if run.save_path(&name).iteration_file(ID).exists() {
                // It was killed after it had saved the iteration file.
                break;
            }
            let now = run.journal(&name);
            for (index, screenshot) in &finished {
                assert_eq!(now.get(index), Some(screenshot), "a finished trajectory does not change");
            }
            finished = now;
        }
        assert_eq!(run.result(&name), wanted, "{name} after {kills} kills");
        let kept = run.first_screenshots(&name);
        assert!(
            finished.iter().all(|(index, screenshot)| kept.get(index) == Some(screenshot)),
            "a finished trajectory is not collected again"
        );
        let folder = |screenshot: &PathBuf| screenshot.parent().unwrap().to_owned();
        let named: BTreeSet<PathBuf> = kept.values().map(folder).collect();
        let images = std::fs::read_dir(run.save_path(&name).images()).unwrap();
        let there: BTreeSet<PathBuf> = images.map(|entry| entry.unwrap().path()).collect();
        assert_eq!(there, named, "screenshots of interrupted attempts are removed");
    }
    assert!(runs > 1, "several runs were started");
    // A lease that was granted at the moment of the kill was never used; it expires by itself.
    assert_eq!(
        run.farm.used_leases(),
        Vec::<String>::new(),
        "leases of killed runs are released by the next run"
    );
}

impl TestRun {
    fn first_screenshots(&self, name: &str) -> BTreeMap<i64, PathBuf> {
        let path = self.save_path(name).iteration_file(ID);
        let file = IterationFile::open(&path).unwrap();
        let trajectories = (0..file.summaries().len()).map(|index| file.read(index).unwrap());
        trajectories
            .map(|one| (one.task.trajectory_index, PathBuf::from(&one.steps[0].observation.image_path)))
            .collect()
    }
}

/// Kills the run when the farm has received this many requests; returns `None` if it finished before.
async fn kill_after(webgym: &mut Webgym, farm: &SimFarm, requests: usize) -> Option<()> {
    loop {
        if farm.requests() >= requests {
            webgym.signal(Signal::KILL);
            let status = webgym.wait_for_exit(EXIT_TIMEOUT).await;
            return (status.code() != Some(0)).then_some(());
        }
        tokio::select! {
            status = webgym.wait_for_exit(EXIT_TIMEOUT) => {
                assert_eq!(status.code(), Some(0), "{}", webgym.log());
                return None;
            }
            () = tokio::time::sleep(Duration::from_millis(1)) => {}
        }
    }
}
