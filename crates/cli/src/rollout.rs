//! `webgym rollout`: puts a run together from its configuration (farm, policy, judge, journal), watches it, and
//! says at the end how it went.

use std::{path::Path, process::ExitCode, sync::Arc, time::Duration};

use anyhow::Context;
use clap::Args;
use client::chat::ModelClient;
use farm::{Farm, FarmOptions, NetworkRules, PoolOptions};
use rollout::{
    config::{Config, Resolved},
    episode::{EpisodeContext, Settings, screenshots},
    plan::{self, Plan, PlanError, Unfinished},
    policy::PromptOptions,
    run::{
        self, Collected, RunLimits, Source, Stop,
        event::{Announcer, Stage},
        leases::LeaseLog,
        merge::Merge,
        permits::RequestPermits,
        queue::WorkQueue,
        state::RunState,
    },
};

use crate::{
    browser_args::BrowserArgs,
    config::ConfigArgs,
    contact,
    format::count_of,
    judge,
    monitor::RunMonitorArgs,
    progress::Progress,
    ranks::{self, RankArgs},
    report::{self, ReportFormat},
    signals::Signals,
};

#[derive(Args)]
pub(crate) struct RolloutArgs {
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
    /// Go on with the unfinished run of this save path, if there is one.
    #[arg(long, conflicts_with = "fresh")]
    pub(crate) resume: bool,
    /// Set an unfinished run of this save path aside and start a new one. Nothing is deleted.
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Let pages of the farm inside this process reach loopback and private addresses.
    #[arg(long)]
    pub(crate) allow_private_network: bool,
    /// Let pages of the farm inside this process reach this host, whatever its address. Repeatable.
    #[arg(long, value_name = "HOST")]
    pub(crate) allow_host: Vec<String>,
    /// Say who waits for what when nothing has progressed for this many seconds.
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    pub(crate) stall_secs: u64,
    #[command(flatten)]
    pub(crate) ranks: RankArgs,
    #[arg(skip)]
    pub(crate) audience: ReportFormat,
    #[command(flatten)]
    pub(crate) watching: RunMonitorArgs,
    #[command(flatten)]
    pub(crate) browser: BrowserArgs,
}

pub(crate) async fn rollout(args: RolloutArgs, quiet: bool) -> anyhow::Result<ExitCode> {
    let mut resolved = args.config.load()?;
    args.ranks.apply(&mut resolved.config)?;
    let signals = Signals::listen()?;
    let outcome = run_to_end(&args, resolved, quiet, signals).await?;
    let all_lost = outcome.lost.is_some_and(|(count, _)| count >= outcome.finished);
    Ok(match outcome.unfinished {
        0 if all_lost => ExitCode::FAILURE,
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(3),
    })
}

async fn run_to_end(
    args: &RolloutArgs,
    mut resolved: Resolved,
    quiet: bool,
    signals: Signals,
) -> anyhow::Result<Collected> {
    let config = &resolved.config;
    let unfinished = match (&config.env_config.resume_checkpoint_path, args.resume, args.fresh) {
        (Some(path), _, _) => Unfinished::ResumeFrom(path.clone()),
        (None, true, _) => Unfinished::Resume,
        (None, _, true) => Unfinished::SetAside,
        (None, false, false) => Unfinished::Refuse,
    };
    plan::check(config)?;
    let (policy, model) = contact::policy(config).await?;
    if let Some(url) = config.farm_url() {
        contact::farm(config, &url).await?;
    }
    if let Some(address) = &config.env_config.work_queue {
        rollout::run::queue::contact(address).await?;
    }
    if config.policy_model().is_none() {
        tracing::info!("no model is named: the policy is {model}, the only one that is served");
        resolved.config.policy_config.base_model = Some(model);
    }
    let (resolved, config) = (&resolved, &resolved.config);
    let plan = match plan::prepare(resolved, &unfinished, jiff::Timestamp::now()) {
        Err(done @ PlanError::DoneWithout { .. }) => {
            tracing::info!("{done}");
            return Ok(Collected { finished: 0, unfinished: 0, lost: None });
        }
        planned => planned?,
    };
    for note in &plan.notes {
        tracing::info!("{note}");
    }
    ::rollout::config::append_hyperparameters(
        resolved,
        plan.save_path.root(),
        jiff::Timestamp::now(),
        &[
            ("iteration", plan.id.iteration.into()),
            ("seed", plan.run.seed.into()),
            ("policy_model", config.policy_model().into()),
            ("rank", plan.id.rank.into()),
            ("ranks", plan.ranks.count().into()),
        ],
    )?;
    let queue = match &config.env_config.work_queue {
        Some(address) => {
            let stale = seconds(config.env_config.work_queue_stale_after);
            Some(WorkQueue::open(address, &plan, stale).await?)
        }
        None => None,
    };
    let own_farm = start_farm(args, config, &plan).await?;
    let url = match (&own_farm, config.farm_url()) {
        (Some(farm), _) => farm.url("master").unwrap_or_default().to_owned(),
        (None, Some(url)) => url,
        (None, None) => anyhow::bail!("no farm to use"),
    };
    let outcome = collect(args, config, (plan, queue), &url, policy, quiet, signals).await;
    if let Some(farm) = own_farm {
        farm.stop().await;
    }
    outcome
}

/// A farm inside this process, when none is configured.
async fn start_farm(args: &RolloutArgs, config: &Config, plan: &Plan) -> anyhow::Result<Option<Farm>> {
    if config.farm_url().is_some() {
        return Ok(None);
    }
    let size = plan.ranks.share(config.env_config.server_size).min(plan.tasks.len().max(1));
    let mut pool = PoolOptions::new(size, args.browser.launch()?);
    pool.instance = args.browser.options()?;
    pool.network =
        NetworkRules { allow_private: args.allow_private_network, allow_hosts: args.allow_host.clone() };
    let farm = Farm::start(FarmOptions::local(pool)).await?;
    let verb = if size == 1 { "starts" } else { "start" };
    tracing::info!("no farm is configured: {} {verb} inside this process", count_of(size, "instance"));
    Ok(Some(farm))
}

async fn collect(
    args: &RolloutArgs,
    config: &Config,
    (plan, queue): (Plan, Option<WorkQueue>),
    farm_url: &str,
    policy: ModelClient,
    quiet: bool,
    signals: Signals,
) -> anyhow::Result<Collected> {
    let state = Arc::new(RunState::of_tasks(&plan.tasks, plan.finished.keys().copied()));
    for (index, outcome) in &plan.finished {
        state.add_finished(usize::try_from(*index).unwrap_or(0), *outcome);
    }
    let farm = contact::farm_client(config, farm_url)?;
    let leases = LeaseLog::open(plan.save_path.root())?;
    if plan.ranks.rank == 0 {
        let left = leases.release_left_over(&farm).await?;
        if left > 0 {
            let left = count_of(left, "instance");
            tracing::info!("gave back {left} that an earlier run of this save path still held");
        }
    }
    let context = Arc::new(EpisodeContext {
        farm,
        policy,
        permits: RequestPermits::new(&shared_pools(config, &plan), seconds(config.env_config.wait_timeout)),
        announcer: Announcer::new(vec![Arc::clone(&state) as _]),
        leases: Some(leases),
        journal: plan.journal.clone(),
        settings: settings(config, &plan),
    });
    let monitor = args.watching.start(config, &plan, &state, &context).await;
    let progress = Progress::start(Arc::clone(&state), quiet);
    let stop = Stop::default();
    let stopping = tokio::spawn(obey(signals, stop.clone()));
    let watchdog =
        tokio::spawn(run::watch(Arc::clone(&state), Duration::from_secs(args.stall_secs.max(1)), |words| {
            tracing::warn!("{words}");
        }));
    let limits = limits(config, &plan);
    let with_reference = plan.tasks.iter().filter(|task| task.reference_answer.is_some()).count();
    let judge = judge::choose(config, Some((with_reference, plan.tasks.len())))?;
    let merge = Merge::of(&plan);
    let (waiting, all_done) = (stop.soft.clone(), queue.is_some());
    let source = queue.map_or_else(|| Source::Own(plan.tasks, plan.total), Source::Queue);
    let outcome = run::collect(context, judge, limits, source, stop).await;
    watchdog.abort();
    drop(progress);
    drop(monitor);
    let journal = plan.save_path.journal(plan.id);
    plan.journal.close().await?;
    let collected =
        outcome.with_context(|| what_is_left(&journal, &plan.save_path.images(), plan.ranks.count() == 1))?;
    if collected.unfinished > 0 {
        eprintln!(
            "Stopped with {} trajectories left to collect. Everything finished is safe; go on with the same command and --resume.",
            collected.unfinished
        );
        stopping.abort();
        return Ok(collected);
    }
    if let Some((count, why)) = &collected.lost {
        tracing::warn!(
            "{count} of {} episodes were lost to infrastructure; most often: {why}",
            collected.finished
        );
    }
    // Such an episode plays on a blank page and fails: the table alone would blame the policy.
    if let Some((count, why)) = state.failures(Stage::Navigate) {
        tracing::warn!(
            "start pages did not load {count} times; the last time: {why}. They are in {}",
            plan.save_path.navigation_errors().display()
        );
    }
    let audience = if quiet { ReportFormat::Json } else { args.audience };
    report::finish(&plan.save_path, plan.id, audience)?;
    let patience = seconds(config.env_config.merge_wait_minutes * 60.0);
    let missing = match merge {
        Some(merge) if plan.ranks.rank == 0 => {
            ranks::merge(merge, all_done, patience, &waiting, audience).await?
        }
        Some(merge) => {
            tracing::info!("rank 0 merges what the ranks have collected; by hand: {}", merge.command());
            0
        }
        None => {
            plan::forget_plan(&plan.save_path, plan.id);
            0
        }
    };
    stopping.abort();
    Ok(Collected { unfinished: missing, ..collected })
}

/// What remains of a run that could not go on. A journal in which nothing is finished would only be in the way.
fn what_is_left(journal: &Path, images: &Path, is_alone: bool) -> String {
    let nothing = store::journal::scan(journal).ok().filter(|scan| scan.finished.is_empty() && is_alone);
    if let Some(scan) = nothing
        && std::fs::remove_file(journal).is_ok()
    {
        plan::forget_choice(journal);
        screenshots::discard_abandoned(images, &scan);
        return "the run stopped before anything was finished; mend what is said below and start it again"
            .into();
    }
    format!("the run stopped; what is finished is in {} and can be resumed with --resume", journal.display())
}

/// This rank's share of the pools.
fn shared_pools(config: &Config, plan: &Plan) -> rollout::config::HttpPools {
    let pools = &config.env_config.http_pools;
    let share = |size| plan.ranks.share(size);
    rollout::config::HttpPools {
        metadata: share(pools.metadata),
        navigate: share(pools.navigate),
        allocate: share(pools.allocate),
        release: share(pools.release),
        screenshot: share(pools.screenshot),
        ac_tree: share(pools.ac_tree),
        page_metadata: share(pools.page_metadata),
        execute: share(pools.execute),
    }
}

fn settings(config: &Config, plan: &Plan) -> Settings {
    let env = &config.env_config;
    Settings {
        prompting: PromptOptions {
            mode: config.context_config.interaction_mode,
            model_type: config.model_config.model_type,
            version: config.model_config.prompt_version,
            include_ac_tree: config.context_config.include_ac_tree,
        },
        page_text_lines: config.context_config.page_text_lines,
        model: config.policy_model().unwrap_or_else(|| "default".to_owned()),
        policy: config.policy_config.clone(),
        split: env.split,
        lifetime_mins: env.instance_lifetime_max,
        operation_timeout: seconds(env.operation_timeout),
        save_path: plan.save_path.root().to_owned(),
        images: plan.save_path.images(),
        navigation_errors: plan.save_path.navigation_errors(),
    }
}

fn limits(config: &Config, plan: &Plan) -> RunLimits {
    let env = &config.env_config;
    RunLimits {
        episodes: plan.ranks.share(env.server_size),
        task_timeout: seconds(env.task_timeout_minutes * 60.0),
        completion_threshold: env.completion_threshold,
        completion_grace: seconds(env.completion_grace_period),
        max_infra_retries: env.max_infra_retries,
        unjudged: (env.evaluation_workers * 4).max(64),
    }
}

async fn obey(mut signals: Signals, stop: Stop) {
    signals.next().await;
    eprintln!("Stopping: no new episodes; those running may finish. Ctrl-C once more to stop at once.");
    stop.soft.cancel();
    signals.next().await;
    eprintln!("Stopping now. Finished trajectories are safe.");
    stop.hard.cancel();
}

pub(crate) fn seconds(number: f64) -> Duration {
    Duration::try_from_secs_f64(number).unwrap_or(Duration::MAX)
}
