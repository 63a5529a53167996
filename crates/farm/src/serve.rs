//! Starts a farm: pool, node server, master server and registry, as its mode requires; and stops it in the right order.

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use net::listener::BoundedListener;
use tokio_util::sync::CancellationToken;

use crate::{
    advertise::AdvertisedAddress,
    api::{self, Key, listen},
    idempotency::{LeaseKeys, RedisStore, Retention},
    identity::{Identity, InvalidNodeId},
    master::{Master, NodeEntry, NodeTable, Origin},
    node::{AnyNode, HttpClient, LocalNode, RemoteNode},
    options::{FarmOptions, Mode, PoolOptions, ServerLimits},
    pool::{Pool, PoolCounts},
    process::raise_file_limit,
    registry::{
        self, MIRROR_DATABASE, REGISTRY_DATABASE, RedisConnection, RedisServer, Registry, RegistryError,
    },
    tasks::Tasks,
};

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("{0}")]
    Listen(#[from] std::io::Error),
    #[error("{0}")]
    Registry(#[from] RegistryError),
    #[error(
        "refusing to listen on {0} with the well-known default key: anyone who can reach it could drive your browsers. \
         Set your own key with --api-key or WEBGYM_API_KEY"
    )]
    DefaultKey(IpAddr),
    #[error("the API key is empty; set one, or leave it out to use the default key on loopback")]
    EmptyKey,
    #[error("the API key cannot be sent as a header; use printable ASCII without line breaks")]
    UnusableKey,
    #[error("{0:?} is not the address of a node; use one like http://10.0.0.5:8080")]
    NodeAddress(String),
    #[error("{0}")]
    NodeId(#[from] InvalidNodeId),
    #[error("a farm needs at least one instance")]
    NoInstances,
    #[error("{0} instances starting at slot {1} would exceed slot 65535")]
    TooManySlots(usize, u16),
}

/// The key on loopback when none is configured, as existing scripts expect.
pub const DEFAULT_KEY: &str = "default_key";

/// Added to the shutdown limit, within which the servers themselves end running requests.
const SERVER_STOP_MARGIN: Duration = Duration::from_secs(2);
const TASK_STOP_TIMEOUT: Duration = Duration::from_secs(5);
const POOL_STOP_TIMEOUT: Duration = Duration::from_secs(20);

/// A listening server of the farm.
#[derive(Clone, Debug)]
pub struct BoundServer {
    pub tier: &'static str,
    pub address: SocketAddr,
    pub url: String,
}

/// A running farm. End it with [`Farm::stop`]; if it is dropped, the reaper processes clean up the browsers.
pub struct Farm {
    pool: Option<Pool>,
    master: Option<Master>,
    bound: Vec<BoundServer>,
    servers: Tasks,
    stop_serving: CancellationToken,
    tasks: Tasks,
    limits: ServerLimits,
}

impl Farm {
    /// Starts master and node according to the mode. Returns once everything listens; instances start in the background.
    pub async fn start(options: FarmOptions) -> Result<Self, StartError> {
        let key = check_key(&options.api_key, options.host)?;
        let mut farm = Self::empty(&options.limits);
        let table = NodeTable::default();
        if options.mode != Mode::Master {
            farm.start_node(&table, &options, &key).await?;
        }
        if let Some(redis) = &options.mirror {
            farm.mirror(redis)?;
        }
        if options.mode != Mode::Worker {
            farm.start_master(table, &options, &key).await?;
        }
        Ok(farm)
    }

    /// Starts a server for a single instance.
    pub async fn start_instance(options: FarmOptions, port: u16) -> Result<Self, StartError> {
        let key = check_key(&options.api_key, options.host)?;
        let mut farm = Self::empty(&options.limits);
        let listener = listen::bind((options.host, port).into(), &farm.limits)?;
        let address = listener.local_addr()?;
        let pool = PoolOptions { instances: 1, first_port: address.port(), spares: 0, ..options.pool };
        let slot = pool.first_port;
        let pool = Pool::start(pool).await?;
        let routes = api::instance_routes(LocalNode(pool.clone()), slot, key);
        let url = AdvertisedAddress::new(options.advertise.as_deref(), address, None).url().await;
        farm.serve(listener, routes, BoundServer { tier: "instance", address, url });
        farm.pool = Some(pool);
        Ok(farm)
    }

    fn empty(limits: &ServerLimits) -> Self {
        // Clients may use three quarters of the file descriptors; pipes to browsers and proxied connections need the rest.
        let max_clients = usize::try_from(raise_file_limit() / 4 * 3).unwrap_or(usize::MAX);
        let limits = ServerLimits { connections: limits.connections.min(max_clients), ..limits.clone() };
        Self {
            pool: None,
            master: None,
            bound: Vec::new(),
            servers: Tasks::default(),
            stop_serving: CancellationToken::new(),
            tasks: Tasks::default(),
            limits,
        }
    }

    fn serve(&mut self, listener: BoundedListener, routes: axum::Router, bound: BoundServer) {
        let serving = listen::serve(listener, routes, self.limits.clone(), self.stop_serving.clone());
        self.servers.spawn("serve", serving);
        self.bound.push(bound);
    }

    fn register(
        &self,
        redis: &RedisServer,
        address: AdvertisedAddress,
        identity: Identity,
    ) -> Result<(), StartError> {
        let connection = RedisConnection::to_database(redis, REGISTRY_DATABASE)?;
        let timing = self.limits.registry;
        let heartbeat = registry::heartbeat(connection, identity, address, timing, self.tasks.clone());
        self.tasks.spawn("heartbeat", heartbeat);
        Ok(())
    }

    fn mirror(&self, redis: &RedisServer) -> Result<(), StartError> {
        let Some(pool) = &self.pool else { return Ok(()) };
        let connection = RedisConnection::to_database(redis, MIRROR_DATABASE)?;
        self.tasks.spawn("mirror", registry::mirror(connection, pool.clone(), self.tasks.clone()));
        Ok(())
    }

    async fn start_node(
        &mut self,
        table: &NodeTable,
        options: &FarmOptions,
        key: &Key,
    ) -> Result<(), StartError> {
        check_pool(&options.pool)?;
        let listener = listen::bind((options.host, options.node_port).into(), &self.limits)?;
        let address = listener.local_addr()?;
        let identity = Identity::new(options.node_id.as_deref(), address.port())?;
        let pool = Pool::start(PoolOptions { identity, ..options.pool.clone() }).await?;
        let advertised =
            AdvertisedAddress::new(options.advertise.as_deref(), address, options.redis.as_ref());
        let url = advertised.url().await;
        let bound = BoundServer { tier: "node", address, url: url.clone() };
        self.serve(listener, api::node_routes(LocalNode(pool.clone()), key.clone()), bound);
        let node = AnyNode::Local(LocalNode(pool.clone()));
        table.add(NodeEntry::new(url.clone(), Origin::Configured, node));
        if let Some(redis) = &options.redis {
            if advertised.is_unreachable_remotely(&url) {
                tracing::warn!(%url, "other machines cannot reach this address; use --host 0.0.0.0 or --advertise-ip");
            }
            self.register(redis, advertised, pool.identity().clone())?;
        }
        self.pool = Some(pool);
        Ok(())
    }

    async fn start_master(
        &mut self,
        table: NodeTable,
        options: &FarmOptions,
        key: &Key,
    ) -> Result<(), StartError> {
        let header = key.header().ok_or(StartError::UnusableKey)?;
        let client = HttpClient::new();
        for url in &options.nodes {
            let url = check_node_url(url)?;
            let node = RemoteNode {
                url: url.clone(),
                key: header.clone(),
                client: client.clone(),
                request_timeout: options.limits.request_timeout,
                info_timeout: options.limits.poll_timeout,
            };
            table.add(NodeEntry::new(url, Origin::Configured, AnyNode::Remote(Box::new(node))));
        }
        let registry = match &options.redis {
            Some(redis) => {
                let (connection, limits) =
                    (RedisConnection::to_database(redis, REGISTRY_DATABASE)?, options.limits.clone());
                Some(Registry { connection, client, key: header, limits })
            }
            None => None,
        };
        let keys = lease_keys(options.redis.as_ref())?;
        let listener = listen::bind((options.host, options.master_port).into(), &self.limits)?;
        let address = listener.local_addr()?;
        let redis = options.redis.as_ref();
        let url = AdvertisedAddress::new(options.advertise.as_deref(), address, redis).url().await;
        let bound = BoundServer { tier: "master", address, url };
        let master = Master::start(table, options.limits.clone(), registry, keys, &self.tasks);
        self.serve(listener, api::master_routes(master.clone(), key.clone()), bound);
        self.master = Some(master);
        Ok(())
    }

    /// Returns the listening servers.
    pub fn bound(&self) -> &[BoundServer] {
        &self.bound
    }

    /// Returns the URL of a tier.
    pub fn url(&self, tier: &str) -> Option<&str> {
        self.bound.iter().find(|bound| bound.tier == tier).map(|bound| bound.url.as_str())
    }

    pub fn pool(&self) -> Option<&Pool> {
        self.pool.as_ref()
    }

    /// Waits until every local instance is ready and the master has polled every known node once.
    pub async fn ready(&self, progress: impl FnMut(&PoolCounts)) {
        if let Some(pool) = &self.pool {
            pool.ready(progress).await;
        }
        if let Some(master) = &self.master {
            master.first_poll_done().await;
        }
    }

    /// Grants no new leases on the local pool and waits for the existing ones. Returns false at the timeout.
    pub async fn drain(&self, timeout: Duration) -> bool {
        match &self.pool {
            Some(pool) => tokio::time::timeout(timeout, pool.drain_and_wait()).await.is_ok(),
            None => true,
        }
    }

    /// Stops leasing, waits for running requests up to the shutdown limit, then ends every browser. Returns whether
    /// everything finished in time.
    pub async fn stop(self) -> bool {
        if let Some(master) = &self.master {
            master.stop_leasing();
        }
        if let Some(pool) = &self.pool {
            pool.stop_leasing();
        }
        self.stop_serving.cancel();
        let servers_stopped = self.servers.stop(self.limits.shutdown + SERVER_STOP_MARGIN).await;
        let tasks_stopped = self.tasks.stop(TASK_STOP_TIMEOUT).await;
        let pool_stopped = match &self.pool {
            Some(pool) => pool.stop(POOL_STOP_TIMEOUT).await,
            None => true,
        };
        servers_stopped && tasks_stopped && pool_stopped
    }
}

/// Masters with the same Redis server share their idempotency keys there.
fn lease_keys(redis: Option<&RedisServer>) -> Result<LeaseKeys, StartError> {
    let owner = uuid::Uuid::new_v4().simple().to_string();
    let shared = match redis {
        Some(redis) => {
            let connection = RedisConnection::to_database(redis, REGISTRY_DATABASE)?;
            Some(RedisStore::new(connection, Retention::default(), owner.clone()))
        }
        None => None,
    };
    Ok(LeaseKeys::new(owner, shared))
}

fn check_node_url(url: &str) -> Result<String, StartError> {
    let url = url.trim_end_matches('/').to_owned();
    if !url.starts_with("http://") || url::Url::parse(&url).is_err() {
        return Err(StartError::NodeAddress(url));
    }
    Ok(url)
}

fn check_key(key: &str, host: IpAddr) -> Result<Key, StartError> {
    if key == DEFAULT_KEY && !host.is_loopback() {
        return Err(StartError::DefaultKey(host));
    }
    if key.trim().is_empty() {
        return Err(StartError::EmptyKey);
    }
    let key = Key::new(key);
    if key.header().is_none() { Err(StartError::UnusableKey) } else { Ok(key) }
}

fn check_pool(pool: &PoolOptions) -> Result<(), StartError> {
    if pool.instances == 0 {
        return Err(StartError::NoInstances);
    }
    if usize::from(pool.first_port) + pool.instances > 65_536 {
        return Err(StartError::TooManySlots(pool.instances, pool.first_port));
    }
    Ok(())
}
