//! `webgym serve`, `master`, `node` and `instance`: start a farm, say where it listens, run until told to stop.

use std::{io::IsTerminal, io::Write, net::IpAddr, path::PathBuf, process::ExitCode, time::Duration};

use clap::{Args, ValueEnum};
use farm::{
    DEFAULT_KEY, Farm, FarmOptions, Limits, Mode, NetworkRules, PoolCounts, PoolOptions, RedisServer,
    RegistryTiming,
};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use crate::{
    browser_args::BrowserArgs,
    signals::{Asked, Signals},
    words::{counted, how_many},
};

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ModeChoice {
    /// A master and a node here.
    Both,
    /// A node here that registers itself.
    Worker,
    /// A master without browsers.
    Master,
}

#[derive(Args, Debug)]
struct NetArgs {
    /// The address to listen on. Beyond loopback a key of your own is needed.
    #[arg(long, default_value = "127.0.0.1")]
    host: IpAddr,
    /// The key clients must send as x-api-key.
    #[arg(long, env = "WEBGYM_API_KEY", hide_env_values = true, default_value = DEFAULT_KEY, hide_default_value = true)]
    api_key: String,
    /// Redis to meet other machines in: redis://HOST:PORT, or rediss:// for TLS, with USER:PASSWORD@ before the host
    /// where it wants one.
    #[arg(long, value_name = "URL", env = "WEBGYM_REDIS", hide_env_values = true)]
    redis: Option<String>,
    /// The authority (PEM file) that signed the certificate of Redis. Left out: those this machine trusts.
    #[arg(long, value_name = "FILE", env = "WEBGYM_REDIS_CA")]
    redis_ca: Option<PathBuf>,
    /// The Redis whose database 0 shows what this node's pool holds. Left out: the one of --redis if it is on this
    /// machine.
    #[arg(long, value_name = "URL")]
    mirror_redis: Option<String>,
    /// Show the pool in no Redis: for a second node on one machine.
    #[arg(long, conflicts_with = "mirror_redis")]
    no_mirror: bool,
    /// The address other machines reach this one under.
    #[arg(long, value_name = "IP")]
    advertise_ip: Option<String>,
    /// This node's name in the registry, the same at every start. Left out: made of host name, machine and port.
    #[arg(long, value_name = "ID", env = "WEBGYM_NODE_ID")]
    node_id: Option<String>,
    /// How much faster the registry's times pass: for tests.
    #[arg(long, default_value_t = 1.0, value_name = "FACTOR", hide = true)]
    registry_pace: f64,
    /// Seconds until a connection is closed that sends no request, sends one too slowly, or does not read its answer.
    #[arg(long, value_name = "SECONDS", default_value_t = 100.0)]
    idle_timeout: f64,
    /// Seconds that running requests get to finish when told to stop.
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    shutdown_secs: u64,
    /// Seconds that a node's leases get to end after SIGTERM, while no new ones are given. Left out: 600 for a node
    /// (worker), else 0. Ctrl-C never waits for leases; a second signal stops the waiting.
    #[arg(long, value_name = "SECONDS")]
    drain_secs: Option<u64>,
}

#[derive(Args, Debug)]
struct PoolArgs {
    /// The slot number of the first instance; the others count up from it.
    #[arg(long, default_value_t = 9000, value_name = "PORT")]
    instance_start_port: u16,
    /// How many instances share a Chromium process, and its fate.
    #[arg(long, default_value_t = 8, value_name = "N")]
    instances_per_browser: usize,
    /// How many instances are made at the same time.
    #[arg(long, default_value_t = 4, value_name = "N")]
    max_parallel: usize,
    /// Clean instances kept ready in each browser so that a released slot is usable at once.
    #[arg(long, default_value_t = 1, value_name = "N")]
    spares: usize,
    /// Do not replace browsers that die.
    #[arg(long)]
    disable_recovery: bool,
    /// The longest lifetime a lease may ask for, in minutes without a request.
    #[arg(long, default_value_t = 60, value_name = "MINUTES")]
    max_lifetime_mins: u32,
    /// Let pages reach loopback, private and link-local addresses.
    #[arg(long)]
    allow_private_network: bool,
    /// Let pages reach this host whatever its address: name, name:port or *.name. May be repeated.
    #[arg(long, value_name = "HOST")]
    allow_host: Vec<String>,
    /// New leases wait while less than this share of memory is available.
    #[arg(long, default_value_t = 4.0, value_name = "PERCENT")]
    min_memory_percent: f64,
    /// New leases wait while tasks stall for CPU more than this share of the time; 0 never.
    #[arg(long, default_value_t = 0.0, value_name = "PERCENT")]
    max_cpu_pressure: f64,
    /// A browser that does not answer for this long is taken for hung and replaced.
    #[arg(long, default_value_t = 20.0, value_name = "SECONDS")]
    hang_limit: f64,
    /// Browsers older than this are replaced when nobody uses them.
    #[arg(long, default_value_t = 120.0, value_name = "MINUTES")]
    max_browser_age: f64,
    /// Browsers that hold more memory than this for each of their instances are replaced when nobody uses them.
    #[arg(long, default_value_t = 600, value_name = "MIB")]
    max_browser_rss: u64,
    /// A page whose process holds more memory than this is ended, and its lease with it; 0 never.
    #[arg(long, default_value_t = 2048, value_name = "MIB")]
    max_process_memory: u64,
    /// How long a minute of a lease lasts: for tests.
    #[arg(long, default_value_t = 60.0, value_name = "SECONDS", hide = true)]
    lease_minute: f64,
    #[command(flatten)]
    browser: BrowserArgs,
}

#[derive(Args, Debug)]
pub(crate) struct ServeArgs {
    /// How many instances. Left out with --mode master.
    #[arg(value_name = "N", value_parser = how_many)]
    instances: Option<usize>,
    #[arg(long, value_enum, default_value = "both")]
    mode: ModeChoice,
    #[arg(long, default_value_t = 7000, value_name = "PORT")]
    master_port: u16,
    #[arg(long, default_value_t = 8080, value_name = "PORT")]
    node_port: u16,
    /// A node elsewhere, by address. May be repeated.
    #[arg(long, value_name = "URL")]
    node: Vec<String>,
    #[command(flatten)]
    net: NetArgs,
    #[command(flatten)]
    pool: PoolArgs,
}

#[derive(Args, Debug)]
pub(crate) struct MasterArgs {
    #[arg(long, default_value_t = 7000, value_name = "PORT")]
    port: u16,
    /// A node, by address. May be repeated.
    #[arg(long, value_name = "URL")]
    node: Vec<String>,
    #[command(flatten)]
    net: NetArgs,
}

#[derive(Args, Debug)]
pub(crate) struct NodeArgs {
    /// How many instances.
    #[arg(value_name = "N", value_parser = how_many)]
    instances: usize,
    #[arg(long, default_value_t = 8080, value_name = "PORT")]
    port: u16,
    #[command(flatten)]
    net: NetArgs,
    #[command(flatten)]
    pool: PoolArgs,
}

#[derive(Args, Debug)]
pub(crate) struct InstanceArgs {
    #[arg(long, default_value_t = 9000, value_name = "PORT")]
    port: u16,
    #[command(flatten)]
    net: NetArgs,
    #[command(flatten)]
    pool: PoolArgs,
}

impl PoolArgs {
    fn options(&self, instances: usize) -> anyhow::Result<PoolOptions> {
        let mut pool = PoolOptions::new(instances, self.browser.launch()?);
        pool.instance = self.browser.options()?;
        pool.first_port = self.instance_start_port;
        pool.instances_per_browser = self.instances_per_browser;
        pool.max_parallel = self.max_parallel;
        pool.spares = self.spares;
        pool.recovery = !self.disable_recovery;
        pool.max_lifetime_mins = self.max_lifetime_mins;
        pool.network =
            NetworkRules { allow_private: self.allow_private_network, allow_hosts: self.allow_host.clone() };
        pool.min_memory_percent = self.min_memory_percent;
        pool.max_cpu_pressure = self.max_cpu_pressure;
        pool.hang_limit = seconds("--hang-limit", self.hang_limit)?;
        pool.max_browser_age = seconds("--max-browser-age", self.max_browser_age * 60.0)?;
        pool.max_browser_rss = self.max_browser_rss << 20;
        pool.max_process_memory = self.max_process_memory << 20;
        pool.lease_minute = seconds("--lease-minute", self.lease_minute)?;
        Ok(pool)
    }
}

fn seconds(flag: &str, given: f64) -> anyhow::Result<Duration> {
    Duration::try_from_secs_f64(given)
        .map_err(|_| anyhow::anyhow!("{flag} must be a span of time, 0 or more"))
}

impl NetArgs {
    fn options(&self, mode: Mode, pool: PoolOptions) -> anyhow::Result<FarmOptions> {
        Ok(FarmOptions {
            mode,
            host: self.host,
            api_key: self.api_key.clone(),
            redis: self.redis.as_ref().map(|url| self.server(url)),
            mirror: self.mirror(),
            advertise: self.advertise_ip.clone(),
            node_id: self.node_id.clone(),
            limits: Limits {
                idle_timeout: seconds("--idle-timeout", self.idle_timeout)?,
                shutdown: Duration::from_secs(self.shutdown_secs),
                registry: RegistryTiming::default().faster(self.registry_pace),
                ..Limits::default()
            },
            ..FarmOptions::local(pool)
        })
    }
}

impl NetArgs {
    fn server(&self, url: &str) -> RedisServer {
        RedisServer { address: url.to_owned(), ca: self.redis_ca.clone() }
    }

    /// A node of many is worth waiting for: its leases belong to others. A farm on one machine stops when told.
    fn drain(&self, mode: Mode) -> Duration {
        const NODE: u64 = 600;
        let usual = if mode == Mode::Worker { NODE } else { 0 };
        Duration::from_secs(self.drain_secs.unwrap_or(usual))
    }

    /// Nodes on several machines share the registry, but each shows its pool on its own machine only.
    fn mirror(&self) -> Option<RedisServer> {
        let here = |url: &&String| {
            ["//127.", "//localhost", "//[::1]", "@127.", "@localhost", "@[::1]"]
                .iter()
                .any(|host| url.contains(host))
        };
        let shared = || self.redis.as_ref().filter(here).filter(|_| !self.no_mirror);
        self.mirror_redis.as_ref().or_else(shared).map(|url| self.server(url))
    }
}

/// A pool nobody will start, for a master without browsers.
fn no_pool() -> PoolOptions {
    let nothing = browser::Executable { path: "none".into(), kind: browser::BrowserKind::Full };
    PoolOptions::new(0, browser::Launch::new(nothing))
}

pub(crate) async fn serve(args: ServeArgs, quiet: bool) -> anyhow::Result<ExitCode> {
    let (mode, pool) = match (args.mode, args.instances) {
        (ModeChoice::Master, None) => (Mode::Master, no_pool()),
        (ModeChoice::Master, Some(_)) => {
            anyhow::bail!("a master has no instances of its own; leave out N with --mode master")
        }
        (_, None) => anyhow::bail!("say how many instances to start, for example: webgym serve 8"),
        (ModeChoice::Both, Some(count)) => (Mode::Both, args.pool.options(count)?),
        (ModeChoice::Worker, Some(count)) => (Mode::Worker, args.pool.options(count)?),
    };
    if mode == Mode::Worker && args.net.redis.is_none() {
        tracing::warn!("without --redis no master finds this node by itself; name it there with --node URL");
    }
    let mut options = args.net.options(mode, pool)?;
    (options.master_port, options.node_port, options.nodes) = (args.master_port, args.node_port, args.node);
    let drain = args.net.drain(mode);
    run(Farm::start(options).await?, drain, quiet).await
}

pub(crate) async fn master(args: MasterArgs, quiet: bool) -> anyhow::Result<ExitCode> {
    let mut options = args.net.options(Mode::Master, no_pool())?;
    (options.master_port, options.nodes) = (args.port, args.node);
    run(Farm::start(options).await?, Duration::ZERO, quiet).await
}

pub(crate) async fn node(args: NodeArgs, quiet: bool) -> anyhow::Result<ExitCode> {
    let mut options = args.net.options(Mode::Worker, args.pool.options(args.instances)?)?;
    options.node_port = args.port;
    let drain = args.net.drain(Mode::Worker);
    run(Farm::start(options).await?, drain, quiet).await
}

pub(crate) async fn instance(args: InstanceArgs, quiet: bool) -> anyhow::Result<ExitCode> {
    let options = args.net.options(Mode::Worker, args.pool.options(1)?)?;
    let drain = args.net.drain(Mode::Both);
    run(Farm::start_instance(options, args.port).await?, drain, quiet).await
}

/// One line of JSON on standard output, for the program that started us. A person at a terminal is told in sentences.
fn tell(event: &serde_json::Value) {
    let mut out = std::io::stdout().lock();
    if out.is_terminal() {
        return;
    }
    let _ = writeln!(out, "{event}").and_then(|()| out.flush());
}

async fn run(farm: Farm, drain: Duration, quiet: bool) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::listen()?;
    for bound in farm.bound() {
        tell(
            &json!({"event": "listening", "tier": bound.tier, "url": bound.url, "port": bound.address.port()}),
        );
    }
    tokio::select! {
        () = get_ready(&farm, quiet) => {}
        () = signals.next() => return stop(farm, signals).await,
    }
    if signals.which().await == Asked::Terminate && !drain.is_zero() {
        let_leases_end(&farm, drain, &mut signals).await;
    }
    stop(farm, signals).await
}

async fn get_ready(farm: &Farm, quiet: bool) {
    let started = std::time::Instant::now();
    let capacity = farm.pool().map_or(0, |pool| pool.counts().capacity);
    let shown = !quiet && capacity > 0 && std::io::stderr().is_terminal();
    let bar = if shown { ProgressBar::new(capacity as u64) } else { ProgressBar::hidden() };
    let style = ProgressStyle::with_template("{msg} {bar:32} {pos}/{len} instances");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_message("starting");
    let mut last = PoolCounts::default();
    farm.ready(|counts| {
        bar.set_length(counts.capacity as u64);
        bar.set_position((counts.available + counts.in_use) as u64);
        last = *counts;
    })
    .await;
    bar.finish_and_clear();
    let seconds = started.elapsed().as_secs_f64();
    tell(
        &json!({"event": "ready", "instances": last.capacity, "seconds": (seconds * 1000.0).round() / 1000.0}),
    );
    let front = farm.bound().last().map(|bound| bound.url.clone()).unwrap_or_default();
    let what = match last.capacity {
        0 => "a master".to_owned(),
        capacity => counted(capacity, "instance"),
    };
    tracing::info!("ready: {what} in {seconds:.1} s at {front} (API at {front}/docs)");
}

/// Waits for the leases to end, at most so long, and not beyond a second signal.
async fn let_leases_end(farm: &Farm, limit: Duration, signals: &mut Signals) {
    let held = farm.pool().map_or(0, |pool| pool.counts().in_use);
    tell(&json!({"event": "draining", "in_use": held}));
    tracing::info!(
        "draining {} for at most {} s; once more to stop without them",
        counted(held, "lease"),
        limit.as_secs()
    );
    tokio::select! {
        all = farm.drain(limit) => {
            if !all {
                tracing::warn!("some leases did not end in time and are cut off");
            }
        }
        () = signals.next() => {}
    }
}

async fn stop(farm: Farm, mut signals: Signals) -> anyhow::Result<ExitCode> {
    tracing::info!("stopping; once more to stop at once");
    tokio::select! {
        clean = farm.stop() => {
            if !clean {
                tracing::warn!("something did not end in time and was cut off");
            }
            Ok(ExitCode::SUCCESS)
        }
        // The guards of the browsers clean up after us.
        () = signals.next() => Ok(ExitCode::from(130)),
    }
}
