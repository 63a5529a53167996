//! What was given out under an idempotency key, so that asking again gives the same and not another.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use proto::InstanceId;

/// A client that lost an answer asks again soon or never.
const KEY_LIFE: Duration = Duration::from_secs(15 * 60);
const MANY: usize = 10_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    pub(crate) node: String,
    pub(crate) id: InstanceId,
    /// How often its client was there to hear of it.
    claims: usize,
    at: Instant,
}

impl Given {
    pub(crate) fn new(node: &str, id: InstanceId, claimed: bool) -> Self {
        Self { node: node.to_owned(), id, claims: claimed.into(), at: Instant::now() }
    }

    pub(crate) const fn claimed(&self) -> bool {
        self.claims > 0
    }
}

#[derive(Default)]
pub(crate) struct Keys(Mutex<HashMap<String, Given>>);

impl Keys {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Given>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn find(&self, key: &str) -> Option<Given> {
        self.lock().get(key).filter(|given| given.at.elapsed() < KEY_LIFE).cloned()
    }

    /// Remembers what was given under a key, unless something was already; then that is returned.
    pub(crate) fn remember(&self, key: &str, given: Given) -> Given {
        let mut keys = self.lock();
        if keys.len() > MANY {
            keys.retain(|_, given| given.at.elapsed() < KEY_LIFE);
        }
        match keys.get_mut(key) {
            Some(held) => {
                held.claims += given.claims;
                held.clone()
            }
            None => {
                keys.insert(key.to_owned(), given.clone());
                given
            }
        }
    }

    /// One who was to hear of it has hung up before.
    pub(crate) fn unclaim(&self, key: &str, id: &InstanceId) {
        if let Some(held) = self.lock().get_mut(key).filter(|held| held.id == *id) {
            held.claims = held.claims.saturating_sub(1);
        }
    }

    /// Drops the key if it still stands for this.
    pub(crate) fn drop_if(&self, key: &str, unwanted: impl FnOnce(&Given) -> bool) -> bool {
        let mut keys = self.lock();
        let found = keys.get(key).is_some_and(unwanted);
        if found {
            keys.remove(key);
        }
        found
    }

    /// The lease is over. Answers with the keys it was given under.
    pub(crate) fn forget(&self, id: &InstanceId) -> Vec<(String, Given)> {
        self.lock().extract_if(|_, given| given.id == *id).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::LeaseId;

    fn given(claimed: bool) -> Given {
        Given::new("http://node", InstanceId { lease: LeaseId::new(), slot: 9000 }, claimed)
    }

    #[test]
    fn the_first_under_a_key_stays() {
        let keys = Keys::default();
        let (first, second) = (given(false), given(true));
        assert_eq!(keys.remember("k", first.clone()), first);
        let held = keys.remember("k", second);
        assert_eq!(held.id, first.id);
        assert!(held.claimed(), "somebody has heard of it by now");
        keys.unclaim("k", &InstanceId { lease: LeaseId::new(), slot: 9000 });
        assert!(keys.find("k").is_some_and(|held| held.claimed()), "another lease is another's");
        keys.unclaim("k", &first.id);
        assert!(keys.find("k").is_some_and(|held| !held.claimed()), "who should have heard is gone");
        let forgotten: Vec<String> = keys.forget(&first.id).into_iter().map(|(key, _)| key).collect();
        assert_eq!(forgotten, ["k"]);
        assert_eq!(keys.find("k"), None);
    }

    #[test]
    fn only_what_is_unwanted_is_dropped() {
        let keys = Keys::default();
        keys.remember("k", given(true));
        assert!(!keys.drop_if("k", |given| !given.claimed()));
        assert!(keys.find("k").is_some());
        assert!(keys.drop_if("k", Given::claimed));
        assert!(!keys.drop_if("k", |_| true));
    }
}
