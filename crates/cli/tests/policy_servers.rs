//! `webgym rollout` with a policy server that refuses requests as vLLM does, and other settings that a run checks before it
//! starts.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed helper fails its test")]

use std::{path::PathBuf, time::Duration};

use proto::trajectory::{Outcome, Trajectory};
use serde_json::json;
use store::{IterationFile, IterationId, SavePath, Split};
use testkit::{
    Webgym, eventually,
    sim_farm::{SimFarm, SimFarmOptions},
    sim_model::{ModelReply, ModelRequest, SimModel},
    sim_vllm::{self, VllmOptions},
};

/// Generous for loaded machines; a passing test needs a few seconds.
const LIMIT: Duration = Duration::from_secs(120);
const TASKS: usize = 3;

struct TestRun {
    folder: tempfile::TempDir,
    farm: SimFarm,
}

impl TestRun {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let task = |number: usize| {
            json!({
                "task_id": number, "task_name": format!("task {number}"), "website": "http://shop.test/", "domain": "d",
                "subdomain": "s", "difficulty": 1, "evaluator_reference": ["shown"], "definite_answer": "42",
            })
            .to_string()
        };
        let tasks: Vec<String> = (0..TASKS).map(task).collect();
        std::fs::write(folder.path().join("tasks.jsonl"), tasks.join("\n")).unwrap();
        Self { folder, farm: SimFarm::start(SimFarmOptions::default()).await }
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("run")
    }

    fn start(&self, policy: &SimModel, more: &[&str], variables: &[(&str, &str)]) -> Webgym {
        let own = [
            format!("save_path={}", self.root().display()),
            format!("data_path={}", self.folder.path().display()),
            format!("env_config.master_port={}", self.farm.port()),
            format!("env_config.vllm_server_url={}", policy.url()),
            format!("env_config.train_tasks_rollout_size={TASKS}"),
        ];
        let fixed = [
            "rollout",
            "--config-name=rollout_train",
            "env_config.train_tasks=tasks.jsonl",
            "env_config.host_ip=127.0.0.1",
            "env_config.server_size=2",
            "env_config.monitor_port=null",
            "policy_config.max_new_tokens=500",
            "judge=reference",
        ];
        let own = own.iter().map(String::as_str);
        let arguments: Vec<&str> = fixed.into_iter().chain(own).chain(more.iter().copied()).collect();
        Webgym::spawn_with(env!("CARGO_BIN_EXE_webgym"), &arguments, variables)
    }

    /// Runs to the end; returns the exit code and the log.
    async fn run(
        &self,
        policy: &SimModel,
        more: &[&str],
        variables: &[(&str, &str)],
    ) -> (Option<i32>, String) {
        let mut webgym = self.start(policy, more, variables);
        let code = webgym.wait_for_exit(LIMIT).await.code();
        (code, webgym.log())
    }

    /// Runs to the end, which must be a success.
    async fn collect(&self, policy: &SimModel, more: &[&str], variables: &[(&str, &str)]) -> Vec<Trajectory> {
        let (code, log) = self.run(policy, more, variables).await;
        assert_eq!(code, Some(0), "{log}");
        let trajectories = self.saved(0);
        assert_eq!(trajectories.len(), TASKS);
        trajectories
    }

    fn saved(&self, iteration: u64) -> Vec<Trajectory> {
        let path = SavePath::new(self.root()).iteration_file(IterationId::new(Split::Train, iteration));
        let file = IterationFile::open(&path).unwrap();
        (0..file.summaries().len()).map(|index| file.read(index).unwrap()).collect()
    }

    /// The run is refused before anything is created, with all of these words.
    async fn assert_refused(
        &self,
        policy: &SimModel,
        more: &[&str],
        variables: &[(&str, &str)],
        words: &[&str],
    ) {
        let (code, log) = self.run(policy, more, variables).await;
        assert_eq!(code, Some(1), "{log}");
        assert!(words.iter().all(|word| log.contains(word)), "{words:?} in {log}");
        assert!(!self.root().join("train_trajectories").exists(), "{log}");
        assert_eq!(policy.count(), 0);
    }
}

/// Clicks five times, then answers.
fn act(request: &ModelRequest) -> ModelReply {
    if request.step() > 5 { ModelReply::answer("42") } else { ModelReply::click(500, 500) }
}

fn assert_all_succeed(trajectories: &[Trajectory]) {
    let outcomes: Vec<_> = trajectories.iter().map(|one| one.metadata.outcome).collect();
    assert_eq!(outcomes, vec![Some(Outcome::Success); TASKS]);
}

fn has_file(request: &ModelRequest) -> bool {
    request.images.iter().any(|url| url.starts_with("file://"))
}

#[tokio::test]
async fn images_are_sent_as_files_if_vllm_may_read_them() {
    let run = TestRun::new().await;
    let allowed_local_media_path = Some(run.folder.path().to_owned());
    let policy =
        sim_vllm::start(VllmOptions { allowed_local_media_path, ..VllmOptions::default() }, act).await;
    assert_all_succeed(&run.collect(&policy, &[], &[]).await);
    assert!(policy.requests().iter().all(has_file));
}

#[tokio::test]
async fn images_are_sent_as_data_if_vllm_may_not_read_them() {
    for allowed in [None, Some(PathBuf::from("/nowhere"))] {
        let run = TestRun::new().await;
        let options = VllmOptions { allowed_local_media_path: allowed, ..VllmOptions::default() };
        let policy = sim_vllm::start(options, act).await;
        assert_all_succeed(&run.collect(&policy, &[], &[]).await);
        let files = policy.requests().iter().filter(|request| has_file(request)).count();
        assert!((1..=2).contains(&files), "each of the two first episodes at most once: {files}");
    }
}

#[tokio::test]
async fn key_is_read_from_the_environment() {
    let run = TestRun::new().await;
    let policy =
        sim_vllm::start(VllmOptions { api_key: Some("sesame"), ..VllmOptions::default() }, act).await;
    for variables in [&[][..], &[("VLLM_API_KEY", "wrong-key")]] {
        run.assert_refused(
            &policy,
            &[],
            variables,
            &["401", "VLLM_API_KEY", "policy_config.api_key_env_var"],
        )
        .await;
    }
    assert_all_succeed(&run.collect(&policy, &[], &[("VLLM_API_KEY", "sesame")]).await);
    let hyperparameters = std::fs::read_to_string(run.root().join("hyperparameters.yaml")).unwrap();
    assert!(!hyperparameters.contains("sesame"));
}

#[tokio::test]
async fn window_shrinks_to_the_context_of_the_model() {
    for options in [
        VllmOptions { max_images: 2, ..VllmOptions::default() },
        VllmOptions { max_model_len: 5_000, ..VllmOptions::default() },
    ] {
        let run = TestRun::new().await;
        let is_small = options.max_model_len < 10_000;
        let policy = sim_vllm::start(options, act).await;
        let mut webgym = run.start(&policy, &["env_config.image_transport=data"], &[]);
        assert_eq!(webgym.wait_for_exit(LIMIT).await.code(), Some(0), "{}", webgym.log());
        let warning = "the model's context has 5000 tokens";
        eventually("the log is complete", LIMIT, async || webgym.log().contains(warning) == is_small).await;
        let trajectories = run.saved(0);
        assert_all_succeed(&trajectories);
        assert!(trajectories.iter().all(|one| one.steps.len() == 6), "no episode was repeated");
        assert_eq!(run.farm.leases_granted(), TASKS);
    }
}

#[tokio::test]
async fn episode_that_is_too_long_keeps_its_steps() {
    let body = json!({"error": {
        "message": "This model's maximum context length is 2063 tokens. However, your prompt contains at least 2064 input \
                    tokens, which exceeds this limit even without any output tokens. Please reduce the length of the input \
                    prompt. (parameter=input_tokens, value=2064)",
        "type": "BadRequestError", "param": "input_tokens", "code": 400,
    }});
    let run = TestRun::new().await;
    let policy = SimModel::start(move |request| match request.step() {
        1 | 2 => ModelReply::click(500, 500),
        _ => ModelReply::Json(400, body.clone()),
    })
    .await;
    for trajectory in run.collect(&policy, &["env_config.image_transport=data"], &[]).await {
        let ending = trajectory.metadata.extra["ending"].as_str().unwrap();
        assert!(ending.starts_with("too long for the model: "), "{ending}");
        assert_eq!((trajectory.metadata.outcome, trajectory.steps.len()), (Some(Outcome::Failure), 3));
    }
    assert_eq!(run.farm.leases_granted(), TASKS, "no episode was repeated");
}

#[tokio::test]
async fn reply_longer_than_the_context_is_refused() {
    let run = TestRun::new().await;
    let policy = sim_vllm::start(VllmOptions { max_model_len: 2_063, ..VllmOptions::default() }, act).await;
    let more = ["policy_config.max_new_tokens=3072"];
    run.assert_refused(&policy, &more, &[], &["policy_config.max_new_tokens is 3072", "2063"]).await;
}

#[tokio::test]
async fn train_run_needs_a_judge() {
    let run = TestRun::new().await;
    let policy = sim_vllm::start(VllmOptions::default(), act).await;
    let without_key = [("OPENAI_API_KEY", "")];
    let words = ["OPENAI_API_KEY", "judge=reference", "judge=none"];
    for address in ["null", "https://api.openai.com/v1"] {
        let more = ["judge=auto", &format!("openai_config.base_url={address}")];
        run.assert_refused(&policy, &more, &without_key, &words).await;
    }
    run.collect(&policy, &["judge=reference", "seed=1"], &without_key).await;
    let path = SavePath::new(run.root()).iteration_file(IterationId::new(Split::Train, 0));
    let metadata = IterationFile::open(&path).unwrap().metadata().clone();
    assert_eq!(metadata.judge_model.as_deref(), Some("reference"), "not the model that was never asked");
}

#[tokio::test]
async fn settings_of_the_python_system_are_accepted() {
    let run = TestRun::new().await;
    let policy = sim_vllm::start(VllmOptions::default(), act).await;
    let more = [
        "--first-iteration=1",
        "env_config.http_pools.execute=0",
        "env_config.http_pools.allocate=0",
        "env_config.train_tasks_sampler=ratio",
        "~env_config.difficulty_ratio",
        "openai_config.base_url=null",
    ];
    let (code, log) = run.run(&policy, &more, &[]).await;
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("tasks are drawn uniformly"), "{log}");
    assert_all_succeed(&run.saved(1));
    let (code, log) = run.run(&policy, &more, &[]).await;
    assert_eq!(code, Some(0), "{log}");
    assert_all_succeed(&run.saved(2));
}

#[tokio::test]
async fn own_prompts_are_sent() {
    let run = TestRun::new().await;
    let policy = sim_vllm::start(VllmOptions::default(), act).await;
    let template = run.folder.path().join("policy.jinja");
    let turn = "{# section: turn #}\nStep {{ step }}. Do {{ task }} at {{ url }}!\n{{ screenshot }}\n{{ summary }}\n";
    std::fs::write(&template, turn).unwrap();
    let more = [format!("policy_config.prompt_template={}", template.display())];
    assert_all_succeed(&run.collect(&policy, &[&more[0]], &[]).await);
    assert!(policy.requests().iter().all(|request| request.text.contains("Do task ")));
    std::fs::write(&template, turn.replace("{{ screenshot }}", "")).unwrap();
    let (code, log) = run.run(&policy, &[&more[0]], &[]).await;
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("policy.jinja") && log.contains("{{ screenshot }}"), "{log}");
    // Fails at a step that the check does not reach.
    std::fs::write(&template, turn.replace("Do ", "Do {% if step == 2 %}{{ task + 1 }}{% endif %}")).unwrap();
    let (code, log) = run.run(&policy, &[&more[0]], &[]).await;
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("policy.jinja cannot be used: line 2") && !log.contains("refuses"), "{log}");
}

#[tokio::test]
async fn too_long_prompt_is_the_reason_also_without_file_access() {
    let run = TestRun::new().await;
    let options = VllmOptions { max_model_len: 1_000, ..VllmOptions::default() };
    let policy = sim_vllm::start(options, act).await;
    let (code, log) = run.run(&policy, &["env_config.max_infra_retries=0"], &[]).await;
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("the first prompt is too long") && !log.contains("local files"), "{log}");
}

#[tokio::test]
async fn judge_server_needs_no_key() {
    let run = TestRun::new().await;
    let policy = sim_vllm::start(VllmOptions::default(), act).await;
    let judge = SimModel::start(|_| ModelReply::Reply("Blocked: NO\nYES\nVerdict: SUCCESS".into())).await;
    let more = ["judge=auto", &format!("openai_config.base_url={}/v1", judge.url())];
    assert_all_succeed(&run.collect(&policy, &more, &[("OPENAI_API_KEY", "")]).await);
    assert!(judge.count() > 0);
}
