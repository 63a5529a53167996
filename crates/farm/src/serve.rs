//! Puts a farm together: pool, node server, master server, registry, in the shape its mode asks for; and takes it
//! apart again in the right order.

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use tokio_util::sync::CancellationToken;

use crate::{
    api::{self, Key, listen},
    master::{Entry, Master, Origin, Table},
    node::{AnyNode, HttpClient, LocalNode, RemoteNode},
    options::{FarmOptions, Limits, Mode, PoolOptions},
    pool::{Pool, PoolCounts},
    process::raise_file_limit,
    registry::{self, Link, MIRROR_DATABASE, REGISTRY_DATABASE, Registry, RegistryError},
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
        let mut node_url = None;
        if options.mode != Mode::Master {
            check_pool(&options.pool)?;
            let listener = listen::bind((options.host, options.node_port).into()).await?;
            let pool = Pool::start(options.pool.clone()).await?;
            let bound = bound("node", listener.local_addr()?, options.advertise.as_deref());
            let url = bound.url.clone();
            farm.serve(listener, api::node_routes(LocalNode(pool.clone()), key.clone()), bound);
            table.add(Entry::new(url.clone(), Origin::Named, AnyNode::Local(LocalNode(pool.clone()))));
            farm.pool = Some(pool);
            node_url = Some(url);
        }
        if let (Some(redis), Some(url)) = (&options.redis, &node_url) {
            farm.register(redis, url)?;
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
        let listener = listen::bind((options.host, port).into()).await?;
        let address = listener.local_addr()?;
        let pool = PoolOptions { instances: 1, first_port: address.port(), spares: 0, ..options.pool };
        let slot = pool.first_port;
        let pool = Pool::start(pool).await?;
        let routes = api::instance_routes(LocalNode(pool.clone()), slot, key);
        farm.serve(listener, routes, bound("instance", address, None));
        farm.pool = Some(pool);
        Ok(farm)
    }

    fn empty(limits: Limits) -> Self {
        // Half of the files we may open are for clients; browsers and the sites they visit need the others.
        let files = usize::try_from(raise_file_limit() / 2).unwrap_or(usize::MAX);
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

    fn serve(&mut self, listener: tokio::net::TcpListener, routes: axum::Router, bound: Bound) {
        let serving = listen::serve(listener, routes, self.limits.clone(), self.stop_serving.clone());
        self.servers.spawn("serve", serving);
        self.bound.push(bound);
    }

    fn register(&self, redis: &str, url: &str) -> Result<(), StartError> {
        let name = host_name();
        let id = uuid::Uuid::new_v4().simple().to_string()[..8].to_owned();
        let link = Link::new(redis, REGISTRY_DATABASE)?;
        let beat = registry::heartbeat(link, name, id, url.to_owned(), self.tasks.clone());
        self.tasks.spawn("heartbeat", beat);
        Ok(())
    }

    fn mirror(&self, redis: &str) -> Result<(), StartError> {
        let Some(pool) = &self.pool else { return Ok(()) };
        let link = Link::new(redis, MIRROR_DATABASE)?;
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
        let registry = match &options.redis {
            Some(redis) => Some(Registry {
                link: Link::new(redis, REGISTRY_DATABASE)?,
                client,
                key: header,
                limits: options.limits.clone(),
            }),
            None => None,
        };
        let listener = listen::bind((options.host, options.master_port).into()).await?;
        let bound = bound("master", listener.local_addr()?, options.advertise.as_deref());
        let master = Master::start(table, options.limits.clone(), registry, &self.tasks);
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

fn bound(tier: &'static str, address: SocketAddr, advertise: Option<&str>) -> Bound {
    let host = match advertise {
        Some(host) => host.to_owned(),
        None if address.ip().is_unspecified() => host_address().unwrap_or_else(|| "127.0.0.1".into()),
        None => match address.ip() {
            IpAddr::V4(v4) => v4.to_string(),
            IpAddr::V6(v6) => format!("[{v6}]"),
        },
    };
    Bound { tier, address, url: format!("http://{host}:{}", address.port()) }
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The address this machine would use towards others; nothing is sent.
fn host_address() -> Option<String> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    Some(socket.local_addr().ok()?.ip().to_string())
}
