//! Starts the tiers of a farm: pool, node server, master server and registry, as its mode requires.

use net::listener::BoundedListener;
use tokio_util::sync::CancellationToken;

use super::{
    BoundServer, Farm, StartError,
    check::{check_key, check_node_url, check_pool},
};
use crate::{
    advertise::AdvertisedAddress,
    api::{self, Key, listen},
    idempotency::{LeaseKeys, RedisStore, Retention},
    identity::Identity,
    master::{Master, NodeEntry, NodeTable, Origin},
    node::{AnyNode, HttpClient, LocalNode, RemoteNode},
    options::{FarmOptions, Mode, PoolOptions, ServerLimits},
    pool::Pool,
    process::raise_file_limit,
    registry::{self, MIRROR_DATABASE, REGISTRY_DATABASE, RedisConnection, RedisServer, Registry},
    tasks::Tasks,
};

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
        table.add(NodeEntry::new(&url, Origin::Configured, node));
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
            table.add(NodeEntry::new(&url, Origin::Configured, AnyNode::Remote(Box::new(node))));
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
