//! Key states in this process: a table for owners that have a lock of their own, and the store of a single master.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use proto::InstanceId;
use tokio::time::Instant;

use super::{
    Action, Event, IdempotencyStore, KeyState, NodeLease, Retention, Unavailable, must_write, transition,
};

/// Above this many entries, expired ones are removed.
const CLEANUP_THRESHOLD: usize = 10_000;

/// A lease that a key can have.
pub(crate) trait KeyLease: Clone + PartialEq {
    fn id(&self) -> InstanceId;
}

impl KeyLease for InstanceId {
    fn id(&self) -> InstanceId {
        *self
    }
}

impl KeyLease for NodeLease {
    fn id(&self) -> InstanceId {
        self.id
    }
}

struct Entry<L> {
    state: KeyState<L>,
    /// `None` never expires.
    expires: Option<Instant>,
}

/// Maps keys to their states. Keys without an entry are free. No operation looks at every entry, except for a cleanup when
/// their number has doubled.
pub(crate) struct KeyTable<L> {
    entries: HashMap<String, Entry<L>>,
    /// The keys of each lease that an entry has.
    keys: HashMap<InstanceId, Vec<String>>,
    cleanup_at: usize,
    retention: Retention,
}

impl<L: KeyLease> KeyTable<L> {
    pub(crate) fn new(retention: Retention) -> Self {
        Self { entries: HashMap::new(), keys: HashMap::new(), cleanup_at: CLEANUP_THRESHOLD, retention }
    }

    pub(crate) fn state(&self, key: &str) -> KeyState<L> {
        let entry = self.entries.get(key).filter(|entry| !entry.is_expired(Instant::now()));
        entry.map_or(KeyState::Free, |entry| entry.state.clone())
    }

    pub(crate) fn apply(&mut self, key: &str, event: &Event<L>) -> Action<L> {
        let before = self.state(key);
        let (after, action) = transition(&before, event);
        if must_write(&before, &after, &action) {
            self.write(key, after);
        }
        action
    }

    fn write(&mut self, key: &str, state: KeyState<L>) {
        self.remove(key);
        if state == KeyState::Free {
            return;
        }
        if self.entries.len() >= self.cleanup_at {
            self.remove_expired();
        }
        if let Some(lease) = state.lease() {
            self.keys.entry(lease.id()).or_default().push(key.to_owned());
        }
        let expires = Instant::now().checked_add(self.retention.of(&state));
        self.entries.insert(key.to_owned(), Entry { state, expires });
    }

    fn remove(&mut self, key: &str) {
        let Some(entry) = self.entries.remove(key) else { return };
        let Some(lease) = entry.state.lease() else { return };
        if let Some(keys) = self.keys.get_mut(&lease.id()) {
            keys.retain(|other| other != key);
            if keys.is_empty() {
                self.keys.remove(&lease.id());
            }
        }
    }

    fn remove_expired(&mut self) {
        let now = Instant::now();
        let expired = self.entries.iter().filter(|(_, entry)| entry.is_expired(now));
        let expired: Vec<String> = expired.map(|(key, _)| key.clone()).collect();
        for key in expired {
            self.remove(&key);
        }
        self.cleanup_at = CLEANUP_THRESHOLD.max(2 * self.entries.len());
    }

    /// Frees every key of a lease, and returns those keys with their leases.
    pub(crate) fn end(&mut self, id: &InstanceId) -> Vec<(String, L)> {
        let keys = self.keys.remove(id).unwrap_or_default();
        let ended = keys.into_iter().filter_map(|key| {
            let entry = self.entries.remove(&key)?;
            Some((key, entry.state.lease()?.clone()))
        });
        ended.collect()
    }
}

impl<L> Entry<L> {
    fn is_expired(&self, now: Instant) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }
}

/// The keys of one master, in its memory.
pub(crate) struct MemoryStore(Mutex<KeyTable<NodeLease>>);

impl MemoryStore {
    pub(crate) fn new(retention: Retention) -> Self {
        Self(Mutex::new(KeyTable::new(retention)))
    }

    fn table(&self) -> MutexGuard<'_, KeyTable<NodeLease>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn apply_now(&self, key: &str, event: &Event<NodeLease>) -> Action<NodeLease> {
        self.table().apply(key, event)
    }

    pub(super) fn state_now(&self, key: &str) -> KeyState<NodeLease> {
        self.table().state(key)
    }

    pub(super) fn end(&self, id: &InstanceId) -> Vec<(String, NodeLease)> {
        self.table().end(id)
    }
}

impl IdempotencyStore for MemoryStore {
    async fn apply(&self, key: &str, event: &Event<NodeLease>) -> Result<Action<NodeLease>, Unavailable> {
        Ok(self.apply_now(key, event))
    }

    async fn state(&self, key: &str) -> Result<KeyState<NodeLease>, Unavailable> {
        Ok(self.state_now(key))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proto::LeaseId;

    use super::*;

    fn lease() -> InstanceId {
        InstanceId { lease: LeaseId::new(), slot: 9000 }
    }

    fn grant(table: &mut KeyTable<InstanceId>, key: &str, lease: InstanceId) {
        table.apply(key, &Event::Leased { lease });
        table.apply(key, &Event::Answered { lease });
    }

    #[test]
    fn end_of_a_lease_frees_its_keys_only() {
        let mut table = KeyTable::new(Retention::FOREVER);
        let (ended, other) = (lease(), lease());
        for (key, lease) in [("a", ended), ("b", ended), ("c", other)] {
            grant(&mut table, key, lease);
        }
        let mut freed = table.end(&ended);
        freed.sort();
        assert_eq!(freed, [("a".to_owned(), ended), ("b".to_owned(), ended)]);
        assert_eq!((table.state("a").lease(), table.state("c").lease()), (None, Some(&other)));
        assert!(table.end(&ended).is_empty());
        assert_eq!(table.keys.len(), 1);
    }

    #[test]
    fn key_with_a_new_lease_outlives_the_old_one() {
        let mut table = KeyTable::new(Retention::FOREVER);
        let (old, new) = (lease(), lease());
        grant(&mut table, "k", old);
        table.apply("k", &Event::Ended { lease: old });
        grant(&mut table, "k", new);
        assert!(table.end(&old).is_empty());
        assert_eq!(table.state("k").lease(), Some(&new));
    }

    #[tokio::test(start_paused = true)]
    async fn expired_entries_are_removed() {
        let mut table = KeyTable::new(Retention::default());
        for number in 0..CLEANUP_THRESHOLD {
            grant(&mut table, &number.to_string(), lease());
        }
        tokio::time::advance(Duration::from_hours(1)).await;
        grant(&mut table, "new", lease());
        assert_eq!((table.entries.len(), table.keys.len()), (1, 1));
    }
}
