//! `webgym rollout`: starts a run from its configuration, shows its progress, stops it on signals, and reports the results.

use std::{process::ExitCode, sync::Arc, time::Duration};

use clap::Args;
use farm::{Farm, FarmOptions, NetworkRules, PoolOptions};
use proto::trajectory::Outcome;
use rollout::{
    config::{Config, Resolved},
    judge::Judge,
    plan::{self, Unfinished},
    run::{
        self, Collected, FinishedRun, ReadyRun, Run, RunOptions, Stop, event::Stage, preflight::ServiceKeys,
        state::RunState,
    },
};
use stream::StreamListener;
use tokio_util::sync::CancellationToken;

use crate::{
    browser_args::BrowserArgs,
    config::ConfigArgs,
    format::count_of,
    judge,
    monitor::RunMonitorArgs,
    own_farm,
    parent::Parent,
    progress::Progress,
    ranks::{self, RankArgs},
    report::{self, ReportFormat},
    signals::Signals,
    stream::{RunStream, StreamArgs},
};

/// How long a run may take to stop after the process that started it has ended.
const ABANDONED_STOP_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Args)]
pub(crate) struct RolloutArgs {
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
    /// Continue the unfinished run of this save path, if there is one.
    #[arg(long, conflicts_with = "fresh")]
    pub(crate) resume: bool,
    /// Set an unfinished run of this save path aside and start a new one. Nothing is deleted.
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Number the iterations from N instead of 0; the Python system counts from 1.
    #[arg(long, value_name = "N")]
    pub(crate) first_iteration: Option<u64>,
    /// Allow pages of the farm inside this process to reach loopback and private addresses.
    #[arg(long)]
    pub(crate) allow_private_network: bool,
    /// Allow pages of the farm inside this process to reach this host, whatever its address. Repeatable.
    #[arg(long, value_name = "HOST")]
    pub(crate) allow_host: Vec<String>,
    /// Log what episodes wait for after this many seconds without progress.
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    pub(crate) stall_secs: u64,
    #[command(flatten)]
    pub(crate) ranks: RankArgs,
    #[arg(skip)]
    pub(crate) format: ReportFormat,
    #[command(flatten)]
    pub(crate) monitor: RunMonitorArgs,
    #[command(flatten)]
    pub(crate) stream: StreamArgs,
    /// Stop when the process PID ends. It must be the parent of this one.
    #[arg(long, value_name = "PID")]
    pub(crate) exit_with_parent: Option<i32>,
    #[command(flatten)]
    pub(crate) browser: BrowserArgs,
}

pub(crate) async fn rollout(args: RolloutArgs, quiet: bool) -> anyhow::Result<ExitCode> {
    let mut resolved = args.config.load()?;
    args.ranks.apply(&mut resolved.config)?;
    if let Some(number) = args.first_iteration {
        resolved.config.env_config.first_iteration = number;
    }
    let judge = judge::choose(&mut resolved.config)?;
    let stops = Stops { signals: Signals::listen()?, parent: Parent::watch(args.exit_with_parent)? };
    let parent = stops.parent.clone();
    let abandoned = async {
        parent.ended().await;
        tokio::time::sleep(ABANDONED_STOP_TIMEOUT).await;
    };
    let collected = tokio::select! {
        collected = Box::pin(run_to_end(&args, resolved, judge, quiet, stops)) => collected?,
        () = abandoned => return Ok(ExitCode::from(130)),
    };
    let all_lost = collected.lost.is_some_and(|(count, _)| count >= collected.finished);
    Ok(match collected.unfinished {
        0 if all_lost => ExitCode::FAILURE,
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(3),
    })
}

async fn run_to_end(
    args: &RolloutArgs,
    resolved: Resolved,
    judge: Judge,
    quiet: bool,
    stops: Stops,
) -> anyhow::Result<Collected> {
    let listener = args.stream.bind(&resolved.config).await?;
    let options = run_options(args, &resolved.config);
    let Some(run) = Run::from_config(resolved, options).await? else { return Ok(Collected::default()) };
    judge::check_tasks(&judge, &run.plan().tasks)?;
    let own_farm = start_farm(args, &run).await?;
    let url = match (&own_farm, run.config().farm_url()) {
        (Some(farm), _) => farm.url("master").unwrap_or_default().to_owned(),
        (None, Some(url)) => url,
        (None, None) => anyhow::bail!("no farm to use"),
    };
    let collected = Box::pin(collect(args, (run, &url), listener, judge, quiet, stops)).await;
    if let Some(farm) = own_farm {
        farm.stop().await;
    }
    collected
}

fn run_options(args: &RolloutArgs, config: &Config) -> RunOptions {
    let unfinished = match (&config.env_config.resume_checkpoint_path, args.resume, args.fresh) {
        (Some(path), _, _) => Unfinished::ResumeFrom(path.clone()),
        (None, true, _) => Unfinished::Resume,
        (None, _, true) => Unfinished::SetAside,
        (None, false, false) => Unfinished::Refuse,
    };
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let farm = variable(&config.env_config.cpu_cluster_token_env_var);
    let keys = ServiceKeys {
        farm: farm.unwrap_or_else(|| farm::DEFAULT_KEY.to_owned()),
        policy: variable(&config.policy_config.api_key_env_var),
    };
    RunOptions { unfinished, keys }
}

/// Starts a farm inside this process when none is configured.
async fn start_farm(args: &RolloutArgs, run: &Run) -> anyhow::Result<Option<Farm>> {
    let (config, plan) = (run.config(), run.plan());
    if config.farm_url().is_some() {
        return Ok(None);
    }
    let size = plan.ranks.share(config.env_config.server_size).min(plan.tasks.len().max(1));
    let mut pool = PoolOptions::new(size, args.browser.launch()?);
    pool.instance = args.browser.options()?;
    pool.network =
        NetworkRules { allow_private: args.allow_private_network, allow_hosts: args.allow_host.clone() };
    own_farm::prepare_archives(config, &mut pool)?;
    let farm = Farm::start(FarmOptions::local(pool)).await?;
    tracing::info!("no farm is configured: starting {} inside this process", count_of(size, "instance"));
    Ok(Some(farm))
}

async fn collect(
    args: &RolloutArgs,
    (run, farm_url): (Run, &str),
    listener: Option<StreamListener>,
    judge: Judge,
    quiet: bool,
    stops: Stops,
) -> anyhow::Result<Collected> {
    let run = run.connect(farm_url).await?;
    let stream = listener.map(|listener| RunStream::start(listener, &run)).transpose()?;
    let tasks = &run.plan().tasks;
    let with_reference = tasks.iter().filter(|task| task.reference().is_some()).count();
    judge::log_choice(run.config(), Some((with_reference, tasks.len())));
    let state = Arc::clone(run.state());
    let stop = Stop::default();
    let stopping = tokio::spawn(stops.apply(stop.clone()));
    let observers = Observers::start(args, &run, quiet).await;
    let finished = run.collect(judge, stop.clone()).await;
    drop(observers);
    let undelivered = match stream {
        Some(stream) => stream.finish(&finished, &stop.soft).await,
        None => 0,
    };
    let collected = match finished {
        // The journal stays, so that a resumed run delivers the rest.
        Ok(finished) if undelivered > 0 => {
            eprintln!(
                "Everything is collected, but {undelivered} items of the stream are not acknowledged; to deliver them, \
                 continue with the same command and --resume."
            );
            Ok(Collected { unfinished: undelivered, ..finished.collected })
        }
        Ok(finished) => report_results(args, finished, &state, quiet, &stop.soft).await,
        Err(error) => Err(error.into()),
    };
    stopping.abort();
    collected
}

/// What shows a run while it goes on; dropping it stops everything.
struct Observers {
    _monitor: Option<web::monitor::Monitor>,
    _progress: Progress,
    watchdog: tokio::task::JoinHandle<()>,
}

impl Observers {
    async fn start(args: &RolloutArgs, run: &ReadyRun, quiet: bool) -> Self {
        let state = run.state();
        let stall_timeout = Duration::from_secs(args.stall_secs.max(1));
        let watchdog =
            run::watch(Arc::clone(state), stall_timeout, |diagnosis| tracing::warn!("{diagnosis}"));
        Self {
            _monitor: args.monitor.start(run.config(), run.plan(), state, run.context()).await,
            _progress: Progress::start(Arc::clone(state), quiet),
            watchdog: tokio::spawn(watchdog),
        }
    }
}

impl Drop for Observers {
    fn drop(&mut self) {
        self.watchdog.abort();
    }
}

/// Writes the iteration's file, prints the results and merges the files of all ranks.
async fn report_results(
    args: &RolloutArgs,
    run: FinishedRun,
    state: &RunState,
    quiet: bool,
    stop: &CancellationToken,
) -> anyhow::Result<Collected> {
    let collected = run.collected.clone();
    if collected.unfinished > 0 {
        eprintln!(
            "Stopped with {} trajectories left to collect. Finished ones are saved; continue with the same command and --resume.",
            collected.unfinished
        );
        return Ok(collected);
    }
    warn_about_failures(&run, state);
    let format = if quiet { ReportFormat::Json } else { args.format };
    report::finish(&run.save_path, run.id, format)?;
    let unfinished = match run.merge {
        Some(merge) if run.ranks.rank == 0 => {
            ranks::merge(merge, run.has_queue, run.merge_timeout, stop, format).await?
        }
        Some(merge) => {
            tracing::info!(
                "rank 0 merges the files of all ranks; to merge them yourself: {}",
                merge.command()
            );
            0
        }
        None => {
            plan::remove_plan_file(&run.save_path, run.id);
            0
        }
    };
    Ok(Collected { unfinished, ..collected })
}

fn warn_about_failures(run: &FinishedRun, state: &RunState) {
    if let Some((count, reason)) = &run.collected.lost {
        tracing::warn!(
            "{count} of {} episodes were lost to infrastructure; the most frequent reason: {reason}",
            run.collected.finished
        );
    }
    if let Some(count) = state.totals().outcomes.get(Outcome::ReplayMiss.as_str()) {
        tracing::warn!(
            "{count} of {} episodes ended because the archive lacks a request (outcome replay_miss); the viewer lists the \
             requests. Record again with env_config.record_network, or answer them with env_config.on_miss=404",
            state.done()
        );
    }
    // An episode without its start page runs on a blank page and fails. The results alone would blame the policy.
    if let Some((count, reason)) = state.failures(Stage::Navigate) {
        tracing::warn!(
            "start pages did not load {count} times; the latest reason: {reason}. The pages are listed in {}",
            run.save_path.navigation_errors().display()
        );
    }
}

/// What stops a run from outside.
struct Stops {
    signals: Signals,
    parent: Parent,
}

impl Stops {
    /// Stops the run softly on the first signal, and at once on the second or when the parent process has ended.
    async fn apply(mut self, stop: Stop) {
        let Self { signals, parent } = &mut self;
        let by_signals = async {
            signals.next().await;
            eprintln!(
                "Stopping: no new episodes start; running ones may finish. Press Ctrl-C again to stop at once."
            );
            stop.soft.cancel();
            signals.next().await;
        };
        tokio::select! {
            () = by_signals => {}
            () = parent.ended() => tracing::warn!("the process that started this run has ended"),
        }
        eprintln!("Stopping now. Finished trajectories are saved.");
        stop.soft.cancel();
        stop.hard.cancel();
    }
}
