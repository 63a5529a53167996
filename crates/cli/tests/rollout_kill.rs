//! `kill -9` at random moments, then `--resume`: every finished trajectory is there once, nothing twice, and the whole
//! equals what an undisturbed run collects. The real `webgym`, against a simulated farm and policy.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed helper is a failed test")]

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
const ID: IterationId = IterationId::new(Split::Train, 0);

struct Scene {
    folder: tempfile::TempDir,
    farm: SimFarm,
    policy: SimModel,
}

/// What makes two trajectories the same, however often the run was interrupted.
type Essence = (String, Vec<String>, Outcome);

impl Scene {
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
        // Every seventh lease dies once, so that retried episodes are interrupted too.
        let script = |call: &testkit::sim_farm::Call| {
            let dies = call.lease % 7 == 3 && call.runs("click_coords") && call.nth == 1;
            if dies { Fault::InstanceLost } else { Fault::None }
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
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        Webgym::spawn(env!("CARGO_BIN_EXE_webgym"), &words)
    }

    fn result(&self, name: &str) -> BTreeMap<i64, Essence> {
        essences(&self.save_path(name).iteration_file(ID))
    }

    /// Trajectory index → first screenshot, which every attempt has under another name.
    fn journal(&self, name: &str) -> BTreeMap<i64, PathBuf> {
        let path = self.save_path(name).journal(ID);
        let Ok(file) = IterationFile::open(&path) else { return BTreeMap::new() };
        let read = |place| {
            let trajectory = file.read(place).unwrap();
            let picture = PathBuf::from(&trajectory.steps[0].observation.image_path);
            assert!(picture.is_file(), "{}", picture.display());
            (trajectory.task.trajectory_index, picture)
        };
        (0..file.summaries().len()).map(read).collect()
    }
}

/// Clicks a few times, depending on the task, and answers, rightly or not, depending on the task.
fn reply(question: &ModelRequest) -> ModelReply {
    let number: usize = question.task().split(' ').nth(2).and_then(|word| word.parse().ok()).unwrap();
    match question.step() > 1 + number % 4 {
        false => ModelReply::click(500, 500),
        true if number % 3 == 0 => ModelReply::answer("no idea"),
        true => ModelReply::answer("42"),
    }
}

fn essences(path: &Path) -> BTreeMap<i64, Essence> {
    let file = IterationFile::open(path).unwrap();
    let mut found = BTreeMap::new();
    for place in 0..file.summaries().len() {
        let trajectory = file.read(place).unwrap();
        let keys = trajectory.steps.iter().map(|step| step.action.as_ref().unwrap().key.clone()).collect();
        let essence = (trajectory.task.task_name.clone(), keys, trajectory.metadata.outcome.unwrap());
        let before = found.insert(trajectory.task.trajectory_index, essence);
        assert!(before.is_none(), "trajectory {} is there twice", trajectory.task.trajectory_index);
    }
    found
}

async fn finishes(webgym: &mut Webgym) {
    let status = webgym.wait_for_exit(Duration::from_secs(60)).await;
    assert_eq!(status.code(), Some(0), "{}", webgym.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_random_moments_and_resumed_nothing_is_lost_and_nothing_is_twice() {
    let scene = Scene::new().await;
    finishes(&mut scene.start("undisturbed")).await;
    let wanted = scene.result("undisturbed");
    assert_eq!(wanted.len(), TASKS);
    assert!(!scene.save_path("undisturbed").journal(ID).exists(), "a finished run leaves no journal");
    let (mut random, mut kills, mut run) = (0x9e37_79b9_u64, 0, 0);
    while kills < KILLS {
        run += 1;
        let name = format!("run{run}");
        let mut safe: BTreeMap<i64, PathBuf> = BTreeMap::new();
        loop {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let moment = scene.farm.requests() + 1 + (random >> 33) as usize % 70;
            let mut webgym = scene.start(&name);
            let Some(()) = killed(&mut webgym, &scene.farm, moment).await else { break };
            kills += 1;
            if scene.save_path(&name).iteration_file(ID).exists() {
                // Killed between its last trajectory and its last word.
                break;
            }
            let now = scene.journal(&name);
            for (index, picture) in &safe {
                assert_eq!(now.get(index), Some(picture), "what was finished stays as it was");
            }
            safe = now;
        }
        assert_eq!(scene.result(&name), wanted, "{name} after {kills} kills");
        let kept = scene.first_pictures(&name);
        assert!(
            safe.iter().all(|(index, picture)| kept.get(index) == Some(picture)),
            "nothing is collected twice"
        );
        let folder = |picture: &PathBuf| picture.parent().unwrap().to_owned();
        let named: BTreeSet<PathBuf> = kept.values().map(folder).collect();
        let images = std::fs::read_dir(scene.save_path(&name).images()).unwrap();
        let there: BTreeSet<PathBuf> = images.map(|entry| entry.unwrap().path()).collect();
        assert_eq!(there, named, "the pictures of attempts that were cut short are thrown away");
    }
    assert!(run > 1, "several runs were interrupted");
    // One that was granted in the very moment of the kill is known to nobody, and runs out by itself.
    assert_eq!(
        scene.farm.used_leases(),
        Vec::<String>::new(),
        "what killed runs held was given back by the next"
    );
}

impl Scene {
    fn first_pictures(&self, name: &str) -> BTreeMap<i64, PathBuf> {
        let path = self.save_path(name).iteration_file(ID);
        let file = IterationFile::open(&path).unwrap();
        let trajectories = (0..file.summaries().len()).map(|place| file.read(place).unwrap());
        trajectories
            .map(|one| (one.task.trajectory_index, PathBuf::from(&one.steps[0].observation.image_path)))
            .collect()
    }
}

/// Kills the run once the farm has had so many requests; `None` when it had finished before.
async fn killed(webgym: &mut Webgym, farm: &SimFarm, moment: usize) -> Option<()> {
    loop {
        if farm.requests() >= moment {
            webgym.signal(Signal::KILL);
            let status = webgym.wait_for_exit(Duration::from_secs(60)).await;
            return (status.code() != Some(0)).then_some(());
        }
        tokio::select! {
            status = webgym.wait_for_exit(Duration::from_secs(60)) => {
                assert_eq!(status.code(), Some(0), "{}", webgym.log());
                return None;
            }
            () = tokio::time::sleep(Duration::from_millis(1)) => {}
        }
    }
}
