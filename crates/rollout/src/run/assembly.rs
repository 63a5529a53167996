//! Puts a run together from its configuration: [`Run`] is checked and planned, [`ReadyRun`] is connected to a farm, and
//! [`FinishedRun`] says what was collected and what is left to merge.

use std::{path::Path, sync::Arc, time::Duration};

use client::{chat::ModelClient, farm::ClientError, http::KeepAlive};
use store::{IterationId, JournalError, SavePath};

use super::{
    Collected, GroupPrefixes, Pause, PolicyVersion, RunError, RunLimits, StartLimit, Stop, TaskSource,
    collect,
    event::Announcer,
    leases::LeaseLog,
    merge::Merge,
    permits::RequestPermits,
    preflight::{self, PreflightError, ServiceKeys},
    queue::{QueueError, WorkQueue},
    start_limit,
    state::RunState,
};
use crate::{
    config::{Config, HttpPools, RecordError, Resolved, append_hyperparameters, seconds},
    episode::{EpisodeContext, Groups, Settings, screenshots},
    judge::Judge,
    plan::{self, Plan, PlanError, Unfinished, ranks::Ranks},
    policy::{HISTORY_WINDOW, PromptOptions},
    prompts::{PolicyPrompts, PromptError},
    session_options::{SessionError, SessionSource},
};

/// Number of trajectories that may wait for the judge, per judge worker and at least.
const UNJUDGED_PER_WORKER: usize = 4;
const MIN_UNJUDGED: usize = 64;

#[derive(Debug, thiserror::Error)]
pub enum AssemblyError {
    #[error(transparent)]
    Preflight(#[from] PreflightError),
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Prompts(#[from] PromptError),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Queue(#[from] QueueError),
    #[error("cannot set up the farm client: {0}")]
    Farm(#[from] ClientError),
    #[error("cannot record leases in {}: {source}", save_path.display())]
    Leases { save_path: std::path::PathBuf, source: std::io::Error },
    #[error(transparent)]
    Session(#[from] SessionError),
}

/// What a run needs beside its configuration.
pub struct RunOptions {
    /// What to do with a journal that an earlier run left unfinished.
    pub unfinished: Unfinished,
    pub keys: ServiceKeys,
}

/// A run whose services were checked and whose tasks are planned.
pub struct Run {
    config: Config,
    plan: Plan,
    policy: ModelClient,
    prompts: Arc<PolicyPrompts>,
    queue: Option<WorkQueue>,
    farm_key: String,
}

impl Run {
    /// Checks the services, plans the tasks, opens the journal and records the configuration. Returns `None` when the
    /// other ranks have finished and merged the run already.
    pub async fn from_config(
        mut resolved: Resolved,
        options: RunOptions,
    ) -> Result<Option<Self>, AssemblyError> {
        plan::check(&resolved.config)?;
        let prompts = Arc::new(load_prompts(&resolved.config)?);
        let (policy, model) = preflight::check(&resolved.config, &options.keys).await?;
        if resolved.config.policy_model().is_none() {
            tracing::info!("no model is configured; using {model}, the only one that the policy server has");
            resolved.config.policy_config.base_model = Some(model);
        }
        let plan = match plan::prepare(&resolved, &options.unfinished, jiff::Timestamp::now()) {
            Err(merged @ PlanError::MergedWithout { .. }) => {
                tracing::info!("{merged}");
                return Ok(None);
            }
            plan => plan?,
        };
        plan.notes.iter().for_each(|note| tracing::info!("{note}"));
        record(&resolved, &plan)?;
        let env = &resolved.config.env_config;
        let queue = match &env.work_queue {
            Some(address) => {
                Some(WorkQueue::open(address, &plan, seconds(env.work_queue_stale_after)).await?)
            }
            None => None,
        };
        let farm_key = options.keys.farm;
        Ok(Some(Self { config: resolved.config, plan, policy, prompts, queue, farm_key }))
    }

    pub const fn config(&self) -> &Config {
        &self.config
    }

    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Connects to the farm at `farm_url` and releases the leases that a crashed run of the same save path still holds.
    pub async fn connect(self, farm_url: &str) -> Result<ReadyRun, AssemblyError> {
        let Self { config, plan, policy, prompts, queue, farm_key } = self;
        let state = Arc::new(RunState::of_tasks(&plan.tasks, plan.finished.keys().copied()));
        for (index, outcome) in &plan.finished {
            state.add_finished(usize::try_from(*index).unwrap_or(0), *outcome);
        }
        let farm = preflight::farm_client(&config, farm_url, &farm_key, KeepAlive::Short)?;
        let sessions = SessionSource::for_tasks(&config, &plan.tasks)?.with_attempts(plan.attempts.clone());
        let root = plan.save_path.root();
        let leases_error = |source| AssemblyError::Leases { save_path: root.to_owned(), source };
        let leases = LeaseLog::open(root).map_err(leases_error)?;
        if plan.ranks.rank == 0 {
            let count = leases.release_left_over(&farm).await.map_err(leases_error)?;
            if count > 0 {
                tracing::info!("leases of an earlier run of this save path: {count} released");
            }
        }
        let policy_version = PolicyVersion::new(config.policy_config.version.clone());
        let settings = settings(&config, prompts, &plan);
        policy_version.refresh(&policy, &settings.model).await;
        let announcer = Announcer::new(vec![Arc::clone(&state) as _]);
        let env = &config.env_config;
        let limit = env.max_staleness.zip(env.stream_batch).map(|(max, batch)| start_limit(max, batch));
        let starts = StartLimit::new(limit, plan.group_size, plan.finished.keys().copied());
        let begun = (!plan.finished.is_empty()).then(|| plan.journal.path());
        let group_prefixes =
            env.group_from_step.map(|step| GroupPrefixes::new(step, plan.group_size, &plan.tasks, begun));
        let context = Arc::new(EpisodeContext {
            farm,
            pause: Pause::new(policy.clone(), announcer.clone()),
            policy,
            policy_version,
            permits: permits(&config, &plan.ranks),
            announcer,
            leases: Some(leases),
            journal: plan.journal.clone(),
            sessions,
            settings,
            group_prefixes,
        });
        Ok(ReadyRun { config, plan, queue, state, context, starts })
    }
}

/// A run that is connected to a farm and can be collected.
pub struct ReadyRun {
    config: Config,
    plan: Plan,
    queue: Option<WorkQueue>,
    state: Arc<RunState>,
    context: Arc<EpisodeContext>,
    starts: StartLimit,
}

impl ReadyRun {
    pub const fn config(&self) -> &Config {
        &self.config
    }

    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    pub const fn state(&self) -> &Arc<RunState> {
        &self.state
    }

    pub const fn context(&self) -> &Arc<EpisodeContext> {
        &self.context
    }

    /// Returns how far the run may be ahead of the consumer of its stream.
    pub const fn starts(&self) -> &StartLimit {
        &self.starts
    }

    /// Runs all episodes and closes the journal.
    pub async fn collect(self, judge: Judge, stop: Stop) -> Result<FinishedRun, StoppedRun> {
        let Self { config, plan, queue, context, starts, .. } = self;
        let limits = limits(&config, &plan.ranks, starts);
        let merge = Merge::of(&plan);
        let Plan { id, save_path, ranks, tasks, total, journal, .. } = plan;
        let has_queue = queue.is_some();
        let source = queue.map_or(TaskSource::Fixed { tasks, total }, TaskSource::Queue);
        let followed = Arc::clone(&context);
        let following = tokio::spawn(async move {
            followed.policy_version.follow(&followed.policy, &followed.settings.model).await;
        });
        let collected = collect(context, judge, limits, source, stop).await;
        following.abort();
        let closed = journal.close().await;
        match (collected, closed) {
            (Ok(collected), Ok(())) => {
                let merge_timeout = seconds(config.env_config.merge_wait_minutes * 60.0);
                Ok(FinishedRun { collected, save_path, id, ranks, merge, merge_timeout, has_queue })
            }
            // On a full disk, closing fails too: steps wait to be written. The first error says how to continue.
            (Err(source), _) => Err(StoppedRun::after_error(source, &save_path, id, &ranks)),
            (Ok(_), Err(error)) => Err(StoppedRun::Journal(error)),
        }
    }
}

/// A run whose episodes have ended. Some may be left for a resumed run.
pub struct FinishedRun {
    pub collected: Collected,
    pub save_path: SavePath,
    pub id: IterationId,
    pub ranks: Ranks,
    /// The merge of all ranks' files, where there are several ranks.
    pub merge: Option<Merge>,
    pub merge_timeout: Duration,
    /// The tasks came from a shared queue, so all ranks are done when this one is.
    pub has_queue: bool,
}

/// Why a run ended before all episodes had ended.
#[derive(Debug, thiserror::Error)]
pub enum StoppedRun {
    #[error("the run stopped before any episode finished; fix the problem below and start it again")]
    Nothing { source: RunError },
    #[error(
        "the run stopped; finished episodes are in {} and the run can be continued with --resume", journal.display()
    )]
    Resumable { journal: std::path::PathBuf, source: RunError },
    #[error(transparent)]
    Journal(JournalError),
}

impl StoppedRun {
    fn after_error(source: RunError, save_path: &SavePath, id: IterationId, ranks: &Ranks) -> Self {
        let journal = save_path.journal(id);
        if ranks.count() == 1 && remove_if_empty(&journal, &save_path.images()) {
            return Self::Nothing { source };
        }
        Self::Resumable { journal, source }
    }
}

/// Removes a journal without finished episodes, which would only prevent the next run from starting.
fn remove_if_empty(journal: &Path, images: &Path) -> bool {
    let Some(scan) = store::journal::scan(journal).ok().filter(|scan| scan.finished.is_empty()) else {
        return false;
    };
    if std::fs::remove_file(journal).is_err() {
        return false;
    }
    plan::remove_selection_file(journal);
    screenshots::discard_abandoned(images, &scan);
    true
}

/// Appends the configuration and what was decided for this run to `hyperparameters.yaml`.
fn record(resolved: &Resolved, plan: &Plan) -> Result<(), RecordError> {
    let decided = [
        ("iteration", plan.id.iteration.into()),
        ("seed", plan.run.seed.into()),
        ("policy_model", resolved.config.policy_model().into()),
        ("rank", plan.id.rank.into()),
        ("ranks", plan.ranks.count().into()),
    ];
    append_hyperparameters(resolved, plan.save_path.root(), jiff::Timestamp::now(), &decided).map(drop)
}

/// Returns this rank's share of the request permits.
fn permits(config: &Config, ranks: &Ranks) -> RequestPermits {
    let pools = config.env_config.http_pools.or_default();
    let sizes = HttpPools {
        metadata: ranks.share(pools.metadata),
        navigate: ranks.share(pools.navigate),
        allocate: ranks.share(pools.allocate),
        release: ranks.share(pools.release),
        screenshot: ranks.share(pools.screenshot),
        ac_tree: ranks.share(pools.ac_tree),
        page_metadata: ranks.share(pools.page_metadata),
        execute: ranks.share(pools.execute),
    };
    RequestPermits::new(&sizes, seconds(config.env_config.wait_timeout))
}

/// Returns the prompts that the configuration names, or the built-in ones.
pub fn load_prompts(config: &Config) -> Result<PolicyPrompts, PromptError> {
    match &config.policy_config.prompt_template {
        Some(path) => PolicyPrompts::load(path, prompt_options(config)),
        None => Ok(PolicyPrompts::built_in(config.policy_config.dialect)),
    }
}

/// Returns what the prompts of a run depend on.
pub fn prompt_options(config: &Config) -> PromptOptions {
    PromptOptions {
        mode: config.context_config.interaction_mode,
        model_type: config.model_config.model_type,
        version: config.model_config.prompt_version,
        include_ac_tree: config.context_config.include_ac_tree,
        window: HISTORY_WINDOW,
        dialect: config.dialect(),
    }
}

fn settings(config: &Config, prompts: Arc<PolicyPrompts>, plan: &Plan) -> Settings {
    let env = &config.env_config;
    let save_path = &plan.save_path;
    Settings {
        prompting: prompt_options(config),
        prompts,
        page_text_lines: config.context_config.page_text_lines,
        screenshot_format: config.env_config.screenshot_format.into(),
        model: config.policy_model().unwrap_or_else(|| "default".to_owned()),
        policy: config.policy_config.clone(),
        split: env.split,
        groups: (plan.group_size > 1)
            .then_some(Groups { iteration: plan.id.iteration, size: plan.group_size }),
        lifetime_mins: env.instance_lifetime_max,
        operation_timeout: seconds(env.operation_timeout),
        save_path: save_path.root().to_owned(),
        images: save_path.images(),
        navigation_errors: save_path.navigation_errors(),
    }
}

fn limits(config: &Config, ranks: &Ranks, starts: StartLimit) -> RunLimits {
    let env = &config.env_config;
    RunLimits {
        episodes: ranks.share(env.server_size),
        task_timeout: seconds(env.task_timeout_minutes * 60.0),
        completion_threshold: env.completion_threshold,
        completion_grace: seconds(env.completion_grace_period),
        max_infra_retries: env.max_infra_retries,
        unjudged: (env.evaluation_workers * UNJUDGED_PER_WORKER).max(MIN_UNJUDGED),
        starts,
    }
}
