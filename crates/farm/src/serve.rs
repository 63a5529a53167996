//! Puts a farm together: pool, node server, master server, registry, in the shape its mode asks for; and takes it
//! apart again in the right order.

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use tokio_util::sync::CancellationToken;

use crate::{
    advertise::Advertised,
    api::{self, Key, listen},
    identity::{BadNodeId, Identity},
    master::{Entry, Master, Origin, SharedKeys, Table},
    node::{AnyNode, HttpClient, LocalNode, RemoteNode},
    options::{FarmOptions, Limits, Mode, PoolOptions},
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
         Set an own key with --api-key or WEBGYM_API_KEY"
    )]
    DefaultKey(IpAddr),
    #[error("the API key is empty; give one, or leave it out to use the default on loopback")]
    EmptyKey,
    #[error("the API key cannot be sent as a header; use printable ASCII without line breaks")]
    UnusableKey,
    #[error("{0:?} is not the address of a node; give one like http://10.0.0.5:8080")]
    NodeAddress(String),
    #[error("{0}")]
    NodeId(#[from] BadNodeId),
    #[error("a farm needs at least one instance")]
    NoInstances,
    #[error("{0} instances from slot {1} on would run past slot 65535")]
    TooManySlots(usize, u16),
}

/// The key on loopback when none is given, as existing scripts expect.
pub const DEFAULT_KEY: &str = "default_key";

/// What was bound, for whoever waits to connect.
#[derive(Clone, Debug)]
pub struct Bound {
    pub tier: &'static str,
    pub address: SocketAddr,
    pub url: String,
}

/// A running farm. [`Farm::stop`] it; dropping it leaves the ending to the guard processes.
pub struct Farm {
    pool: Option<Pool>,
    master: Option<Master>,
    bound: Vec<Bound>,
    servers: Tasks,
    stop_serving: CancellationToken,
    tasks: Tasks,
    limits: Limits,
}

impl Farm {
    /// Starts master and node as the mode says. Returns once everything listens; instances come up behind it.
    pub async fn start(options: FarmOptions) -> Result<Self, StartError> {
        let key = check_key(&options.api_key, options.host)?;
        let mut farm = Self::empty(options.limits.clone());
        let table = Table::default();
        if options.mode != Mode::Master {
            check_pool(&options.pool)?;
            let listener = listen::bind((options.host, options.node_port).into(), &farm.limits)?;
            let address = listener.local_addr()?;
            let identity = Identity::new(options.node_id.as_deref(), address.port())?;
            let pool = Pool::start(PoolOptions { identity, ..options.pool.clone() }).await?;
            let advertised = Advertised::new(options.advertise.as_deref(), address, options.redis.as_ref());
            let url = advertised.url().await;
            let bound = Bound { tier: "node", address, url: url.clone() };
            farm.serve(listener, api::node_routes(LocalNode(pool.clone()), key.clone()), bound);
            table.add(Entry::new(url.clone(), Origin::Named, AnyNode::Local(LocalNode(pool.clone()))));
            if let Some(redis) = &options.redis {
                if advertised.misleads(&url) {
                    tracing::warn!(%url, "other machines cannot reach this node there; give --host 0.0.0.0 or --advertise-ip");
                }
                farm.register(redis, advertised, pool.identity().clone())?;
            }
            farm.pool = Some(pool);
        }
        if let Some(redis) = &options.mirror {
            farm.mirror(redis)?;
        }
        if options.mode != Mode::Worker {
            farm.start_master(table, &options, &key).await?;
        }
        Ok(farm)
    }

    /// A server around a single instance.
    pub async fn start_instance(options: FarmOptions, port: u16) -> Result<Self, StartError> {
        let key = check_key(&options.api_key, options.host)?;
        let mut farm = Self::empty(options.limits.clone());
        let listener = listen::bind((options.host, port).into(), &farm.limits)?;
        let address = listener.local_addr()?;
        let pool = PoolOptions { instances: 1, first_port: address.port(), spares: 0, ..options.pool };
        let slot = pool.first_port;
        let pool = Pool::start(pool).await?;
        let routes = api::instance_routes(LocalNode(pool.clone()), slot, key);
        let url = Advertised::new(options.advertise.as_deref(), address, None).url().await;
        farm.serve(listener, routes, Bound { tier: "instance", address, url });
        farm.pool = Some(pool);
        Ok(farm)
    }

    fn empty(limits: Limits) -> Self {
        // Three quarters of the files we may open are for clients; pipes to browsers and the sites they visit need the others.
        let files = usize::try_from(raise_file_limit() / 4 * 3).unwrap_or(usize::MAX);
        let limits = Limits { connections: limits.connections.min(files), ..limits };
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

    fn serve(&mut self, listener: net::listener::BoundedListener, routes: axum::Router, bound: Bound) {
        let serving = listen::serve(listener, routes, self.limits.clone(), self.stop_serving.clone());
        self.servers.spawn("serve", serving);
        self.bound.push(bound);
    }

    fn register(&self, redis: &RedisServer, at: Advertised, identity: Identity) -> Result<(), StartError> {
        let link = RedisConnection::to_database(redis, REGISTRY_DATABASE)?;
        let beat = registry::heartbeat(link, identity, at, self.limits.registry, self.tasks.clone());
        self.tasks.spawn("heartbeat", beat);
        Ok(())
    }

    fn mirror(&self, redis: &RedisServer) -> Result<(), StartError> {
        let Some(pool) = &self.pool else { return Ok(()) };
        let link = RedisConnection::to_database(redis, MIRROR_DATABASE)?;
        self.tasks.spawn("mirror", registry::mirror(link, pool.clone(), self.tasks.clone()));
        Ok(())
    }

    async fn start_master(
        &mut self,
        table: Table,
        options: &FarmOptions,
        key: &Key,
    ) -> Result<(), StartError> {
        let header = key.header().ok_or(StartError::UnusableKey)?;
        let client = HttpClient::new();
        for url in &options.nodes {
            let url = url.trim_end_matches('/').to_owned();
            if !url.starts_with("http://") || url::Url::parse(&url).is_err() {
                return Err(StartError::NodeAddress(url));
            }
            let node = RemoteNode {
                url: url.clone(),
                key: header.clone(),
                client: client.clone(),
                request_limit: options.limits.request_timeout,
                info_limit: options.limits.poll_timeout,
            };
            table.add(Entry::new(url, Origin::Named, AnyNode::Remote(node)));
        }
        let (registry, shared) = match &options.redis {
            Some(redis) => {
                let link = || RedisConnection::to_database(redis, REGISTRY_DATABASE);
                let limits = options.limits.clone();
                let registry = Registry { link: link()?, client, key: header, limits };
                (Some(registry), Some(SharedKeys::new(link()?)))
            }
            None => (None, None),
        };
        let listener = listen::bind((options.host, options.master_port).into(), &self.limits)?;
        let address = listener.local_addr()?;
        let redis = options.redis.as_ref();
        let url = Advertised::new(options.advertise.as_deref(), address, redis).url().await;
        let bound = Bound { tier: "master", address, url };
        let master = Master::start(table, options.limits.clone(), registry, shared, &self.tasks);
        self.serve(listener, api::master_routes(master.clone(), key.clone()), bound);
        self.master = Some(master);
        Ok(())
    }

    pub fn bound(&self) -> &[Bound] {
        &self.bound
    }

    /// Where the given tier listens.
    pub fn url(&self, tier: &str) -> Option<&str> {
        self.bound.iter().find(|bound| bound.tier == tier).map(|bound| bound.url.as_str())
    }

    pub fn pool(&self) -> Option<&Pool> {
        self.pool.as_ref()
    }

    /// Waits until every instance of this process is up, and every node a master knows of has been asked once.
    pub async fn ready(&self, progress: impl FnMut(&PoolCounts)) {
        if let Some(pool) = &self.pool {
            pool.ready(progress).await;
        }
        if let Some(master) = &self.master {
            master.looked().await;
        }
    }

    /// Gives no new leases here and returns when those held have ended, or at the limit. True when all have.
    pub async fn drain(&self, limit: Duration) -> bool {
        match &self.pool {
            Some(pool) => tokio::time::timeout(limit, pool.leave()).await.is_ok(),
            None => true,
        }
    }

    /// Stops leasing, lets what runs finish (bounded), then ends every browser. True when nothing was cut off.
    pub async fn stop(self) -> bool {
        if let Some(master) = &self.master {
            master.close_to_new();
        }
        if let Some(pool) = &self.pool {
            pool.close_to_new();
        }
        self.stop_serving.cancel();
        let limit = self.limits.shutdown + Duration::from_secs(2);
        let served = self.servers.stop(limit).await;
        let settled = self.tasks.stop(Duration::from_secs(5)).await;
        let browsers = match &self.pool {
            Some(pool) => pool.stop(Duration::from_secs(20)).await,
            None => true,
        };
        served && settled && browsers
    }
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
