//! Idempotent lease acquisition: a client that repeats `/get` with the same `idempotency_key` gets the same lease.
//!
//! Each key is a small state machine ([`KeyState`]). A pure function ([`transition`]) decides the next state and
//! what the caller has to do; stores only keep the states and apply that function atomically. A pool keeps the keys
//! of its own leases in a [`KeyTable`] under its lock. A master uses [`LeaseKeys`]: its own memory, and Redis where
//! several masters share their keys.
//!
//! ```text
//!                Claim               Leased                  Answered
//!                                                            Lookup, Claim (a retry)
//!   ┌──────┐ ────────────▶ ┌─────────┐ ─────▶ ┌─────────────┐ ─────────▶ ┌─────────┐
//!   │ Free │               │ Claimed │        │ Undelivered │            │ Granted │
//!   └──────┘ ◀──────────── └─────────┘        └─────────────┘            └─────────┘
//!      ▲    PlacementFailed                          │                        │
//!      │    or after 10 s                            │ GraceExpired (60 s)    │ Ended
//!      │                                             │ or Ended               │ or after 15 min
//!      └─────────────────────────────────────────────┴────────────────────────┘
//! ```
//!
//! * `Claimed`: only the claiming master asks nodes for a lease; a claim expires in case that master dies.
//! * `Undelivered`: the lease exists, but its client may have disconnected. In that case the master waits 60 s for a
//!   retry and then releases the lease (`GraceExpired`).
//! * `Granted`: a client was answered. Every further request under the key is answered with the same lease, as long
//!   as its node has it; otherwise the key is freed (`Ended`) and claimed again.

mod layered;
mod memory;
mod redis;
mod state;

use std::{future::Future, time::Duration};

use proto::InstanceId;

pub(crate) use layered::LeaseKeys;
pub(crate) use memory::{KeyTable, MemoryStore};
pub(crate) use redis::RedisStore;
pub(crate) use state::{Action, Event, KeyState, transition};

/// A lease and the address of the node that has it.
#[derive(Clone, Debug, Eq)]
pub(crate) struct NodeLease {
    pub(crate) node: String,
    pub(crate) id: InstanceId,
}

/// Ids are unique, while masters may know one node under different addresses.
impl PartialEq for NodeLease {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

/// The store cannot be reached at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unavailable;

/// Keeps the states of a master's keys.
pub(crate) trait IdempotencyStore: Send + Sync {
    /// Applies [`transition`] to the key's state, atomically.
    fn apply(
        &self,
        key: &str,
        event: &Event<NodeLease>,
    ) -> impl Future<Output = Result<Action<NodeLease>, Unavailable>> + Send;

    /// Returns the key's current state.
    fn state(&self, key: &str) -> impl Future<Output = Result<KeyState<NodeLease>, Unavailable>> + Send;
}

/// How long a store remembers a state that does not change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retention {
    /// Short, so that a master that died while placing a lease does not block the key.
    pub(crate) claim: Duration,
    /// Clients retry a lost response within minutes.
    pub(crate) lease: Duration,
}

impl Retention {
    pub(crate) const FOREVER: Self = Self { claim: Duration::MAX, lease: Duration::MAX };

    fn of<L>(&self, state: &KeyState<L>) -> Duration {
        match state {
            KeyState::Free | KeyState::Claimed { .. } => self.claim,
            KeyState::Undelivered { .. } | KeyState::Granted { .. } => self.lease,
        }
    }
}

impl Default for Retention {
    fn default() -> Self {
        Self { claim: Duration::from_secs(10), lease: Duration::from_mins(15) }
    }
}

/// Returns whether to write the state: if it changed, or to extend a claim that the same master repeats.
fn must_write<L: PartialEq>(before: &KeyState<L>, after: &KeyState<L>, action: &Action<L>) -> bool {
    before != after || *action == Action::Place
}

#[cfg(test)]
mod contract;
