//! The arguments of `webgym serve`, `master`, `node` and `instance`, and the options that follow from them.

use std::{net::IpAddr, path::PathBuf, sync::Arc, time::Duration};

use browser::FileBudget;
use clap::{Args, ValueEnum};
use farm::{
    DEFAULT_KEY, FarmOptions, Mode, NetworkRules, PoolOptions, RedisServer, RegistryTiming, ServerLimits,
};

use crate::{browser_args::BrowserArgs, format::parse_count};

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum ModeChoice {
    /// A master and a node in one process.
    Both,
    /// A node that registers itself.
    Worker,
    /// A master without browsers.
    Master,
}

#[derive(Args, Debug)]
pub(super) struct NetArgs {
    /// The address to listen on. Other addresses than loopback require your own --api-key.
    #[arg(long, default_value = "127.0.0.1")]
    host: IpAddr,
    /// The API key that clients must send as x-api-key.
    #[arg(long, env = "WEBGYM_API_KEY", hide_env_values = true, default_value = DEFAULT_KEY, hide_default_value = true)]
    api_key: String,
    /// The Redis that masters and nodes share: redis://HOST:PORT, or rediss:// for TLS, with USER:PASSWORD@ before the
    /// host if it requires a login.
    #[arg(long, value_name = "URL", env = "WEBGYM_REDIS", hide_env_values = true)]
    pub(super) redis: Option<String>,
    /// The CA certificate (PEM file) for Redis. Default: those that this machine trusts.
    #[arg(long, value_name = "FILE", env = "WEBGYM_REDIS_CA")]
    redis_ca: Option<PathBuf>,
    /// The Redis to whose database 0 this node mirrors its pool. Default: the one of --redis if it is on this machine.
    #[arg(long, value_name = "URL")]
    mirror_redis: Option<String>,
    /// Do not mirror the pool to Redis; for a second node on one machine.
    #[arg(long, conflicts_with = "mirror_redis")]
    no_mirror: bool,
    /// The address under which other machines reach this one.
    #[arg(long, value_name = "IP")]
    advertise_ip: Option<String>,
    /// This node's name in the registry, which must stay the same. Default: from host name, machine id and port.
    #[arg(long, value_name = "ID", env = "WEBGYM_NODE_ID")]
    node_id: Option<String>,
    /// Factor by which the registry's times are shortened; for tests.
    #[arg(long, default_value_t = 1.0, value_name = "FACTOR", hide = true)]
    registry_pace: f64,
    /// Close a connection that sends no request, sends it too slowly or does not read the response for this long.
    #[arg(long, value_name = "SECONDS", default_value_t = 100.0)]
    idle_timeout: f64,
    /// Time that running requests get to finish after a stop signal.
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    shutdown_secs: u64,
    /// Time that leases get to end after SIGTERM, while no new ones are granted. Default: 600 for a node (worker),
    /// otherwise 0. Ctrl-C does not wait for leases; a second signal ends the wait.
    #[arg(long, value_name = "SECONDS")]
    drain_secs: Option<u64>,
    /// Stop, without waiting for leases, when the process PID ends. It must be the parent of this one. For programs that
    /// start a farm: it ends with them even if they are killed.
    #[arg(long, value_name = "PID")]
    pub(super) exit_with_parent: Option<i32>,
}

#[derive(Args, Debug)]
pub(super) struct PoolArgs {
    /// The slot number of the first instance; the others follow.
    #[arg(long, default_value_t = 9000, value_name = "PORT")]
    instance_start_port: u16,
    /// The number of instances in one Chromium process. If it crashes, all of them are lost. [default: 8; 16 with 32
    /// instances or more]
    #[arg(long, value_name = "N")]
    instances_per_browser: Option<usize>,
    /// The number of instances to create at the same time.
    #[arg(long, default_value_t = 4, value_name = "N")]
    max_parallel: usize,
    /// Clean instances to keep ready in each browser, so that a released slot is available immediately.
    #[arg(long, default_value_t = 1, value_name = "N")]
    spares: usize,
    /// Do not replace browsers that crash.
    #[arg(long)]
    disable_recovery: bool,
    /// The maximum lifetime_mins of a lease: it ends after this time without a request.
    #[arg(long, default_value_t = 60, value_name = "MINUTES")]
    max_lifetime_mins: u32,
    /// Allow pages to reach loopback, private and link-local addresses.
    #[arg(long)]
    allow_private_network: bool,
    /// Allow pages to reach this host whatever its address: name, name:port or *.name. Can be repeated.
    #[arg(long, value_name = "HOST")]
    allow_host: Vec<String>,
    /// The directory in which leases record network traffic and from which they replay it. Without it they cannot.
    #[arg(long, value_name = "DIR")]
    archives: Option<PathBuf>,
    /// The most that one lease may record; its further responses are passed on and not recorded.
    #[arg(long, default_value_t = 1024, value_name = "MIB")]
    max_lease_recording: u64,
    /// Let new leases wait while less than this share of memory is available.
    #[arg(long, default_value_t = 4.0, value_name = "PERCENT")]
    min_memory_percent: f64,
    /// Let new leases wait while tasks wait for CPU more than this share of the time; 0 disables it.
    #[arg(long, default_value_t = 0.0, value_name = "PERCENT")]
    max_cpu_pressure: f64,
    /// Replace a browser that does not respond for this long.
    #[arg(long, default_value_t = 20.0, value_name = "SECONDS")]
    hang_limit: f64,
    /// Replace browsers older than this when they have no leases.
    #[arg(long, default_value_t = 120.0, value_name = "MINUTES")]
    max_browser_age: f64,
    /// Replace browsers that use more memory than this per instance when they have no leases.
    #[arg(long, default_value_t = 600, value_name = "MIB")]
    max_browser_rss: u64,
    /// End a page whose process uses more memory than this, and its lease; 0 disables it.
    #[arg(long, default_value_t = 2048, value_name = "MIB")]
    max_process_memory: u64,
    /// The most that the files of one lease (uploads and kept downloads) may take.
    #[arg(long, default_value_t = 64, value_name = "MIB")]
    max_lease_files: u64,
    /// The most that the files and recordings of all leases of this node may take.
    #[arg(long, default_value_t = 1024, value_name = "MIB")]
    max_node_files: u64,
    /// The length of a lease minute; for tests.
    #[arg(long, default_value_t = 60.0, value_name = "SECONDS", hide = true)]
    lease_minute: f64,
    #[command(flatten)]
    browser: BrowserArgs,
}

#[derive(Args, Debug)]
pub(crate) struct ServeArgs {
    /// The number of instances. Not allowed with --mode master.
    #[arg(value_name = "N", value_parser = parse_count)]
    pub(super) instances: Option<usize>,
    /// What to run in this process.
    #[arg(long, value_enum, default_value = "both")]
    pub(super) mode: ModeChoice,
    /// The port of the master; 0 for any free port.
    #[arg(long, default_value_t = 7000, value_name = "PORT")]
    pub(super) master_port: u16,
    /// The port of the node; 0 for any free port.
    #[arg(long, default_value_t = 8080, value_name = "PORT")]
    pub(super) node_port: u16,
    /// The URL of a node on another machine. Can be repeated.
    #[arg(long, value_name = "URL")]
    pub(super) node: Vec<String>,
    #[command(flatten)]
    pub(super) net: NetArgs,
    #[command(flatten)]
    pub(super) pool: PoolArgs,
    #[command(flatten)]
    pub(super) python: PythonArgs,
}

/// Options under the names that they have in the Python system.
#[derive(Args, Debug)]
#[command(next_help_heading = "Options under their names in the Python system")]
pub(super) struct PythonArgs {
    /// The host of the Redis that masters and nodes share. The same as --redis redis://HOST:PORT.
    #[arg(long, value_name = "HOST", conflicts_with = "redis")]
    master_redis_host: Option<String>,
    /// The port of that Redis.
    #[arg(long, value_name = "PORT", default_value_t = 6379, requires = "master_redis_host")]
    master_redis_port: u16,
    /// The port of a Redis on this machine to which the node mirrors its pool. The same as --mirror-redis
    /// redis://127.0.0.1:PORT.
    #[arg(long, value_name = "PORT", conflicts_with_all = ["mirror_redis", "no_mirror"])]
    redis_port: Option<u16>,
}

impl PythonArgs {
    /// Sets the options that these stand for.
    pub(super) fn apply(&self, net: &mut NetArgs) {
        if let Some(host) = &self.master_redis_host {
            net.redis = Some(format!("redis://{host}:{}", self.master_redis_port));
        }
        if let Some(port) = self.redis_port {
            net.mirror_redis = Some(format!("redis://127.0.0.1:{port}"));
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct MasterArgs {
    /// The port to listen on; 0 for any free port.
    #[arg(long, default_value_t = 7000, value_name = "PORT")]
    pub(super) port: u16,
    /// The URL of a node. Can be repeated.
    #[arg(long, value_name = "URL")]
    pub(super) node: Vec<String>,
    #[command(flatten)]
    pub(super) net: NetArgs,
}

#[derive(Args, Debug)]
pub(crate) struct NodeArgs {
    /// The number of instances.
    #[arg(value_name = "N", value_parser = parse_count)]
    pub(super) instances: usize,
    /// The port to listen on; 0 for any free port.
    #[arg(long, default_value_t = 8080, value_name = "PORT")]
    pub(super) port: u16,
    #[command(flatten)]
    pub(super) net: NetArgs,
    #[command(flatten)]
    pub(super) pool: PoolArgs,
}

#[derive(Args, Debug)]
pub(crate) struct InstanceArgs {
    /// The port to listen on; 0 for any free port.
    #[arg(long, default_value_t = 9000, value_name = "PORT")]
    pub(super) port: u16,
    #[command(flatten)]
    pub(super) net: NetArgs,
    #[command(flatten)]
    pub(super) pool: PoolArgs,
}

impl PoolArgs {
    pub(super) fn options(&self, instances: usize) -> anyhow::Result<PoolOptions> {
        let mut pool = PoolOptions::new(instances, self.browser.launch()?);
        pool.instance = self.browser.options()?;
        pool.first_port = self.instance_start_port;
        if let Some(instances) = self.instances_per_browser {
            pool.instances_per_browser = instances;
        }
        pool.max_parallel = self.max_parallel;
        pool.spares = self.spares;
        pool.recovery = !self.disable_recovery;
        pool.max_lifetime_mins = self.max_lifetime_mins;
        pool.network =
            NetworkRules { allow_private: self.allow_private_network, allow_hosts: self.allow_host.clone() };
        pool.archives.clone_from(&self.archives);
        pool.max_lease_recording = self.max_lease_recording << 20;
        pool.min_memory_percent = self.min_memory_percent;
        pool.max_cpu_pressure = self.max_cpu_pressure;
        pool.hang_limit = seconds("--hang-limit", self.hang_limit)?;
        pool.max_browser_age = seconds("--max-browser-age", self.max_browser_age * 60.0)?;
        pool.max_browser_rss = self.max_browser_rss << 20;
        pool.max_process_memory = self.max_process_memory << 20;
        pool.instance.files =
            Arc::new(FileBudget::new(self.max_lease_files << 20, self.max_node_files << 20));
        pool.lease_minute = seconds("--lease-minute", self.lease_minute)?;
        Ok(pool)
    }
}

fn seconds(flag: &str, given: f64) -> anyhow::Result<Duration> {
    Duration::try_from_secs_f64(given).map_err(|_| anyhow::anyhow!("{flag} must be a duration, 0 or more"))
}

impl NetArgs {
    pub(super) fn options(&self, mode: Mode, pool: PoolOptions) -> anyhow::Result<FarmOptions> {
        Ok(FarmOptions {
            mode,
            host: self.host,
            api_key: self.api_key.clone(),
            redis: self.redis.as_ref().map(|url| self.server(url)),
            mirror: self.mirror(),
            advertise: self.advertise_ip.clone(),
            node_id: self.node_id.clone(),
            limits: ServerLimits {
                idle_timeout: seconds("--idle-timeout", self.idle_timeout)?,
                shutdown: Duration::from_secs(self.shutdown_secs),
                registry: RegistryTiming::default().faster(self.registry_pace),
                ..ServerLimits::default()
            },
            ..FarmOptions::local(pool)
        })
    }

    fn server(&self, url: &str) -> RedisServer {
        RedisServer { address: url.to_owned(), ca: self.redis_ca.clone() }
    }

    /// Returns how long to wait for leases. A node waits because its leases belong to clients of a master elsewhere; a
    /// farm on one machine stops at once.
    pub(super) fn drain_time(&self, mode: Mode) -> Duration {
        const NODE_DRAIN_SECS: u64 = 600;
        let default = if mode == Mode::Worker { NODE_DRAIN_SECS } else { 0 };
        Duration::from_secs(self.drain_secs.unwrap_or(default))
    }

    /// Returns the Redis for the mirror. Nodes share the registry, but each mirrors its pool only on its own machine.
    fn mirror(&self) -> Option<RedisServer> {
        let is_local = |url: &&String| {
            ["//127.", "//localhost", "//[::1]", "@127.", "@localhost", "@[::1]"]
                .iter()
                .any(|host| url.contains(host))
        };
        let shared = || self.redis.as_ref().filter(is_local).filter(|_| !self.no_mirror);
        self.mirror_redis.as_ref().or_else(shared).map(|url| self.server(url))
    }
}
