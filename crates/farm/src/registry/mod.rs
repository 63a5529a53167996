//! The registry in Redis, through which masters find nodes on other machines. Uses the format of the Python system.

mod heartbeat;
mod mirror;
mod timing;

use axum::http::HeaderValue;

use heartbeat::NODE_PREFIX;
pub(crate) use heartbeat::heartbeat;
pub(crate) use mirror::mirror;
pub(crate) use net::redis::RedisConnection;
pub use net::redis::{RedisConnectionError as RegistryError, RedisServer};
pub use timing::RegistryTiming;

use crate::{
    node::{HttpClient, RemoteNode},
    options::ServerLimits,
};

/// The Redis database of the registry, as in the Python system.
pub(crate) const REGISTRY_DATABASE: u8 = 1;
/// The Redis database in which a node reports its pool.
pub(crate) const MIRROR_DATABASE: u8 = 0;

/// Reads the registered nodes, and creates clients for them.
pub(crate) struct Registry {
    pub(crate) connection: RedisConnection,
    pub(crate) client: HttpClient,
    pub(crate) key: HeaderValue,
    pub(crate) limits: ServerLimits,
}

impl Registry {
    /// Returns the addresses of all registered nodes.
    pub(crate) async fn nodes(&self) -> Result<Vec<String>, RegistryError> {
        let mut keys: Vec<String> = Vec::new();
        let mut cursor = 0_u64;
        loop {
            let mut scan = redis::cmd("SCAN");
            scan.arg(cursor).arg("MATCH").arg(format!("{NODE_PREFIX}*")).arg("COUNT").arg(1000);
            let (next, found): (u64, Vec<String>) = self.connection.run(&scan).await?;
            keys.extend(found);
            cursor = next;
            if cursor == 0 {
                break;
            }
        }
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let values: Vec<Option<String>> = self.connection.run(redis::cmd("MGET").arg(&keys)).await?;
        let mut urls: Vec<String> =
            values.into_iter().flatten().filter(|url| url.starts_with("http://")).collect();
        urls.sort();
        urls.dedup();
        Ok(urls)
    }

    pub(crate) fn remote(&self, url: &str) -> RemoteNode {
        RemoteNode {
            url: url.to_owned(),
            key: self.key.clone(),
            client: self.client.clone(),
            request_timeout: self.limits.request_timeout,
            info_timeout: self.limits.poll_timeout,
        }
    }
}

/// Checks that a Redis server answers.
pub async fn ping_redis(server: &RedisServer) -> Result<(), RegistryError> {
    RedisConnection::to_database(server, REGISTRY_DATABASE)?.run::<()>(&redis::cmd("PING")).await
}
