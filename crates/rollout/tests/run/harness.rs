//! Assembles a run with simulated servers, and reads the trajectories it saved.

use std::{path::Path, sync::Arc, time::Duration};

use client::{
    chat::{Images, ModelClient, ModelOptions},
    farm::{FarmClient, FarmClientOptions},
    http::RetryPolicy,
};
use proto::{
    ImageFormat, InteractionMode,
    trajectory::{Action, Evaluation, Outcome, RubricItem, Task, TaskId, Trajectory},
};
use rollout::{
    config::{Config, HttpPools, PolicyConfig, Split},
    episode::{EpisodeContext, Settings},
    judge::{Judge, ModelJudge},
    policy::{DialectOptions, PromptOptions},
    prompts::PolicyPrompts,
    run::{
        self, Collected, GroupPrefixes, Pause, RunError, RunLimits, StartLimit, Stop, TaskSource,
        event::Announcer, leases::LeaseLog, permits::RequestPermits, state::RunState,
    },
    session_options::SessionSource,
};
use store::{IterationId, Journal, RunMetadata, RunRecord, SavePath};
use testkit::{
    sim_farm::{Call, Fault, SimFarm, SimFarmOptions},
    sim_model::{ModelReply, ModelRequest, SimModel},
};

pub(crate) const START: &str = "http://shop.test/";

/// A run that is not started yet. Tests change the fields they are about.
pub(crate) struct Harness {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) farm: SimFarm,
    pub(crate) policy: SimModel,
    /// The address of another policy server, used instead of `policy`.
    pub(crate) policy_url: Option<String>,
    pub(crate) pools: HttpPools,
    /// The configuration of the session options.
    pub(crate) config: Config,
    pub(crate) split: Split,
    /// The number of attempts in a group, and of the steps that they share.
    pub(crate) groups: Option<(usize, usize)>,
    pub(crate) mode: InteractionMode,
    pub(crate) page_text_lines: usize,
    pub(crate) screenshot_format: ImageFormat,
    pub(crate) dialect: Option<DialectOptions>,
    pub(crate) limits: RunLimits,
    pub(crate) sessions: usize,
    pub(crate) operation_timeout: Duration,
    pub(crate) attempt_timeout: Duration,
    pub(crate) wait_timeout: Duration,
    pub(crate) judge: Judge,
    pub(crate) stop: Stop,
    pub(crate) state: Arc<RunState>,
}

/// The result of a run and the trajectories it saved.
pub(crate) struct RunResult {
    pub(crate) collected: Result<Collected, RunError>,
    pub(crate) trajectories: Vec<Trajectory>,
}

pub(crate) fn retry() -> RetryPolicy {
    RetryPolicy {
        max_retries: 2,
        first_delay: Duration::from_millis(2),
        max_delay: Duration::from_millis(10),
    }
}

impl Harness {
    pub(crate) async fn new(
        farm: SimFarmOptions,
        policy: impl Fn(&ModelRequest) -> ModelReply + Send + Sync + 'static,
    ) -> Self {
        let many = 64;
        Self {
            folder: tempfile::tempdir().unwrap(),
            farm: SimFarm::start(farm).await,
            policy: SimModel::start(policy).await,
            policy_url: None,
            pools: HttpPools {
                metadata: many,
                navigate: many,
                allocate: many,
                release: many,
                screenshot: many,
                ac_tree: many,
                page_metadata: many,
                execute: many,
            },
            config: Config::default(),
            split: Split::Train,
            groups: None,
            mode: InteractionMode::Coordinates,
            page_text_lines: 0,
            screenshot_format: ImageFormat::Png,
            dialect: None,
            limits: RunLimits {
                episodes: 8,
                task_timeout: Duration::from_mins(1),
                completion_threshold: 1.0,
                completion_grace: Duration::from_mins(1),
                max_infra_retries: 2,
                unjudged: 64,
                starts: StartLimit::none(),
            },
            sessions: 64,
            operation_timeout: Duration::from_secs(10),
            attempt_timeout: Duration::from_secs(10),
            wait_timeout: Duration::from_secs(30),
            judge: Judge::Reference,
            stop: Stop::default(),
            state: Arc::new(RunState::new(0..64)),
        }
    }

    /// Creates a run on a farm that works except for the faults of `script`.
    pub(crate) async fn faulty(
        script: impl Fn(&Call) -> Fault + Send + Sync + 'static,
        policy: impl Fn(&ModelRequest) -> ModelReply + Send + Sync + 'static,
    ) -> Self {
        Self::new(SimFarmOptions::default().with_script(script), policy).await
    }

    pub(crate) fn root(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn save_path(&self) -> SavePath {
        SavePath::new(self.folder.path())
    }

    pub(crate) fn id(&self) -> IterationId {
        IterationId::new(store_split(self.split), 0)
    }

    pub(crate) fn farm_client(&self) -> FarmClient {
        let options = FarmClientOptions {
            operation_timeout: self.operation_timeout,
            retry: retry(),
            ..FarmClientOptions::default()
        };
        FarmClient::new(&self.farm.url(), "key", options).unwrap()
    }

    fn sessions(&self, tasks: &[Task]) -> SessionSource {
        let group_size = i64::try_from(self.groups.map_or(1, |(size, _)| size)).unwrap();
        let attempts = tasks.iter().map(|task| task.trajectory_index);
        let attempts = attempts.map(|index| (index, (index % group_size) as u32)).collect();
        SessionSource::for_tasks(&self.config, &[]).unwrap().with_attempts(attempts)
    }

    fn episode_context(&self, journal: Journal, tasks: &[Task]) -> EpisodeContext {
        let options = ModelOptions {
            sessions: self.sessions,
            attempt_timeout: self.attempt_timeout,
            retry: retry(),
            images: Images::File,
            ..ModelOptions::default()
        };
        let save_path = self.save_path();
        let policy_url = self.policy_url.clone().unwrap_or_else(|| self.policy.url());
        let policy = ModelClient::vllm(&policy_url, options).unwrap();
        let announcer = Announcer::new(vec![Arc::clone(&self.state) as _]);
        EpisodeContext {
            group_prefixes: self
                .groups
                .map(|(size, from_step)| GroupPrefixes::new(from_step, size, tasks, Some(journal.path()))),
            policy_version: rollout::run::PolicyVersion::default(),
            farm: self.farm_client(),
            pause: Pause::new(policy.clone(), announcer.clone()),
            policy,
            permits: RequestPermits::new(&self.pools, self.wait_timeout),
            announcer,
            leases: Some(LeaseLog::open(self.root()).unwrap()),
            journal,
            sessions: self.sessions(tasks),
            settings: Settings {
                prompts: Arc::new(PolicyPrompts::built_in(self.dialect.map(|options| options.dialect))),
                prompting: PromptOptions {
                    mode: self.mode,
                    model_type: rollout::config::ModelType::Instruct,
                    version: rollout::config::PromptVersion::Complete,
                    include_ac_tree: true,
                    window: rollout::policy::HISTORY_WINDOW,
                    dialect: self.dialect,
                },
                page_text_lines: self.page_text_lines,
                screenshot_format: self.screenshot_format,
                model: "sim".into(),
                policy: PolicyConfig::default(),
                split: self.split,
                groups: None,
                lifetime_mins: 5,
                operation_timeout: self.operation_timeout,
                save_path: self.root().to_owned(),
                images: save_path.images(),
                navigation_errors: save_path.navigation_errors(),
            },
        }
    }

    pub(crate) fn journal(&self, tasks: usize) -> Journal {
        let save_path = self.save_path();
        save_path.create_directories(store_split(self.split)).unwrap();
        let run = RunRecord {
            split: store_split(self.split),
            iteration: 0,
            rank: None,
            seed: 1,
            config_digest: String::new(),
            tasks: tasks as u64,
            metadata: RunMetadata::default(),
        };
        Journal::create(&save_path.journal(self.id()), &run).unwrap()
    }

    /// Runs the tasks to the end.
    pub(crate) async fn run(&mut self, tasks: Vec<Task>) -> RunResult {
        self.run_with(self.journal(tasks.len()), tasks).await
    }

    /// Runs more tasks of the journal.
    pub(crate) async fn resume(&mut self, tasks: Vec<Task>) -> RunResult {
        let (journal, _) = Journal::resume(&self.save_path().journal(self.id())).unwrap();
        self.run_with(journal, tasks).await
    }

    async fn run_with(&mut self, journal: Journal, tasks: Vec<Task>) -> RunResult {
        let total = tasks.len();
        let context = Arc::new(self.episode_context(journal.clone(), &tasks));
        let judge = std::mem::replace(&mut self.judge, Judge::None);
        let collected = run::collect(
            context,
            judge,
            self.limits.clone(),
            TaskSource::Fixed { tasks, total },
            self.stop.clone(),
        )
        .await;
        journal.close().await.unwrap();
        RunResult { collected, trajectories: self.saved() }
    }

    /// Runs one task and returns its trajectory.
    pub(crate) async fn run_one(&mut self, task: Task) -> Trajectory {
        let mut result = self.run(vec![task]).await;
        let Collected { finished, unfinished, .. } = result.collected.unwrap();
        assert_eq!((finished, unfinished), (1, 0));
        assert_eq!(result.trajectories.len(), 1);
        result.trajectories.remove(0)
    }

    /// Returns the finished trajectories of the journal, in the order of their indices.
    pub(crate) fn saved(&self) -> Vec<Trajectory> {
        let path = self.save_path().journal(self.id());
        let file = store::IterationFile::open(&path).unwrap();
        (0..file.summaries().len()).map(|index| file.read(index).unwrap()).collect()
    }

    /// Uses the scripted server at `url` as the judge.
    pub(crate) fn judge_at(&mut self, url: &str) {
        self.judge = model_judge(url, |_| {});
    }
}

pub(crate) fn model_judge(url: &str, change: impl Fn(&mut Config)) -> Judge {
    let mut config = Config::default();
    config.openai_config.base_url = Some(format!("{url}/v1"));
    config.openai_config.model = "judge".into();
    change(&mut config);
    let judge = ModelJudge::new(&config, |name| Some(format!("key of {name}"))).unwrap();
    Judge::Model(Box::new(judge))
}

pub(crate) const fn store_split(split: Split) -> store::Split {
    match split {
        Split::Train => store::Split::Train,
        Split::Test => store::Split::Test,
    }
}

pub(crate) fn task(index: i64) -> Task {
    Task {
        task_name: format!("find thing {index}"),
        domain: "shopping".into(),
        subdomain: "things".into(),
        website: START.into(),
        difficulty: 2,
        evaluator_reference: vec![RubricItem { description: "the thing is shown".into(), difficulty: 1 }],
        reference_answer: Some("42".into()),
        attempt_level: 0,
        task_id: Some(TaskId::Text(format!("t{index}"))),
        max_steps: 10,
        trajectory_index: index,
        extra: serde_json::Map::new(),
    }
}

pub(crate) fn tasks(count: i64) -> Vec<Task> {
    (0..count).map(task).collect()
}

/// Returns a policy that clicks, and gives the right answer from step `answer_step` on.
pub(crate) fn clicks_then_answers(
    answer_step: usize,
) -> impl Fn(&ModelRequest) -> ModelReply + Send + Sync + 'static {
    move |question| {
        if question.step() >= answer_step { ModelReply::answer("42") } else { ModelReply::click(500, 500) }
    }
}

pub(crate) fn outcome(trajectory: &Trajectory) -> Outcome {
    trajectory.metadata.outcome.unwrap()
}

pub(crate) fn action_keys(trajectory: &Trajectory) -> Vec<String> {
    trajectory.steps.iter().map(|step| step.action.as_ref().unwrap().key.clone()).collect()
}

/// Returns the observation that was stored with each reply.
pub(crate) fn observations(trajectory: &Trajectory) -> Vec<String> {
    let texts = trajectory
        .steps
        .iter()
        .filter_map(|step| step.response.answering_tokens.get("observation")?.as_str());
    texts.filter(|text| !text.is_empty()).map(str::to_owned).collect()
}

pub(crate) fn ending(trajectory: &Trajectory) -> String {
    trajectory.metadata.extra["ending"].as_str().unwrap().to_owned()
}

pub(crate) fn evaluation_texts(trajectory: &Trajectory) -> Vec<String> {
    match &trajectory.steps.last().unwrap().reward.evaluation {
        Evaluation::Text(text) => vec![text.clone()],
        Evaluation::Texts(texts) => texts.clone(),
    }
}

/// Asserts that the episode kept its steps, ends with an invalid step, and has no reward.
pub(crate) fn assert_ended_early(trajectory: &Trajectory, kept: usize) {
    assert_eq!(trajectory.steps.len(), kept + 1, "{:?}", action_keys(trajectory));
    assert_eq!(action_keys(trajectory).last().unwrap(), Action::INVALID_STEP);
    assert_eq!(trajectory.steps.last().unwrap().reward.reward, 0);
}

/// Waits until the condition holds. The limit is generous because the machine may be loaded.
pub(crate) async fn until(what: &str, happened: impl Fn() -> bool) {
    let end = std::time::Instant::now() + Duration::from_secs(30);
    while !happened() {
        assert!(std::time::Instant::now() < end, "waited in vain until {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
