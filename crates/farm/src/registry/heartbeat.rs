//! A node's sign of life in the registry: its address under its name, renewed well before it runs out. Beside it
//! stands whose entry it is, so that two nodes of one name, or a node that moved, are never taken for each other.

use std::time::{Duration, Instant};

use super::{Pace, RedisConnection, RegistryError};
use crate::{advertise::Advertised, identity::Identity, tasks::Tasks};

/// Where the Python system looks; one address a key.
pub(super) const PREFIX: &str = "omnibox:nodes:";
/// Which process an entry belongs to; for us alone.
const OWNER: &str = "webgym:owners:";

/// Writes the entry unless another node's stands there. That node is taken for alive while its entry has been renewed
/// lately; an entry with our own address can only be ours, from an earlier life.
const BEAT: &str = "
local entry = redis.call('GET', KEYS[1])
local ours = redis.call('GET', KEYS[2]) == ARGV[1] and (entry == ARGV[2] or entry == ARGV[5])
if entry and entry ~= ARGV[2] and not ours and redis.call('PTTL', KEYS[1]) > tonumber(ARGV[4]) then return entry end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[3])
return false";

/// Takes the entry out if it is ours.
const LEAVE: &str = "
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1], KEYS[2])";

/// What a node says of itself, and how far that has come.
struct Voice {
    link: RedisConnection,
    identity: Identity,
    pace: Pace,
    /// The name it goes by: its id, or one of its own where that is taken.
    name: String,
    /// The address told last, and when.
    told: Option<(String, Instant)>,
}

/// Registers until stopped, then takes the name out again.
pub(crate) async fn heartbeat(
    link: RedisConnection,
    identity: Identity,
    advertised: Advertised,
    pace: Pace,
    tasks: Tasks,
) {
    let stop = tasks.stopping().clone();
    let mut voice = Voice { link, name: identity.id.clone(), identity, pace, told: None };
    let mut known = true;
    let mut url = advertised.url().await;
    loop {
        // Without a network the last address is still the likeliest.
        url = advertised.now().await.unwrap_or(url);
        let pause = match voice.speak(&url).await {
            Ok(()) => {
                if !std::mem::replace(&mut known, true) {
                    tracing::info!("registered again");
                }
                voice.pace.look
            }
            Err(error) => {
                if std::mem::replace(&mut known, false) {
                    tracing::warn!(%error, "cannot register; going on and trying again");
                }
                voice.pace.look_for_redis
            }
        };
        tokio::select! {
            () = stop.cancelled() => break,
            () = tokio::time::sleep(pause) => {}
        }
    }
    voice.leave().await;
}

impl Voice {
    /// Sees to it that the entry stands and is fresh.
    async fn speak(&mut self, url: &str) -> Result<(), RegistryError> {
        if let Some((told, at)) = &self.told
            && told == url
            && at.elapsed() < self.pace.beat
            && self.stands(url).await?
        {
            return Ok(());
        }
        if let Some(other) = self.beat(url).await? {
            tracing::warn!(
                name = self.name, %other,
                "another node is registered under this name; taking one of our own (see --node-id)"
            );
            self.name = self.identity.own_id();
            self.beat(url).await?;
        }
        let before = self.told.replace((url.to_owned(), Instant::now()));
        if let Some((before, _)) = before.filter(|(before, _)| before != url) {
            tracing::warn!(%before, now = url, "the address of this node has changed");
        }
        Ok(())
    }

    fn keys(&self) -> [String; 2] {
        [PREFIX, OWNER].map(|prefix| format!("{prefix}{}", self.name))
    }

    async fn stands(&self, url: &str) -> Result<bool, RegistryError> {
        let [key, _] = self.keys();
        let entry: Option<String> = self.link.run(redis::cmd("GET").arg(key)).await?;
        Ok(entry.as_deref() == Some(url))
    }

    /// Says once that we are here; gives the address of another node that holds the name.
    async fn beat(&self, url: &str) -> Result<Option<String>, RegistryError> {
        let before = self.told.as_ref().map_or(url, |(before, _)| before.as_str());
        let mut command = redis::cmd("EVAL");
        command.arg(BEAT).arg(2).arg(&self.keys()).arg(&self.identity.incarnation).arg(url);
        command.arg(millis(self.pace.ttl)).arg(millis(self.pace.fresh())).arg(before);
        self.link.run(&command).await
    }

    async fn leave(&self) {
        if self.told.is_none() {
            return;
        }
        let mut command = redis::cmd("EVAL");
        command.arg(LEAVE).arg(2).arg(&self.keys()).arg(&self.identity.incarnation);
        if let Err(error) = self.link.run::<()>(&command).await {
            tracing::debug!(%error, "could not take the name out of the registry; it will run out");
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
