//! A node's heartbeat: its address in the registry under its id, renewed well before it expires. A second key names the
//! process that owns the entry, so that two nodes with one id, or a node that moved, are never confused.

use std::time::{Duration, Instant};

use super::{RedisConnection, RegistryError, RegistryTiming};
use crate::{advertise::AdvertisedAddress, identity::Identity, tasks::Tasks};

/// Where the Python system looks for nodes; one address per key.
pub(super) const NODE_PREFIX: &str = "omnibox:nodes:";
/// Which process owns an entry; only our nodes use it.
const OWNER_PREFIX: &str = "webgym:owners:";

/// Writes the entry unless it belongs to another live node, whose address it then returns. Another node counts as live
/// if its entry was renewed lately. An entry with our own address is always ours, from an earlier process.
const REGISTER: &str = "
local entry = redis.call('GET', KEYS[1])
local ours = redis.call('GET', KEYS[2]) == ARGV[1] and (entry == ARGV[2] or entry == ARGV[5])
if entry and entry ~= ARGV[2] and not ours and redis.call('PTTL', KEYS[1]) > tonumber(ARGV[4]) then return entry end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[3])
return false";

/// Removes the entry if it is ours.
const UNREGISTER: &str = "
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1], KEYS[2])";

/// The entry of this node in the registry.
struct Registration {
    connection: RedisConnection,
    identity: Identity,
    timing: RegistryTiming,
    /// The node's id, or a unique one if another node has that id.
    name: String,
    /// The address that was registered last, and when.
    registered: Option<(String, Instant)>,
}

/// Keeps the node registered until stopped, then removes its entry.
pub(crate) async fn heartbeat(
    connection: RedisConnection,
    identity: Identity,
    advertised: AdvertisedAddress,
    timing: RegistryTiming,
    tasks: Tasks,
) {
    let stop = tasks.stopping().clone();
    let mut registration =
        Registration { connection, name: identity.id.clone(), identity, timing, registered: None };
    let mut is_registered = true;
    let mut url = advertised.url().await;
    loop {
        // Without a network the last address is still the most likely one.
        url = advertised.current_url().await.unwrap_or(url);
        let pause = match registration.refresh(&url).await {
            Ok(()) => {
                if !std::mem::replace(&mut is_registered, true) {
                    tracing::info!("registered again");
                }
                timing.check_interval
            }
            Err(error) => {
                if std::mem::replace(&mut is_registered, false) {
                    tracing::warn!(%error, "cannot register; continuing and trying again");
                }
                timing.retry_interval
            }
        };
        tokio::select! {
            () = stop.cancelled() => break,
            () = tokio::time::sleep(pause) => {}
        }
    }
    registration.remove().await;
}

impl Registration {
    /// Renews the entry if it is due, has disappeared, or the address has changed.
    async fn refresh(&mut self, url: &str) -> Result<(), RegistryError> {
        if let Some((registered, since)) = &self.registered
            && registered == url
            && since.elapsed() < self.timing.renew_interval
            && self.exists(url).await?
        {
            return Ok(());
        }
        if let Some(other) = self.register(url).await? {
            tracing::warn!(
                name = self.name, %other,
                "another node is registered under this name; using a unique one (see --node-id)"
            );
            self.name = self.identity.unique_id();
            self.register(url).await?;
        }
        let before = self.registered.replace((url.to_owned(), Instant::now()));
        if let Some((before, _)) = before.filter(|(before, _)| before != url) {
            tracing::warn!(%before, now = url, "the address of this node has changed");
        }
        Ok(())
    }

    fn keys(&self) -> [String; 2] {
        [NODE_PREFIX, OWNER_PREFIX].map(|prefix| format!("{prefix}{}", self.name))
    }

    async fn exists(&self, url: &str) -> Result<bool, RegistryError> {
        let [key, _] = self.keys();
        let entry: Option<String> = self.connection.run(redis::cmd("GET").arg(key)).await?;
        Ok(entry.as_deref() == Some(url))
    }

    /// Writes the entry, or returns the address of another live node with this name.
    async fn register(&self, url: &str) -> Result<Option<String>, RegistryError> {
        let before = self.registered.as_ref().map_or(url, |(before, _)| before.as_str());
        let mut command = redis::cmd("EVAL");
        command.arg(REGISTER).arg(2).arg(&self.keys()).arg(&self.identity.incarnation).arg(url);
        command.arg(millis(self.timing.ttl)).arg(millis(self.timing.fresh_ttl())).arg(before);
        self.connection.run(&command).await
    }

    async fn remove(&self) {
        if self.registered.is_none() {
            return;
        }
        let mut command = redis::cmd("EVAL");
        command.arg(UNREGISTER).arg(2).arg(&self.keys()).arg(&self.identity.incarnation);
        if let Err(error) = self.connection.run::<()>(&command).await {
            tracing::debug!(%error, "cannot remove this node from the registry; its entry will expire");
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
