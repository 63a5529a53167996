//! Where nodes make themselves known on several machines: Redis, in the shapes the Python system reads and
//! writes. A farm without Redis never comes here.

mod heartbeat;
mod mirror;
mod pace;

use axum::http::HeaderValue;

use heartbeat::PREFIX;
pub(crate) use heartbeat::heartbeat;
pub(crate) use mirror::mirror;
pub(crate) use net::redis::RedisConnection;
pub use net::redis::{RedisConnectionError as RegistryError, RedisServer};
pub use pace::Pace;

use crate::{
    node::{HttpClient, RemoteNode},
    options::Limits,
};

/// The registry's database, as the Python system has it; the pools' mirrors are in the other.
pub(crate) const REGISTRY_DATABASE: u8 = 1;
pub(crate) const MIRROR_DATABASE: u8 = 0;

/// Reads the nodes that have registered, and makes them reachable.
pub(crate) struct Registry {
    pub(crate) link: RedisConnection,
    pub(crate) client: HttpClient,
    pub(crate) key: HeaderValue,
    pub(crate) limits: Limits,
}

impl Registry {
    /// The addresses of all registered nodes.
    pub(crate) async fn nodes(&self) -> Result<Vec<String>, RegistryError> {
        let mut keys: Vec<String> = Vec::new();
        let mut cursor = 0_u64;
        loop {
            let mut scan = redis::cmd("SCAN");
            scan.arg(cursor).arg("MATCH").arg(format!("{PREFIX}*")).arg("COUNT").arg(1000);
            let (next, found): (u64, Vec<String>) = self.link.run(&scan).await?;
            keys.extend(found);
            cursor = next;
            if cursor == 0 {
                break;
            }
        }
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let values: Vec<Option<String>> = self.link.run(redis::cmd("MGET").arg(&keys)).await?;
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
            request_limit: self.limits.request_timeout,
            info_limit: self.limits.poll_timeout,
        }
    }
}

/// Sees whether a Redis server answers.
pub async fn ping_redis(server: &RedisServer) -> Result<(), RegistryError> {
    RedisConnection::to_database(server, REGISTRY_DATABASE)?.run::<()>(&redis::cmd("PING")).await
}
