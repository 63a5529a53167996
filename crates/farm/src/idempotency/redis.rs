//! Key states in Redis, shared by several masters. The next state is computed here, with the same transition
//! function as everywhere, and written by a compare-and-set script: a transition happens atomically or is computed
//! again from the state that another master wrote meanwhile.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use super::{
    Action, Event, IdempotencyStore, KeyState, NodeLease, Retention, Unavailable, must_write, transition,
};
use crate::registry::RedisConnection;

pub(super) const KEY_PREFIX: &str = "webgym:keys:";
/// A healthy Redis answers within a millisecond.
const REPLY_TIMEOUT: Duration = Duration::from_secs(2);
/// After a failure Redis is not asked for this long: leases must not wait for a server that is down.
const FAILURE_BACKOFF: Duration = Duration::from_secs(5);
/// Maximum attempts of one transition. After a wrong first guess, each further conflict means that another request
/// changed the key meanwhile, so more than a few in a row are unlikely.
const MAX_CONFLICTS: usize = 32;

/// If the key still has the value `ARGV[1]`, writes `ARGV[2]` for `ARGV[3]` milliseconds (0: writes nothing) and returns
/// nil; otherwise returns the current value. The empty string stands for an absent key.
const COMPARE_AND_SET: &str = "
local held = redis.call('GET', KEYS[1]) or ''
if held ~= ARGV[1] then return held end
if ARGV[3] == '0' then return false end
if ARGV[2] == '' then redis.call('DEL', KEYS[1])
else redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) end
return false";

pub(crate) struct RedisStore {
    connection: RedisConnection,
    retention: Retention,
    /// The master whose claims are expected in [`RedisStore::likely_state`].
    owner: String,
    /// Redis failed lately and is not asked before this time.
    unavailable_until: Mutex<Option<Instant>>,
}

impl RedisStore {
    pub(crate) fn new(connection: RedisConnection, retention: Retention, owner: String) -> Self {
        Self { connection, retention, owner, unavailable_until: Mutex::default() }
    }

    /// Returns the state in which an event usually arrives. A wrong guess costs a second round trip.
    fn likely_state(&self, event: &Event<NodeLease>) -> KeyState<NodeLease> {
        match event {
            Event::Lookup | Event::Claim { .. } => KeyState::Free,
            Event::PlacementFailed { .. } | Event::Leased { .. } => {
                KeyState::Claimed { by: self.owner.clone() }
            }
            Event::Answered { lease } | Event::GraceExpired { lease } => {
                KeyState::Undelivered { lease: lease.clone() }
            }
            Event::Ended { lease } => KeyState::Granted { lease: lease.clone() },
        }
    }

    fn unavailable_until(&self) -> MutexGuard<'_, Option<Instant>> {
        self.unavailable_until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn run<T: redis::FromRedisValue>(&self, command: &redis::Cmd) -> Result<T, Unavailable> {
        if self.unavailable_until().is_some_and(|until| Instant::now() < until) {
            return Err(Unavailable);
        }
        let error = match tokio::time::timeout(REPLY_TIMEOUT, self.connection.run(command)).await {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no reply within {REPLY_TIMEOUT:?}"),
        };
        tracing::warn!(error, "idempotency keys are not shared with other masters at the moment");
        *self.unavailable_until() = Some(Instant::now() + FAILURE_BACKOFF);
        Err(Unavailable)
    }

    /// Returns the current value if it is not `expected` (the key is then unchanged).
    async fn compare_and_set(
        &self,
        key: &str,
        expected: &str,
        value: &str,
        retention: Duration,
    ) -> Result<Option<String>, Unavailable> {
        let mut command = redis::cmd("EVAL");
        command.arg(COMPARE_AND_SET).arg(1).arg(format!("{KEY_PREFIX}{key}"));
        command.arg(expected).arg(value).arg(u64::try_from(retention.as_millis()).unwrap_or(u64::MAX));
        self.run(&command).await
    }
}

impl IdempotencyStore for RedisStore {
    async fn apply(&self, key: &str, event: &Event<NodeLease>) -> Result<Action<NodeLease>, Unavailable> {
        let mut value = encode(&self.likely_state(event));
        for _ in 0..MAX_CONFLICTS {
            let before = decode(&value);
            let (after, action) = transition(&before, event);
            let written = must_write(&before, &after, &action);
            let retention = if written { self.retention.of(&after) } else { Duration::ZERO };
            match self.compare_and_set(key, &value, &encode(&after), retention).await? {
                None => return Ok(action),
                Some(current) => value = current,
            }
        }
        tracing::warn!(key, "an idempotency key changes too fast to be updated");
        Err(Unavailable)
    }

    async fn state(&self, key: &str) -> Result<KeyState<NodeLease>, Unavailable> {
        let mut command = redis::cmd("GET");
        command.arg(format!("{KEY_PREFIX}{key}"));
        let value: Option<String> = self.run(&command).await?;
        Ok(decode(&value.unwrap_or_default()))
    }
}

fn encode(state: &KeyState<NodeLease>) -> String {
    match state {
        KeyState::Free => String::new(),
        KeyState::Claimed { by } => format!("claim {by}"),
        KeyState::Undelivered { lease: NodeLease { node, id } } => format!("unclaimed {id} {node}"),
        KeyState::Granted { lease: NodeLease { node, id } } => format!("given {id} {node}"),
    }
}

/// Reads a value from Redis. A value that this version does not know counts as the claim of another master.
fn decode(value: &str) -> KeyState<NodeLease> {
    let lease = |text: &str| {
        let (id, node) = text.split_once(' ')?;
        Some(NodeLease { node: node.to_owned(), id: id.parse().ok()? })
    };
    let known = match value.split_once(' ') {
        None if value.is_empty() => Some(KeyState::Free),
        Some(("claim", by)) => Some(KeyState::Claimed { by: by.to_owned() }),
        Some(("unclaimed", text)) => lease(text).map(|lease| KeyState::Undelivered { lease }),
        Some(("given", text)) => lease(text).map(|lease| KeyState::Granted { lease }),
        _ => None,
    };
    known.unwrap_or_else(|| KeyState::Claimed { by: value.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::{InstanceId, LeaseId};

    #[test]
    fn encoded_states_are_decoded_unchanged() {
        let id = InstanceId { lease: LeaseId::new(), slot: 9000 };
        let lease = NodeLease { node: "http://10.0.0.5:8080".into(), id };
        let states = [
            (KeyState::Free, String::new()),
            (KeyState::Claimed { by: "abc".into() }, "claim abc".into()),
            (KeyState::Undelivered { lease: lease.clone() }, format!("unclaimed {id} http://10.0.0.5:8080")),
            (KeyState::Granted { lease }, format!("given {id} http://10.0.0.5:8080")),
        ];
        for (state, value) in states {
            assert_eq!(encode(&state), value);
            assert_eq!(decode(&value), state);
        }
    }

    #[test]
    fn unknown_value_is_a_foreign_claim() {
        for value in ["given nonsense", "given x http://node", "later 1", "x"] {
            assert_eq!(decode(value), KeyState::Claimed { by: value.into() }, "{value}");
        }
    }
}
