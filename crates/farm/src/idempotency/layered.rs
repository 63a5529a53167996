//! The keys of a master: its own memory first, then the store that several masters share, if there is one. A lease
//! that this master already knows needs no round trip, and is still known while Redis is down or has lost its data.

use proto::InstanceId;

use super::{Action, Event, IdempotencyStore, MemoryStore, NodeLease, RedisStore, Retention, Unavailable};

pub(crate) struct LeaseKeys<S = RedisStore> {
    memory: MemoryStore,
    shared: Option<S>,
    /// Names this master in its claims.
    owner: String,
}

impl<S: IdempotencyStore> LeaseKeys<S> {
    pub(crate) fn new(owner: String, shared: Option<S>) -> Self {
        Self { memory: MemoryStore::new(Retention::default()), shared, owner }
    }

    pub(crate) fn owner(&self) -> String {
        self.owner.clone()
    }

    pub(crate) fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// Applies an event to the key here, and in the shared store unless this memory alone decides.
    pub(crate) async fn apply(&self, key: &str, event: &Event<NodeLease>) -> Action<NodeLease> {
        let action = self.memory.apply_now(key, event);
        let decided = matches!(action, Action::Reuse(_) | Action::Wait | Action::Discard | Action::Keep);
        match &self.shared {
            Some(shared) if !decided => match shared.apply(key, event).await {
                Ok(shared) => self.adopt(key, event, shared),
                // Another master may have answered a client with the lease.
                Err(Unavailable) if action == Action::Release => Action::Keep,
                Err(Unavailable) => action,
            },
            _ => action,
        }
    }

    /// Records what the shared store decided.
    fn adopt(&self, key: &str, event: &Event<NodeLease>, decision: Action<NodeLease>) -> Action<NodeLease> {
        match (&decision, event) {
            (Action::Reuse(lease), _) => {
                self.memory.apply_now(key, &Event::Leased { lease: lease.clone() });
                self.memory.apply_now(key, &Event::Answered { lease: lease.clone() });
            }
            (Action::Discard, Event::Leased { lease }) => {
                self.memory.apply_now(key, &Event::Ended { lease: lease.clone() });
            }
            _ => {}
        }
        decision
    }

    /// Returns the lease under a key, as far as this memory and the shared store know.
    pub(crate) async fn lease(&self, key: &str) -> Option<NodeLease> {
        let known = self.memory.state_now(key).lease().cloned();
        match &self.shared {
            Some(shared) if known.is_none() => shared.state(key).await.ok()?.lease().cloned(),
            _ => known,
        }
    }

    /// Frees the keys of a lease in memory and returns them for [`LeaseKeys::end_shared`].
    pub(crate) fn end(&self, id: &InstanceId) -> Vec<(String, NodeLease)> {
        self.memory.end(id)
    }

    /// Frees keys in the shared store. A key that cannot be freed now expires there.
    pub(crate) async fn end_shared(&self, ended: Vec<(String, NodeLease)>) {
        let Some(shared) = &self.shared else { return };
        for (key, lease) in ended {
            let _ = shared.apply(&key, &Event::Ended { lease }).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proto::LeaseId;

    use super::*;
    use crate::idempotency::KeyState;

    /// A shared store that may be unavailable (`None`).
    #[derive(Clone)]
    struct OptionalStore(Option<Arc<MemoryStore>>);

    impl IdempotencyStore for OptionalStore {
        async fn apply(&self, key: &str, event: &Event<NodeLease>) -> Result<Action<NodeLease>, Unavailable> {
            self.0.as_ref().map(|store| store.apply_now(key, event)).ok_or(Unavailable)
        }

        async fn state(&self, key: &str) -> Result<KeyState<NodeLease>, Unavailable> {
            self.0.as_ref().map(|store| store.state_now(key)).ok_or(Unavailable)
        }
    }

    fn two_masters() -> [LeaseKeys<OptionalStore>; 2] {
        let shared = OptionalStore(Some(Arc::new(MemoryStore::new(Retention::default()))));
        ["a", "b"].map(|owner| LeaseKeys::new(owner.into(), Some(shared.clone())))
    }

    fn lease(node: &str) -> NodeLease {
        NodeLease { node: node.into(), id: InstanceId { lease: LeaseId::new(), slot: 9000 } }
    }

    async fn claim(master: &LeaseKeys<OptionalStore>) -> Action<NodeLease> {
        master.apply("k", &Event::Claim { by: master.owner() }).await
    }

    #[tokio::test]
    async fn two_masters_place_one_lease_per_key() {
        let [one, other] = two_masters();
        let lease = lease("http://node");
        assert_eq!(claim(&one).await, Action::Place);
        assert_eq!(claim(&other).await, Action::Wait);
        assert_eq!(one.apply("k", &Event::Leased { lease: lease.clone() }).await, Action::Offer);
        assert_eq!(claim(&other).await, Action::Reuse(lease.clone()));
        assert_eq!(other.lease("k").await, Some(lease.clone()));
        let ended = other.end(&lease.id);
        assert_eq!(ended, [("k".to_owned(), lease.clone())]);
        other.end_shared(ended).await;
        assert_eq!(other.lease("k").await, None);
        assert_eq!(one.lease("k").await, Some(lease.clone()), "its own memory, until it asks the node");
        one.apply("k", &Event::Ended { lease }).await;
        assert_eq!(claim(&one).await, Action::Place);
    }

    #[tokio::test]
    async fn undelivered_lease_found_elsewhere_is_kept() {
        let [one, other] = two_masters();
        let lease = lease("http://node");
        one.apply("k", &Event::Leased { lease: lease.clone() }).await;
        assert_eq!(other.apply("k", &Event::Lookup).await, Action::Reuse(lease.clone()));
        assert_eq!(one.apply("k", &Event::GraceExpired { lease }).await, Action::Keep);
    }

    #[tokio::test]
    async fn undelivered_lease_without_retry_is_released() {
        let [one, other] = two_masters();
        let lease = lease("http://node");
        one.apply("k", &Event::Leased { lease: lease.clone() }).await;
        assert_eq!(one.apply("k", &Event::GraceExpired { lease }).await, Action::Release);
        assert_eq!(other.apply("k", &Event::Lookup).await, Action::Nothing);
    }

    #[tokio::test]
    async fn later_lease_of_another_master_is_discarded() {
        let [one, other] = two_masters();
        let (first, second) = (lease("http://one"), lease("http://two"));
        one.apply("k", &Event::Leased { lease: first.clone() }).await;
        assert_eq!(other.apply("k", &Event::Leased { lease: second }).await, Action::Discard);
        assert_eq!(other.apply("k", &Event::Lookup).await, Action::Reuse(first));
    }

    #[tokio::test]
    async fn unavailable_shared_store_leaves_the_decision_to_memory() {
        let master = LeaseKeys::new("a".into(), Some(OptionalStore(None)));
        let lease = lease("http://node");
        assert_eq!(claim(&master).await, Action::Place);
        assert_eq!(master.apply("k", &Event::Leased { lease: lease.clone() }).await, Action::Offer);
        assert_eq!(master.lease("k").await, Some(lease.clone()));
        assert_eq!(
            master.apply("k", &Event::GraceExpired { lease }).await,
            Action::Keep,
            "another master may have answered a client with it"
        );
    }
}
