//! Starts `webgym loop` with toy programs, and reads what it left.

use std::{
    collections::BTreeMap,
    io::Write,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::json;
use store::{
    SavePath,
    loop_state::{LoopState, Phase, PhaseState},
};
use testkit::{
    ReservedPort, Webgym, eventually, processes,
    sim_farm::{SimFarm, SimFarmOptions},
};

/// Generous for loaded machines; a passing test needs seconds.
pub(crate) const LIMIT: Duration = Duration::from_secs(300);
const TASKS: usize = 4;

pub(crate) struct TestLoop {
    pub(crate) folder: tempfile::TempDir,
    farm: SimFarm,
    port: ReservedPort,
}

impl TestLoop {
    pub(crate) async fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("loop lr=1e-6").tempdir().unwrap();
        let mut file = std::fs::File::create(folder.path().join("tasks.jsonl")).unwrap();
        for number in 0..TASKS {
            let task = json!({
                "task_id": number, "task_name": format!("task number {number} here"), "website": "http://shop.test/",
                "domain": "d", "subdomain": "s", "difficulty": 1 + number % 9, "evaluator_reference": "shown",
                "definite_answer": "42",
            });
            writeln!(file, "{task}").unwrap();
        }
        let farm = SimFarm::start(SimFarmOptions::default()).await;
        let test = Self { folder, farm, port: ReservedPort::new() };
        test.write_config();
        test
    }

    fn write_config(&self) {
        let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/training_loop/programs");
        let program = |name: &str| programs.join(name).display().to_string();
        let text = |text: &str| serde_json::to_string(text).unwrap();
        let lines = [
            "defaults: [loop, _self_]".to_owned(),
            "model: base".to_owned(),
            "retry_pause: 0".to_owned(),
            "min_free_gb: 0".to_owned(),
            "serve:".to_owned(),
            format!("  command: [python3, {}, \"{{model}}\", \"{{port}}\"]", text(&program("serve.py"))),
            format!("  url: http://127.0.0.1:{}", self.port.number()),
            "  stop_seconds: 2".to_owned(),
            "collect:".to_owned(),
            "  arguments:".to_owned(),
            format!("    - {}", text(&format!("data_path='{}'", self.folder.path().display()))),
            "    - env_config.train_tasks=tasks.jsonl".to_owned(),
            format!("    - env_config.train_tasks_rollout_size={TASKS}"),
            "    - env_config.host_ip=127.0.0.1".to_owned(),
            format!("    - env_config.master_port={}", self.farm.port()),
            "    - env_config.server_size=4".to_owned(),
            "    - env_config.monitor_port=null".to_owned(),
            "    - judge=reference".to_owned(),
            "export: {arguments: [--to, jsonl, --last, \"1\"]}".to_owned(),
            "train:".to_owned(),
            format!(
                "  command: [python3, {}, \"{{data}}\", \"{{model}}\", \"{{output}}\", \"{{iteration}}\", \"{{rank}}\"]",
                text(&program("train.py"))
            ),
            "  stop_seconds: 1".to_owned(),
        ];
        std::fs::write(self.folder.path().join("toy.yaml"), lines.join("\n")).unwrap();
    }

    pub(crate) fn save_path(&self, name: &str) -> SavePath {
        SavePath::new(self.folder.path().join(name))
    }

    pub(crate) fn start(&self, name: &str, arguments: &[&str]) -> Webgym {
        let folder = self.folder.path().display().to_string();
        let save_path = format!("save_path='{}'", self.save_path(name).root().display());
        let own = ["loop", "--config-name", "toy", "--config-path", &folder, &save_path];
        Webgym::spawn(env!("CARGO_BIN_EXE_webgym"), &[&own[..], arguments].concat())
    }

    /// Runs a loop to its end and returns its exit code and its log.
    pub(crate) async fn run(&self, name: &str, arguments: &[&str]) -> (Option<i32>, String) {
        let mut webgym = self.start(name, arguments);
        let status = webgym.wait_for_exit(LIMIT).await;
        self.assert_no_processes().await;
        (status.code(), webgym.log())
    }

    /// Runs rank 0 to its end; other ranks may still end theirs.
    pub(crate) async fn run_first(&self, name: &str, arguments: &[&str]) -> (Option<i32>, String) {
        let mut webgym = self.start(name, arguments);
        let status = webgym.wait_for_exit(LIMIT).await;
        (status.code(), webgym.log())
    }

    /// Waits until no program of a loop is left.
    pub(crate) async fn assert_no_processes(&self) {
        let folder = self.folder.path().display().to_string();
        let port = self.port.number().to_string();
        let is_ours = |words: &[String]| {
            let line = words.join(" ");
            line.contains(&folder) || (line.contains("serve.py") && line.contains(&port))
        };
        eventually("no process of the loop is left", LIMIT, async || {
            !processes().iter().any(|process| !process.zombie && is_ours(&process.command))
        })
        .await;
    }

    pub(crate) fn state(&self, name: &str) -> LoopState {
        LoopState::read(&self.save_path(name)).unwrap().expect("the loop has a state")
    }

    /// Returns a phase of the last iteration.
    pub(crate) fn phase(&self, name: &str, phase: Phase) -> PhaseState {
        self.state(name).current().unwrap().phase(phase).unwrap().clone()
    }

    /// Returns the target of the link to the current checkpoint.
    pub(crate) fn current_checkpoint(&self, name: &str) -> Option<PathBuf> {
        std::fs::read_link(self.save_path(name).root().join("model.pt")).ok()
    }

    /// Returns everything that must be equal however often a loop was interrupted: names of trajectory files and training
    /// data, and the content of checkpoints.
    pub(crate) fn results(&self, name: &str) -> BTreeMap<PathBuf, Vec<u8>> {
        let root = self.save_path(name).root().to_owned();
        let mut found = BTreeMap::new();
        for folder in ["checkpoints", "loop/data", "train_trajectories", "images"] {
            collect_files(&root.join(folder), &mut |path| {
                let relative = path.strip_prefix(&root).unwrap().to_owned();
                let is_compared = folder == "checkpoints";
                // The folders of screenshots have random names.
                let key = if folder == "images" { PathBuf::from(folder) } else { relative };
                found.insert(key, if is_compared { std::fs::read(path).unwrap() } else { Vec::new() });
            });
        }
        let target = self.current_checkpoint(name).unwrap_or_default();
        found.insert(target, Vec::new());
        found
    }
}

fn collect_files(folder: &Path, found: &mut impl FnMut(&Path)) {
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() { collect_files(&path, found) } else { found(&path) }
    }
}
