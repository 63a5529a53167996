//! What was given out under an idempotency key, as several masters tell each other in Redis: a client whose answer got
//! lost may ask another master, and must get the same lease and not a second one. Without Redis, or while it is away,
//! each master knows its own.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use proto::InstanceId;

use crate::registry::RedisConnection;

const PREFIX: &str = "webgym:keys:";
/// Placing a lease takes moments; a master that died over it must not hold the key up for long.
const CLAIM_MILLIS: u64 = 10_000;
/// As long as a master itself remembers.
const GIVEN_MILLIS: u64 = 15 * 60 * 1000;

/// Takes the key for placing, unless another has it or something was given under it. What was placed for a client that
/// hung up is thereby claimed.
const CLAIM: &str = "
local held = redis.call('GET', KEYS[1])
if not held or held == ARGV[1] or held == ARGV[2] then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
  return false
end
if string.sub(held, 1, 10) == 'unclaimed ' then
  held = 'given ' .. string.sub(held, 11)
  redis.call('SET', KEYS[1], held, 'PX', ARGV[4])
end
return held";

/// Removes the entry if it is still this; tells whether nobody has made it something else.
const DROP: &str = "
local held = redis.call('GET', KEYS[1])
if held == ARGV[1] then redis.call('DEL', KEYS[1]) end
return (not held or held == ARGV[1]) and 1 or 0";

/// What is known of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Ours to place.
    Ours,
    /// Another master is at it.
    Elsewhere,
    Given {
        node: String,
        id: InstanceId,
    },
}

pub(crate) struct SharedKeys {
    link: RedisConnection,
    claim: String,
    away_until: Mutex<Option<Instant>>,
}

/// Redis does not tell.
struct Away;

/// A healthy Redis answers in a millisecond.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_secs(5);

impl SharedKeys {
    pub(crate) fn new(link: RedisConnection) -> Self {
        Self { link, claim: format!("claim {}", uuid::Uuid::new_v4().simple()), away_until: Mutex::default() }
    }

    async fn eval<T: redis::FromRedisValue>(
        &self,
        script: &str,
        key: &str,
        words: &[&str],
    ) -> Result<T, Away> {
        let mut command = redis::cmd("EVAL");
        command.arg(script).arg(1).arg(format!("{PREFIX}{key}")).arg(words);
        self.reach(&command).await
    }

    /// Asks Redis, briefly, and after a failure not for a while: leases must not wait for a server that is away.
    async fn reach<T: redis::FromRedisValue>(&self, command: &redis::Cmd) -> Result<T, Away> {
        if self.away_until().is_some_and(|until| Instant::now() < until) {
            return Err(Away);
        }
        let answer = tokio::time::timeout(PATIENCE, self.link.run(command)).await;
        let failed = match answer {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {PATIENCE:?}"),
        };
        tracing::warn!(error = failed, "keys are not shared with other masters for the moment");
        *self.away_until() = Some(Instant::now() + PAUSE);
        Err(Away)
    }

    fn away_until(&self) -> MutexGuard<'_, Option<Instant>> {
        self.away_until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for the key. `stale` is what was found given and is held no more.
    pub(crate) async fn claim(&self, key: &str, stale: Option<(&str, &InstanceId)>) -> Standing {
        let stale = stale.map(|(node, id)| given(node, id)).unwrap_or_default();
        let times = [CLAIM_MILLIS, GIVEN_MILLIS].map(|millis| millis.to_string());
        let words = [self.claim.as_str(), &stale, &times[0], &times[1]];
        match self.eval::<Option<String>>(CLAIM, key, &words).await {
            Ok(None) => Standing::Ours,
            Ok(Some(held)) => read(&held),
            Err(Away) => Standing::Ours,
        }
    }

    async fn set(&self, key: &str, what: &str) {
        let mut command = redis::cmd("SET");
        command.arg(format!("{PREFIX}{key}")).arg(what).arg("PX").arg(GIVEN_MILLIS);
        let _ = self.reach::<()>(&command).await;
    }

    pub(crate) async fn give(&self, key: &str, node: &str, id: &InstanceId) {
        self.set(key, &given(node, id)).await;
    }

    /// There is a lease, but its client hung up.
    pub(crate) async fn leave_unclaimed(&self, key: &str, node: &str, id: &InstanceId) {
        self.set(key, &unclaimed(node, id)).await;
    }

    /// What was given is over: nobody will ask for it again.
    pub(crate) async fn forget(&self, key: &str, node: &str, id: &InstanceId) {
        // Where that fails, it runs out.
        let _ = self.eval::<i64>(DROP, key, &[&given(node, id)]).await;
    }

    /// Nothing was placed.
    pub(crate) async fn give_up(&self, key: &str) {
        // Where that fails, it runs out.
        let _ = self.eval::<i64>(DROP, key, &[&self.claim]).await;
    }

    /// Whether nobody has come for it, so that it may be given back. Not when Redis does not tell.
    pub(crate) async fn still_unclaimed(&self, key: &str, node: &str, id: &InstanceId) -> bool {
        self.eval::<i64>(DROP, key, &[&unclaimed(node, id)]).await.is_ok_and(|free| free == 1)
    }

    /// Whether there is a lease under the key, as far as Redis tells.
    pub(crate) async fn is_given(&self, key: &str) -> bool {
        self.held(key).await.is_some_and(|held| !held.starts_with("claim "))
    }

    async fn held(&self, key: &str) -> Option<String> {
        let held: Result<Option<String>, Away> =
            self.reach(redis::cmd("GET").arg(format!("{PREFIX}{key}"))).await;
        held.ok().flatten()
    }

    /// Whether a lease on this node was given out under the key by any master.
    pub(crate) async fn given_at(&self, key: &str, wanted: &str) -> bool {
        let held = self.held(key).await;
        held.is_some_and(|held| matches!(read(&held), Standing::Given { node, .. } if node == wanted))
    }
}

fn given(node: &str, id: &InstanceId) -> String {
    format!("given {id} {node}")
}

fn unclaimed(node: &str, id: &InstanceId) -> String {
    format!("unclaimed {id} {node}")
}

fn read(held: &str) -> Standing {
    let mut words = held.splitn(3, ' ').skip(1);
    match (held.starts_with("given "), words.next().map(str::parse), words.next()) {
        (true, Some(Ok(id)), Some(node)) => Standing::Given { node: node.to_owned(), id },
        _ => Standing::Elsewhere,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::LeaseId;

    #[test]
    fn what_is_written_is_read() {
        let id = InstanceId { lease: LeaseId::new(), slot: 9000 };
        let node = "http://10.0.0.5:8080".to_owned();
        assert_eq!(read(&given(&node, &id)), Standing::Given { node: node.clone(), id });
        for other in ["claim abc".to_owned(), unclaimed(&node, &id), "given nonsense".into(), String::new()] {
            assert_eq!(read(&other), Standing::Elsewhere, "{other}");
        }
    }
}
