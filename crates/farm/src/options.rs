//! What a farm is told at its start. Plain data; the command line fills it in.

use std::{net::IpAddr, time::Duration};

use browser::{Launch, Options};

use crate::{
    identity::Identity,
    registry::{Pace, RedisServer},
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
    /// Where nodes and masters meet.
    pub redis: Option<RedisServer>,
    /// The Redis server whose database 0 shows this node's pool. One node a server can do that.
    pub mirror: Option<RedisServer>,
    /// Nodes named by hand: never dropped.
    pub nodes: Vec<String>,
    /// The address other machines reach this node under.
    pub advertise: Option<String>,
    /// The node's name in the registry; made of host name, machine and port when left out.
    pub node_id: Option<String>,
    pub pool: PoolOptions,
    pub limits: Limits,
}

#[derive(Clone, Debug)]
pub struct PoolOptions {
    /// Who this node is.
    pub identity: Identity,
    pub instances: usize,
    pub first_port: u16,
    pub instances_per_browser: usize,
    /// How many instances are made at once.
    pub max_parallel: usize,
    /// Clean instances kept ready in each browser, so that a released slot is usable at once.
    pub spares: usize,
    /// Replace browsers that die. Off, a dead one's slots stay dead: for debugging.
    pub recovery: bool,
    pub launch: Launch,
    pub instance: Options,
    pub network: NetworkRules,
    pub max_lifetime_mins: u32,
    /// How long a minute of a lease lasts; only tests make it shorter.
    pub lease_minute: Duration,
    /// A browser that does not answer a trivial question for this long is hung, and replaced.
    pub hang_limit: Duration,
    /// A browser older than this is replaced when nobody uses it.
    pub max_browser_age: Duration,
    /// The same above this resident size in bytes, per instance it holds.
    pub max_browser_rss: u64,
    /// A process of a browser that holds more than this many bytes is ended: a renderer costs its own lease only. 0 = no
    /// limit.
    pub max_process_memory: u64,
    /// New leases wait while less than this share of memory is available.
    pub min_memory_percent: f64,
    /// New leases wait while tasks stall for CPU more than this share of the time (PSI). 0 = never.
    pub max_cpu_pressure: f64,
}

/// Which addresses pages may reach.
#[derive(Clone, Debug, Default)]
pub struct NetworkRules {
    pub allow_private: bool,
    /// Hosts (`name`, `name:port` or `*.name`) that are allowed whatever they resolve to.
    pub allow_hosts: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct Limits {
    pub body_bytes: usize,
    /// From the end of a request, or of connecting, until the next one's headers are all there. Longer than
    /// clients keep idle connections, or they would send into one that is just being closed.
    pub idle_timeout: Duration,
    pub request_timeout: Duration,
    pub connections: usize,
    /// How long a stopping farm waits for what runs.
    pub shutdown: Duration,
    pub poll_interval: Duration,
    pub poll_timeout: Duration,
    pub registry: Pace,
}

impl FarmOptions {
    /// A master and a node on free loopback ports, with the default key.
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
            limits: Limits::default(),
        }
    }
}

impl PoolOptions {
    pub fn new(instances: usize, launch: Launch) -> Self {
        Self {
            identity: Identity::default(),
            instances,
            first_port: 9000,
            instances_per_browser: 8,
            max_parallel: 4,
            spares: 1,
            recovery: true,
            launch,
            instance: Options::default(),
            network: NetworkRules::default(),
            max_lifetime_mins: 60,
            lease_minute: Duration::from_secs(60),
            hang_limit: Duration::from_secs(20),
            max_browser_age: Duration::from_secs(2 * 3600),
            max_browser_rss: 600 << 20,
            max_process_memory: 2 << 30,
            min_memory_percent: 4.0,
            max_cpu_pressure: 0.0,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 2 << 20,
            idle_timeout: Duration::from_secs(100),
            request_timeout: Duration::from_secs(150),
            connections: 20_000,
            shutdown: Duration::from_secs(10),
            poll_interval: Duration::from_secs(5),
            poll_timeout: Duration::from_secs(5),
            registry: Pace::default(),
        }
    }
}
