//! The configuration of a farm. Plain data that the command line fills in.

use std::{net::IpAddr, path::PathBuf, time::Duration};

use browser::{Launch, Options};

use crate::{
    identity::Identity,
    registry::{RedisServer, RegistryTiming},
};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// A master and a node in this process.
    #[default]
    Both,
    /// A node that registers itself.
    Worker,
    /// A master without browsers.
    Master,
}

#[derive(Clone, Debug)]
pub struct FarmOptions {
    pub mode: Mode,
    pub host: IpAddr,
    pub master_port: u16,
    pub node_port: u16,
    pub api_key: String,
    /// The Redis server that holds the registry.
    pub redis: Option<RedisServer>,
    /// The Redis server in whose database 0 this node reports its pool. Only one node per server can do that.
    pub mirror: Option<RedisServer>,
    /// Configured nodes, which are never removed.
    pub nodes: Vec<String>,
    /// The address under which other machines reach this node.
    pub advertise: Option<String>,
    /// The node's id in the registry. Default: derived from host name, machine id and port.
    pub node_id: Option<String>,
    pub pool: PoolOptions,
    pub limits: ServerLimits,
}

#[derive(Clone, Debug)]
pub struct PoolOptions {
    pub identity: Identity,
    pub instances: usize,
    pub first_port: u16,
    pub instances_per_browser: usize,
    /// How many browsers or instances are started at the same time.
    pub max_parallel: usize,
    /// Clean instances kept ready in each browser, so that a released slot can be leased again at once.
    pub spares: usize,
    /// Whether browsers that die are replaced. If not (for debugging), their slots stay dead.
    pub recovery: bool,
    pub launch: Launch,
    pub instance: Options,
    pub network: NetworkRules,
    /// Where leases record and replay network traffic; `None` = they cannot.
    pub archives: Option<PathBuf>,
    /// How much one lease may record, in bytes of bodies.
    pub max_lease_recording: u64,
    pub max_lifetime_mins: u32,
    /// The length of a minute of a lease's lifetime; only tests make it shorter.
    pub lease_minute: Duration,
    /// A browser that does not answer a ping for this long is replaced.
    pub hang_limit: Duration,
    /// A browser older than this is replaced when it has no leases.
    pub max_browser_age: Duration,
    /// A browser with more resident memory than this, in bytes per slot, is replaced when it has no leases.
    pub max_browser_rss: u64,
    /// A browser process with more resident memory than this, in bytes, is killed; killing a renderer costs only its own
    /// lease. 0 = no limit.
    pub max_process_memory: u64,
    /// New leases wait while less than this percentage of memory is available.
    pub min_memory_percent: f64,
    /// New leases wait while tasks stall for CPU more than this percentage of the time (PSI). 0 = never.
    pub max_cpu_pressure: f64,
}

/// Which addresses pages may connect to.
#[derive(Clone, Debug, Default)]
pub struct NetworkRules {
    pub allow_private: bool,
    /// Hosts (`name`, `name:port` or `*.name`) that are allowed no matter what they resolve to.
    pub allow_hosts: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct ServerLimits {
    pub body_bytes: usize,
    /// From connecting, or the end of a request, until the headers of the next request are complete. Must be longer than
    /// clients keep idle connections; otherwise they would send requests on a connection that is being closed.
    pub idle_timeout: Duration,
    pub request_timeout: Duration,
    pub connections: usize,
    /// How long a stopping farm waits for running requests.
    pub shutdown: Duration,
    pub poll_interval: Duration,
    pub poll_timeout: Duration,
    pub registry: RegistryTiming,
}

impl FarmOptions {
    /// Returns options for a master and a node on free loopback ports, with the default key.
    pub fn local(pool: PoolOptions) -> Self {
        Self {
            mode: Mode::Both,
            host: IpAddr::from([127, 0, 0, 1]),
            master_port: 0,
            node_port: 0,
            api_key: crate::serve::DEFAULT_KEY.to_owned(),
            redis: None,
            mirror: None,
            nodes: Vec::new(),
            advertise: None,
            node_id: None,
            pool,
            limits: ServerLimits::default(),
        }
    }
}

/// Each browser has processes of its own, which cost memory and take each other's caches. In a large pool more instances share
/// one; if it crashes, half of the pool is lost at the most.
const fn default_instances_per_browser(instances: usize) -> usize {
    const LARGE_POOL: usize = 32;
    if instances < LARGE_POOL { 8 } else { 16 }
}

impl PoolOptions {
    pub fn new(instances: usize, launch: Launch) -> Self {
        Self {
            identity: Identity::default(),
            instances,
            first_port: 9000,
            instances_per_browser: default_instances_per_browser(instances),
            max_parallel: 4,
            spares: 1,
            recovery: true,
            launch,
            instance: Options::default(),
            network: NetworkRules::default(),
            archives: None,
            max_lease_recording: 1 << 30,
            max_lifetime_mins: 60,
            lease_minute: Duration::from_mins(1),
            hang_limit: Duration::from_secs(20),
            max_browser_age: Duration::from_hours(2),
            max_browser_rss: 600 << 20,
            max_process_memory: 2 << 30,
            min_memory_percent: 4.0,
            max_cpu_pressure: 0.0,
        }
    }
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            body_bytes: 2 << 20,
            idle_timeout: Duration::from_secs(100),
            request_timeout: Duration::from_secs(150),
            connections: 20_000,
            shutdown: Duration::from_secs(10),
            poll_interval: Duration::from_secs(5),
            poll_timeout: Duration::from_secs(5),
            registry: RegistryTiming::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_of_large_pools_have_more_instances() {
        for (instances, per_browser) in [(1, 8), (8, 8), (31, 8), (32, 16), (256, 16)] {
            assert_eq!(default_instances_per_browser(instances), per_browser, "{instances}");
        }
    }
}
