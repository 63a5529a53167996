//! A streamed run with simulated servers, and a consumer.

use std::{io::Write, path::Path, time::Duration};

use hyper::Method;
use serde_json::{Value, json};
use store::{IterationFile, IterationId, SavePath, Split};
use testkit::{
    Http, Reply, Webgym, poll_until,
    sim_farm::{SimFarm, SimFarmOptions},
    sim_model::{ModelReply, ModelRequest, SimModel},
};

pub(crate) const LIMIT: Duration = Duration::from_secs(180);
pub(crate) const ID: IterationId = IterationId::new(Split::Train, 0);

pub(crate) struct StreamTest {
    folder: tempfile::TempDir,
    pub(crate) farm: SimFarm,
    pub(crate) policy: SimModel,
    tasks: usize,
}

impl StreamTest {
    pub(crate) async fn new(
        tasks: usize,
        farm: SimFarmOptions,
        policy: impl Fn(&ModelRequest) -> ModelReply + Send + Sync + 'static,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut file = std::fs::File::create(folder.path().join("tasks.jsonl")).unwrap();
        for number in 0..tasks {
            let task = json!({
                "task_id": number, "task_name": format!("task number {number} here"), "website": "http://shop.test/",
                "domain": "d", "subdomain": "s", "difficulty": 1, "evaluator_reference": "shown", "definite_answer": "42",
            });
            writeln!(file, "{task}").unwrap();
        }
        Self { folder, farm: SimFarm::start(farm).await, policy: SimModel::start(policy).await, tasks }
    }

    pub(crate) fn save_path(&self) -> SavePath {
        SavePath::new(self.folder.path().join("run"))
    }

    /// Starts the run without waiting. `more` overrides the defaults of these tests.
    pub(crate) fn spawn(&self, more: &[&str]) -> Webgym {
        self.spawn_on(&[], more)
    }

    /// Starts the run as a child of a shell. The script finds the program and its arguments as `$0` and `$@`.
    pub(crate) fn spawn_in_shell(&self, script: &str) -> Webgym {
        self.spawn_on(&["sh".to_owned(), "-c".to_owned(), script.to_owned()], &[])
    }

    fn spawn_on(&self, launcher: &[String], more: &[&str]) -> Webgym {
        let arguments = [
            "rollout".to_owned(),
            "--resume".to_owned(),
            "--config-name=rollout_train".to_owned(),
            format!("save_path={}", self.save_path().root().display()),
            format!("data_path={}", self.folder.path().display()),
            "env_config.train_tasks=tasks.jsonl".to_owned(),
            format!("env_config.train_tasks_rollout_size={}", self.tasks),
            "env_config.host_ip=127.0.0.1".to_owned(),
            format!("env_config.master_port={}", self.farm.port()),
            format!("env_config.vllm_server_url={}", self.policy.url()),
            "env_config.server_size=4".to_owned(),
            "env_config.completion_threshold=1.0".to_owned(),
            "env_config.monitor_port=null".to_owned(),
            "judge=reference".to_owned(),
            "seed=7".to_owned(),
        ];
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).chain(more.iter().copied()).collect();
        Webgym::spawn_on(launcher, env!("CARGO_BIN_EXE_webgym"), &arguments, &[])
    }

    /// Starts the run with a stream on a free port and waits until it listens.
    pub(crate) async fn start(&self, more: &[&str]) -> (Webgym, Consumer) {
        let arguments: Vec<&str> = ["--stream", "--stream-port=0"].iter().chain(more).copied().collect();
        let mut webgym = self.spawn(&arguments);
        webgym.wait_for_event("listening").await;
        let consumer = Consumer::new(&webgym.url("stream"));
        (webgym, consumer)
    }

    /// Returns the iteration file of the finished run.
    pub(crate) fn iteration(&self) -> IterationFile {
        IterationFile::open(&self.save_path().iteration_file(ID)).unwrap()
    }

    /// Returns the files beside the iteration file.
    pub(crate) fn other_files(&self) -> Vec<String> {
        let file = self.save_path().iteration_file(ID);
        let entries = std::fs::read_dir(file.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
        let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
        entries.filter(|path| *path != file).map(|path| name(&path)).collect()
    }
}

/// Clicks once and answers.
pub(crate) fn answer_at_second_step(request: &ModelRequest) -> ModelReply {
    if request.step() > 1 { ModelReply::answer("42") } else { ModelReply::click(500, 500) }
}

pub(crate) async fn assert_success(webgym: &mut Webgym) {
    let status = webgym.wait_for_exit(LIMIT).await;
    assert_eq!(status.code(), Some(0), "{}", webgym.log());
}

/// A consumer of the stream.
#[derive(Clone)]
pub(crate) struct Consumer {
    pub(crate) http: Http,
}

impl Consumer {
    pub(crate) fn new(url: &str) -> Self {
        Self { http: Http::new(url, None) }
    }

    /// Reads until the response ends.
    pub(crate) async fn read(&self, query: &[(&str, &str)]) -> Vec<Value> {
        let reply = self.http.get("/stream", query).await;
        assert_eq!((reply.status, reply.content_type()), (200, "application/x-ndjson"), "{}", reply.text());
        lines(&reply)
    }

    /// Like [`Consumer::read`], for a collector that may be killed.
    pub(crate) async fn try_read(&self, query: &[(&str, &str)]) -> Result<Vec<Value>, String> {
        let reply = self.http.try_send(Method::GET, "/stream", query, "", &[]).await?;
        Ok(lines(&reply))
    }

    /// Reads exactly this many items after the acknowledged one.
    pub(crate) async fn take(&self, count: usize) -> Vec<Value> {
        let limit = count.to_string();
        let mut items = self.read(&[("limit", limit.as_str())]).await;
        items.retain(|item| item["type"] != "heartbeat");
        assert_eq!(items.len(), count, "{items:?}");
        items
    }

    pub(crate) async fn acknowledge(&self, item: &Value) -> Value {
        self.http.post("/ack", &[("cursor", item["cursor"].as_str().unwrap())]).await.ok()
    }

    pub(crate) async fn status(&self) -> Value {
        self.http.get("/status", &[]).await.ok()
    }

    /// Waits until the status fulfils a condition.
    pub(crate) async fn status_when(&self, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        poll_until(what, LIMIT, async || Some(self.status().await).filter(|status| holds(status))).await
    }
}

pub(crate) fn lines(reply: &Reply) -> Vec<Value> {
    let text = reply.text();
    // The last line of a killed collector may be incomplete.
    let complete = text.rfind('\n').map_or("", |end| &text[..end]);
    complete.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub(crate) fn index(item: &Value) -> i64 {
    item["trajectory"]["trajectory_index"].as_i64().unwrap_or_else(|| panic!("no trajectory: {item}"))
}
