//! Key states in this process: a table for owners that have a lock of their own, and the store of a single master.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::time::Instant;

use super::{
    Action, Event, IdempotencyStore, KeyState, NodeLease, Retention, Unavailable, must_write, transition,
};

/// Above this many entries, expired ones are removed.
const CLEANUP_THRESHOLD: usize = 10_000;

struct Entry<L> {
    state: KeyState<L>,
    /// `None` never expires.
    expires: Option<Instant>,
}

/// Maps keys to their states. Keys without an entry are free.
pub(crate) struct KeyTable<L> {
    entries: HashMap<String, Entry<L>>,
    retention: Retention,
}

impl<L: Clone + PartialEq> KeyTable<L> {
    pub(crate) fn new(retention: Retention) -> Self {
        Self { entries: HashMap::new(), retention }
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
        if state == KeyState::Free {
            self.entries.remove(key);
            return;
        }
        let now = Instant::now();
        if self.entries.len() > CLEANUP_THRESHOLD {
            self.entries.retain(|_, entry| !entry.is_expired(now));
        }
        let expires = now.checked_add(self.retention.of(&state));
        self.entries.insert(key.to_owned(), Entry { state, expires });
    }

    /// Frees every key whose lease matches, and returns those keys with their leases.
    pub(crate) fn end(&mut self, is_ended: impl Fn(&L) -> bool) -> Vec<(String, L)> {
        let ended = self.entries.extract_if(|_, entry| entry.state.lease().is_some_and(&is_ended));
        ended.filter_map(|(key, entry)| Some((key, entry.state.lease()?.clone()))).collect()
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

    pub(super) fn end(&self, is_ended: impl Fn(&NodeLease) -> bool) -> Vec<(String, NodeLease)> {
        self.table().end(is_ended)
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
