//! `webgym env`: serves episodes to other people's loops over the OpenEnv protocol and MCP, on a farm elsewhere or in this
//! process. `webgym mcp`: serves one MCP client on standard input and output.

use std::{
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use anyhow::Context;
use clap::{Args, ValueEnum};
use client::{
    farm::FarmClient,
    http::{Deadline, KeepAlive},
};
use env::{EnvOptions, EnvServer, Environment, Recorder, ServerOptions, TaskCatalog};
use farm::{Farm, FarmOptions, NetworkRules, PoolOptions};
use proto::ImageFormat;
use rollout::{
    config::{Config, Resolved, append_hyperparameters, seconds},
    judge::Judge,
    run::{event::Announcer, preflight::farm_client, state::RunState},
    session_options::SessionSource,
};
use serde_json::json;
use store::{RunMetadata, SavePath};
use tokio::sync::oneshot;
use web::monitor::{Monitor, MonitoredRun, RunInfo};

use crate::{
    browser_args::BrowserArgs,
    config::ConfigArgs,
    format::{count_of, parse_count},
    judge,
    monitor::{RunMonitorArgs, judge_name},
    own_farm,
    parent::Parent,
    serve::print_event,
    signals::{Signals, StopSignal},
};

/// How long the farm has to answer before the server starts.
const FARM_TIMEOUT: Duration = Duration::from_secs(30);
/// The split of a task file without a name.
const DEFAULT_SPLIT: &str = "train";
const DEFAULT_INSTANCES: usize = 4;

#[derive(Clone, Copy, Debug, ValueEnum)]
enum JudgeChoice {
    /// Compare with the reference answers.
    Reference,
    /// Ask the judge model of the configuration (openai_config).
    Model,
    /// Run the checks of the tasks (docs/tasks.md). An episode ends when they hold.
    Program,
    /// Leave episodes unjudged: their reward is null.
    None,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ScreenshotChoice {
    Png,
    Jpeg,
    Webp,
    /// Send no screenshots.
    None,
}

/// Where the episodes get their browsers, tasks and rewards from.
#[derive(Args)]
pub(crate) struct EpisodeArgs {
    /// A task file (JSON lines), with the name of its split if it is not train: test=FILE. Can be repeated.
    #[arg(long, value_name = "[SPLIT=]FILE")]
    tasks: Vec<String>,
    /// The farm to use. Its key is read from the variable that the configuration names. Default: a farm in this process.
    #[arg(long, value_name = "URL")]
    farm: Option<String>,
    /// The number of browser instances of the farm in this process. Default: 4, and 1 for webgym mcp.
    #[arg(long, value_name = "N", value_parser = parse_count, conflicts_with = "farm")]
    instances: Option<usize>,
    /// What scores an episode.
    #[arg(long, value_enum, default_value = "reference")]
    judge: JudgeChoice,
    /// The format of screenshots, unless a reset chooses one.
    #[arg(long, value_enum, default_value = "png")]
    screenshot: ScreenshotChoice,
    /// Episodes at the same time. Default: the number of instances.
    #[arg(long, value_name = "N", value_parser = parse_count)]
    max_sessions: Option<usize>,
    /// How long a reset waits for a free session.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    queue_secs: u64,
    /// End a session whose client sends nothing for this long.
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    idle_secs: u64,
    /// Allow pages of the farm in this process to reach loopback and private addresses.
    #[arg(long)]
    allow_private_network: bool,
    /// Allow pages of the farm in this process to reach this host, whatever its address. Can be repeated.
    #[arg(long, value_name = "HOST")]
    allow_host: Vec<String>,
    /// Save the episodes here, like those of webgym rollout.
    #[arg(long, value_name = "DIR")]
    save_path: Option<PathBuf>,
    #[command(flatten)]
    browser: BrowserArgs,
    #[command(flatten)]
    config: ConfigArgs,
}

#[derive(Args)]
pub(crate) struct EnvArgs {
    #[command(flatten)]
    episodes: EpisodeArgs,
    /// The address to listen on. Other addresses than loopback require --api-key.
    #[arg(long, default_value = "127.0.0.1")]
    host: IpAddr,
    /// The port to listen on; 0 for any free port.
    #[arg(long, default_value_t = 8000)]
    port: u16,
    /// The API key that clients must send as x-api-key or as Authorization: Bearer KEY.
    #[arg(long, env = "WEBGYM_API_KEY", hide_env_values = true)]
    api_key: Option<String>,
    /// Allow web pages of this origin to use the server, such as `https://app.example`. Can be repeated.
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,
    /// Connections at the same time.
    #[arg(long, value_name = "N", value_parser = parse_count, default_value = "10240")]
    max_connections: usize,
    /// The size of the largest message that is accepted.
    #[arg(long, value_name = "KIB", default_value_t = 1024)]
    max_message_kib: usize,
    /// Time that episodes get to end after SIGTERM, while no new ones start.
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    drain_secs: u64,
    /// Stop when the process PID ends. It must be the parent of this one.
    #[arg(long, value_name = "PID")]
    exit_with_parent: Option<i32>,
    #[command(flatten)]
    monitor: RunMonitorArgs,
}

pub(crate) async fn run(args: EnvArgs) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::listen()?;
    let parent = Parent::watch(args.exit_with_parent)?;
    let run = Arc::new(RunState::open_ended());
    let announcer = Announcer::new(vec![Arc::clone(&run) as _]);
    let prepared = args.episodes.prepare(DEFAULT_INSTANCES, &[], announcer).await?;
    let monitor = args.start_monitor(&prepared, &run).await;
    let options = ServerOptions {
        address: SocketAddr::new(args.host, args.port),
        api_key: args.api_key.filter(|key| !key.is_empty()),
        origins: args.allow_origin,
        max_connections: args.max_connections,
        max_message_bytes: args.max_message_kib << 10,
    };
    let server = EnvServer::start(prepared.environment, options)?;
    let (url, port) = (server.url(), server.address().port());
    print_event(&json!({"event": "listening", "tier": "env", "url": url, "port": port}));
    print_event(&json!({"event": "ready", "tasks": prepared.tasks, "max_sessions": prepared.max_sessions}));
    tracing::info!(
        "ready: {} and {} at {url}",
        count_of(prepared.tasks, "task"),
        count_of(prepared.max_sessions, "session")
    );
    let signal = tokio::select! {
        signal = signals.next_kind() => signal,
        () = parent.ended() => StopSignal::Interrupt,
    };
    if signal == StopSignal::Terminate && args.drain_secs > 0 {
        tracing::info!(
            "draining for at most {} s; send the signal again to stop without waiting",
            args.drain_secs
        );
        tokio::select! {
            _ = server.drain(Duration::from_secs(args.drain_secs)) => {}
            () = signals.next() => {}
        }
    }
    let stop = async {
        let finished = server.stop().await;
        drop(monitor);
        prepared.farm.stop().await;
        for id in finished? {
            print_event(
                &json!({"event": "finished", "split": id.split.to_string(), "iteration": id.iteration}),
            );
        }
        anyhow::Ok(())
    };
    tokio::select! {
        stopped = stop => stopped.map(|()| ExitCode::SUCCESS),
        () = signals.next() => Ok(ExitCode::from(130)),
    }
}

impl EnvArgs {
    /// Starts the monitor if episodes are saved: it shows their screenshots.
    async fn start_monitor(&self, prepared: &Prepared, run: &Arc<RunState>) -> Option<Monitor> {
        let folder = self.episodes.save_path.as_ref()?;
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let splits: Vec<&str> = self.episodes.tasks.iter().map(|given| split_and_file(given).0).collect();
        let info = RunInfo {
            name,
            split: splits.join(", "),
            iteration: None,
            model: "webgym env".to_owned(),
            judge: prepared.judge_name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let monitored = || MonitoredRun {
            run: Arc::clone(run),
            info: info.clone(),
            policy: None,
            judge_slots: prepared.max_sessions,
            farm: Some(prepared.client.clone()),
            save_path: None,
        };
        self.monitor.serve(prepared.monitor_port?, monitored).await
    }
}

#[derive(Args)]
pub(crate) struct McpArgs {
    #[command(flatten)]
    episodes: EpisodeArgs,
    /// The task of the session. Default: the first one.
    #[arg(long, value_name = "ID", requires = "tasks")]
    task_id: Option<String>,
}

/// Serves one MCP client on standard input and output. The log goes to standard error.
pub(crate) async fn run_mcp(args: McpArgs) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::listen()?;
    let prepared = args.episodes.prepare(1, &["+env_config.session.tabs=many"], Announcer::default());
    let prepared = prepared.await?;
    let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
    let (stop, stopped) = oneshot::channel::<()>();
    let mut stop = Some(stop);
    let stopped = async { drop(stopped.await) };
    let serve = env::serve_stdio(&prepared.environment, args.task_id, input, output, stopped);
    tokio::pin!(serve);
    let served = loop {
        tokio::select! {
            served = &mut serve => break served,
            () = signals.next() => match stop.take() {
                // Dropping it stops the server, which then releases its browser.
                Some(stop) => drop(stop),
                None => return Ok(ExitCode::from(130)),
            },
        }
    };
    prepared.farm.stop().await;
    served.map(|()| ExitCode::SUCCESS).map_err(Into::into)
}

/// An environment that is connected to its farm.
struct Prepared {
    environment: Environment,
    farm: OwnFarm,
    client: FarmClient,
    tasks: usize,
    max_sessions: usize,
    judge_name: String,
    monitor_port: Option<u16>,
}

/// What this process owns besides the environment.
struct OwnFarm {
    farm: Option<Farm>,
    /// Screenshots for the judge, removed at the end.
    screenshot_folder: Option<PathBuf>,
}

impl OwnFarm {
    async fn stop(self) {
        if let Some(farm) = self.farm {
            farm.stop().await;
        }
        if let Some(folder) = &self.screenshot_folder {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

impl EpisodeArgs {
    /// Reads tasks and configuration, and starts or connects to the farm.
    async fn prepare(
        &self,
        instances: usize,
        defaults: &[&str],
        announcer: Announcer,
    ) -> anyhow::Result<Prepared> {
        let resolved = self.load_config(defaults)?;
        let recorder = self.recorder(&resolved)?;
        let Resolved { mut config, .. } = resolved;
        let judge = judge::choose(&mut config)?;
        judge::log_choice(&config, None);
        let tasks = self.read_tasks(&config)?;
        let farm = self.start_farm(&config, self.instances.unwrap_or(instances)).await?;
        let client = self.connect(&config, farm.as_ref())?;
        let max_sessions = self.session_limit(&client).await?;
        let screenshot_folder = screenshot_folder(&judge)?;
        let task_count = tasks.len();
        let environment = Environment::new(EnvOptions {
            farm: client.clone(),
            tasks,
            judge,
            sessions: SessionSource::for_tasks(&config, &[])?,
            mode: config.context_config.interaction_mode,
            screenshot: match self.screenshot {
                ScreenshotChoice::Png => Some(ImageFormat::Png),
                ScreenshotChoice::Jpeg => Some(ImageFormat::Jpeg),
                ScreenshotChoice::Webp => Some(ImageFormat::Webp),
                ScreenshotChoice::None => None,
            },
            max_sessions,
            queue_timeout: Duration::from_secs(self.queue_secs),
            idle_timeout: Duration::from_secs(self.idle_secs.max(1)),
            operation_timeout: seconds(config.env_config.operation_timeout) * 2,
            lifetime_mins: config.env_config.instance_lifetime_max,
            screenshot_folder: screenshot_folder.clone(),
            recorder,
            announcer,
        });
        Ok(Prepared {
            environment,
            farm: OwnFarm { farm, screenshot_folder },
            client,
            tasks: task_count,
            max_sessions,
            judge_name: judge_name(&config),
            monitor_port: config.env_config.monitor_port,
        })
    }

    fn load_config(&self, defaults: &[&str]) -> anyhow::Result<Resolved> {
        let judge = match self.judge {
            JudgeChoice::Reference => "judge=reference",
            JudgeChoice::Model => "judge=openai",
            JudgeChoice::Program => "judge=program",
            JudgeChoice::None => "judge=none",
        };
        // Elements are chosen by their numbers, as BrowserGym's clients do.
        let ours = [judge, "context_config.interaction_mode=set_of_marks"];
        // Archives are named differently for a farm of its own.
        let host = self.farm.as_deref().map(|url| format!("env_config.host_ip='{}'", host_of(url)));
        let ours = ours.into_iter().chain(defaults.iter().copied()).map(str::to_owned).chain(host);
        let overrides = ours.chain(self.config.overrides.iter().cloned()).collect();
        ConfigArgs { overrides, ..self.config.clone() }.load()
    }

    /// Prepares to save the episodes, and records the configuration.
    fn recorder(&self, resolved: &Resolved) -> anyhow::Result<Option<Recorder>> {
        let Some(folder) = &self.save_path else { return Ok(None) };
        let root = std::path::absolute(folder)?;
        std::fs::create_dir_all(&root).with_context(|| format!("cannot create {}", root.display()))?;
        let now = jiff::Timestamp::now();
        append_hyperparameters(resolved, &root, now, &[("command", "env".into())])?;
        let metadata = RunMetadata {
            dataset_file: Some(self.tasks.join(" ")),
            timestamp: Some(now.to_string()),
            seed: resolved.config.seed,
            ..RunMetadata::default()
        };
        Ok(Some(Recorder::open(SavePath::new(root), metadata)?))
    }

    fn read_tasks(&self, config: &Config) -> anyhow::Result<TaskCatalog> {
        let mut catalog = TaskCatalog::default();
        for given in &self.tasks {
            let (split, file) = split_and_file(given);
            let max_steps = match split {
                "test" => config.env_config.test_difficulty_max_steps,
                _ => config.env_config.train_difficulty_max_steps,
            };
            catalog.add(split, Path::new(file), max_steps)?;
        }
        Ok(catalog)
    }

    async fn start_farm(&self, config: &Config, instances: usize) -> anyhow::Result<Option<Farm>> {
        if self.farm.is_some() {
            return Ok(None);
        }
        let mut pool = PoolOptions::new(instances, self.browser.launch()?);
        pool.instance = self.browser.options()?;
        pool.network =
            NetworkRules { allow_private: self.allow_private_network, allow_hosts: self.allow_host.clone() };
        own_farm::prepare_archives(config, &mut pool)?;
        let farm = Farm::start(FarmOptions::local(pool)).await?;
        tracing::info!("starting {} inside this process", count_of(instances, "instance"));
        farm.ready(|_| {}).await;
        Ok(Some(farm))
    }

    fn connect(&self, config: &Config, farm: Option<&Farm>) -> anyhow::Result<FarmClient> {
        let (url, key) = match (farm, &self.farm) {
            (Some(farm), _) => (farm.url("master").unwrap_or_default().to_owned(), None),
            (None, Some(url)) => {
                (url.clone(), std::env::var(&config.env_config.cpu_cluster_token_env_var).ok())
            }
            (None, None) => anyhow::bail!("no farm to use"),
        };
        let key = key.filter(|key| !key.is_empty()).unwrap_or_else(|| farm::DEFAULT_KEY.to_owned());
        // Sessions wait for their models most of the time, so a connection per request is cheaper than one per session.
        Ok(farm_client(config, &url, &key, KeepAlive::Never)?)
    }

    /// Returns how many episodes may run at the same time, after checking that the farm answers.
    async fn session_limit(&self, client: &FarmClient) -> anyhow::Result<usize> {
        let info = client.info(Deadline::after(FARM_TIMEOUT)).await;
        let info = info.with_context(|| format!("the farm at {} cannot be used", client.url()))?;
        let capacity: u64 = info.nodes.iter().map(|node| node.capacity).sum();
        let limit = self.max_sessions.unwrap_or(usize::try_from(capacity).unwrap_or(usize::MAX));
        anyhow::ensure!(limit > 0, "the farm has no instances; start a node, or set --max-sessions");
        Ok(limit)
    }
}

/// Splits `test=FILE`. A name with a path separator is part of the file name.
fn split_and_file(given: &str) -> (&str, &str) {
    match given.split_once('=') {
        Some((split, file)) if !split.is_empty() && !split.contains(['/', '.']) => (split, file),
        _ => (DEFAULT_SPLIT, given),
    }
}

/// Returns the host of a URL, without its port.
fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or(rest);
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    }
}

/// Returns the folder for the screenshots that a judge model looks at.
fn screenshot_folder(judge: &Judge) -> anyhow::Result<Option<PathBuf>> {
    if !matches!(judge, Judge::Model(_)) {
        return Ok(None);
    }
    let folder = std::env::temp_dir().join(format!("webgym-env-{}", std::process::id()));
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    Ok(Some(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_is_part_of_the_url() {
        for (url, host) in [
            ("http://a.test:7000/x", "a.test"),
            ("https://[::1]:7000", "[::1]"),
            ("http://[::1]", "[::1]"),
            ("b", "b"),
        ] {
            assert_eq!(host_of(url), host);
        }
    }

    #[test]
    fn task_file_may_name_its_split() {
        assert_eq!(split_and_file("tasks.jsonl"), ("train", "tasks.jsonl"));
        assert_eq!(split_and_file("test=dir/tasks.jsonl"), ("test", "dir/tasks.jsonl"));
        assert_eq!(split_and_file("dir/a=b.jsonl"), ("train", "dir/a=b.jsonl"));
    }
}
