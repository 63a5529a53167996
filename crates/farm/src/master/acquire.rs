//! `/get` of the master: finds a node with a free slot, and ensures that no lease leaks when a client disconnects or a
//! node's response is lost. See [`crate::idempotency`] for the states of a key.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::sync::oneshot;

use super::{LeaseOffer, Master, NodeEntry, schedule::Asked};
use crate::{
    error::ApiError,
    idempotency::{Action, Event, NodeLease},
    node::{GetRequest, Node},
    pool::{PendingLease, default_wait},
};

/// How long a lease under a key is kept for a client that disconnected before it was answered.
const RETRY_GRACE: Duration = Duration::from_mins(1);
/// How often a queued request checks whether another master has served its key.
const LOOKUP_INTERVAL: Duration = Duration::from_secs(1);

/// What became of a lease that a node granted.
enum Leased {
    Offer(LeaseOffer),
    /// The key already has another lease; the new one was released.
    Duplicate {
        key: String,
    },
}

impl Master {
    /// Acquires a lease on the node with the most free slots: now, or within the requested wait, first come first
    /// served.
    pub(crate) async fn get(&self, request: &GetRequest) -> Result<LeaseOffer, ApiError> {
        let wait = request.wait.unwrap_or_else(|| self.default_wait());
        if wait.is_zero() && self.waiting() == 0 {
            return self.try_get(request).await;
        }
        let attempt = || async {
            match self.try_get(request).await {
                Err(error @ ApiError::NoCapacity(_)) => Ok(Err(error)),
                Err(error) => Err(error),
                Ok(offer) => Ok(Ok(offer)),
            }
        };
        let too_late = || ApiError::NoCapacity(None);
        tokio::select! {
            biased;
            offer = self.0.queue.acquire(Instant::now() + wait, attempt, too_late) => offer,
            offer = self.look_up_while_queued(request.key.as_deref()) => Ok(offer),
        }
    }

    fn default_wait(&self) -> Duration {
        let (held_back, starting) = self.table().hints();
        default_wait(held_back, starting)
    }

    /// Waits for a lease under the key that this request need not queue for. The request at the head of the queue may
    /// be waiting for exactly that slot, so waiting behind it could block both.
    async fn look_up_while_queued(&self, key: Option<&str>) -> LeaseOffer {
        let Some(key) = key else { return std::future::pending().await };
        loop {
            if let Some(lease) = self.look_up(key).await {
                return LeaseOffer::existing(lease);
            }
            tokio::time::sleep(LOOKUP_INTERVAL).await;
        }
    }

    /// Returns the lease that an earlier request under the key got, if its node still has it.
    async fn look_up(&self, key: &str) -> Option<NodeLease> {
        match self.0.keys.apply(key, &Event::Lookup).await {
            Action::Reuse(lease) => self.reuse(key, lease).await,
            _ => None,
        }
    }

    /// Frees the key if the node no longer has the lease.
    async fn reuse(&self, key: &str, lease: NodeLease) -> Option<NodeLease> {
        if self.is_held(&lease).await {
            return Some(lease);
        }
        self.0.keys.apply(key, &Event::Ended { lease }).await;
        None
    }

    async fn is_held(&self, lease: &NodeLease) -> bool {
        match self.table().route(&lease.node) {
            Some(entry) => entry.node().info().await.is_ok_and(|info| info.holds(&lease.id)),
            None => false,
        }
    }

    /// Makes one attempt. Under a key, only one master makes it at a time.
    async fn try_get(&self, request: &GetRequest) -> Result<LeaseOffer, ApiError> {
        let Some(key) = request.key.as_deref() else { return self.place(request).await };
        let claim = Event::Claim { by: self.0.keys.owner() };
        let mut action = self.0.keys.apply(key, &claim).await;
        if let Action::Reuse(lease) = action {
            if let Some(lease) = self.reuse(key, lease).await {
                return Ok(LeaseOffer::existing(lease));
            }
            action = self.0.keys.apply(key, &claim).await;
        }
        if action != Action::Place {
            return Err(ApiError::NoCapacity(Some("another master is serving this key".into())));
        }
        let placed = self.place(request).await;
        if placed.is_err() {
            self.0.keys.apply(key, &Event::PlacementFailed { by: self.0.keys.owner() }).await;
        }
        placed
    }

    /// Asks one node after another, the one with the most free slots first. A full node is not an error while there is
    /// another to ask.
    async fn place(&self, request: &GetRequest) -> Result<LeaseOffer, ApiError> {
        if self.is_stopping() {
            return Err(ApiError::ShuttingDown);
        }
        let mut full = ApiError::NoCapacity(None);
        let mut asked = Asked::default();
        while let Some(entry) = self.table().next_to_ask(&mut asked) {
            if !request.options.is_default() && !entry.accepts_options() {
                full = ApiError::NoCapacity(Some("no node with a free slot accepts session options".into()));
                continue;
            }
            match self.ask(&entry, request).await {
                Ok(Leased::Offer(offer)) => return Ok(offer),
                Ok(Leased::Duplicate { key }) => {
                    return self.look_up(&key).await.map(LeaseOffer::existing).ok_or(full);
                }
                Err(error @ ApiError::NoCapacity(_)) => full = error,
                Err(ApiError::ShuttingDown | ApiError::Draining | ApiError::NodeUnreachable { .. }) => {}
                // No node would accept this request.
                Err(error) => return Err(error),
            }
        }
        Err(full)
    }

    /// Asks the node of a lease for a fork of it. Nodes do the waiting: no other has the lease.
    pub(crate) async fn fork(&self, node: &str, request: &GetRequest) -> Result<LeaseOffer, ApiError> {
        let unknown = || ApiError::UnknownNode(node.to_owned());
        let entry = self.table().route(node).ok_or_else(unknown)?;
        if !entry.accepts_options() {
            return Err(ApiError::BadRequest("a node of the Python system cannot fork leases".into()));
        }
        if let Some(lease) = match &request.key {
            Some(key) => self.look_up(key).await,
            None => None,
        } {
            return Ok(LeaseOffer::existing(lease));
        }
        match self.ask(&entry, request).await? {
            Leased::Offer(offer) => Ok(offer),
            Leased::Duplicate { key } => {
                self.look_up(&key).await.map(LeaseOffer::existing).ok_or(ApiError::NoCapacity(None))
            }
        }
    }

    /// Asks one node, in a task that continues if our client disconnects meanwhile: only its result shows what has to
    /// be released.
    async fn ask(&self, entry: &Arc<NodeEntry>, request: &GetRequest) -> Result<Leased, ApiError> {
        // The master does the waiting. A request without a key gets one, so that a lost response can be recovered.
        let node_key = request.key.clone().unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
        let wait = if request.fork.is_some() { request.wait } else { Some(Duration::ZERO) };
        let node_request = GetRequest { wait, key: Some(node_key), ..request.clone() };
        let (sender, receiver) = oneshot::channel();
        let (master, entry, key) = (self.clone(), Arc::clone(entry), request.key.clone());
        self.0.tasks.spawn("ask node", async move {
            let answer = match master.lease_on(&entry, node_request).await {
                Ok(pending) => Ok(master.record_lease(&entry, key, pending).await),
                Err(error) => Err(error),
            };
            let _ = sender.send(answer);
        });
        receiver.await.unwrap_or(Err(ApiError::ShuttingDown))
    }

    /// Asks a node for a lease and updates what we know about the node.
    async fn lease_on(&self, entry: &Arc<NodeEntry>, request: GetRequest) -> Result<PendingLease, ApiError> {
        let reservation = entry.reserve();
        let answer = entry.node().get(&request).await;
        drop(reservation);
        match &answer {
            Ok(pending) => entry.record_lease(pending.id()),
            Err(ApiError::NoCapacity(_) | ApiError::ShuttingDown | ApiError::Draining) => entry.mark_full(),
            Err(error @ ApiError::NodeUnreachable { .. }) => {
                tracing::warn!(node = entry.hash(), %error, "node did not answer");
                entry.mark_unreachable();
                self.recover_lost_lease(Arc::clone(entry), request);
            }
            Err(_) => {}
        }
        answer
    }

    async fn record_lease(
        &self,
        entry: &Arc<NodeEntry>,
        key: Option<String>,
        pending: PendingLease,
    ) -> Leased {
        let lease = NodeLease { node: entry.hash().to_owned(), id: *pending.id() };
        let Some(key) = key else { return Leased::Offer(LeaseOffer::new(lease, pending)) };
        match self.0.keys.apply(&key, &Event::Leased { lease: lease.clone() }).await {
            Action::Discard => {
                entry.record_release(pending.id());
                Leased::Duplicate { key }
            }
            _ => Leased::Offer(LeaseOffer::keyed(lease, pending, key, Arc::clone(entry), self.clone())),
        }
    }

    /// Records that a client is being answered with the lease under its key.
    pub(super) fn record_answer(&self, key: String, lease: NodeLease) {
        let master = self.clone();
        self.0.tasks.spawn("record answer", async move {
            master.0.keys.apply(&key, &Event::Answered { lease }).await;
        });
    }

    /// Keeps a lease whose client disconnected, and releases it unless the client asks again under its key.
    pub(super) fn keep_for_retry(&self, key: String, entry: &Arc<NodeEntry>, pending: PendingLease) {
        let (master, entry) = (self.clone(), Arc::clone(entry));
        self.0.tasks.spawn_until_stopped("keep for retry", async move {
            tokio::time::sleep(RETRY_GRACE).await;
            let lease = NodeLease { node: entry.hash().to_owned(), id: *pending.id() };
            match master.0.keys.apply(&key, &Event::GraceExpired { lease }).await {
                Action::Release => {
                    entry.record_release(pending.id());
                    drop(pending);
                }
                _ => pending.deliver(),
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use proto::{InstanceId, LeaseId};

    use super::*;
    use crate::{
        idempotency::LeaseKeys,
        master::{NodeTable, Origin},
        node::{AnyNode, HttpClient, RemoteNode},
        options::ServerLimits,
        tasks::Tasks,
    };

    fn start_master() -> Master {
        let keys = LeaseKeys::new("a".into(), None);
        Master::start(NodeTable::default(), ServerLimits::default(), None, keys, &Tasks::default())
    }

    fn unreachable_node() -> Arc<NodeEntry> {
        let node = RemoteNode {
            url: "http://127.0.0.1:1".into(),
            key: axum::http::HeaderValue::from_static("k"),
            client: HttpClient::new(),
            request_timeout: Duration::ZERO,
            info_timeout: Duration::ZERO,
        };
        Arc::new(NodeEntry::new(&node.url.clone(), Origin::Configured, AnyNode::Remote(Box::new(node))))
    }

    /// Records a new lease under the key `k`, and counts how often it is released.
    async fn offer(master: &Master, released: &Arc<AtomicUsize>) -> LeaseOffer {
        let released = Arc::clone(released);
        let pending = PendingLease::new(InstanceId { lease: LeaseId::new(), slot: 9000 }, move |_| {
            released.fetch_add(1, Ordering::SeqCst);
        });
        match master.record_lease(&unreachable_node(), Some("k".into()), pending).await {
            Leased::Offer(offer) => offer,
            Leased::Duplicate { .. } => panic!("the key has another lease"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn undelivered_lease_is_released_after_the_grace() {
        let (master, released) = (start_master(), Arc::default());
        drop(offer(&master, &released).await);
        tokio::time::sleep(RETRY_GRACE.mul_f64(0.9)).await;
        assert_eq!(released.load(Ordering::SeqCst), 0, "kept for a retry");
        tokio::time::sleep(RETRY_GRACE.mul_f64(0.2)).await;
        assert_eq!(released.load(Ordering::SeqCst), 1);
        assert_eq!(master.0.keys.lease("k").await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn undelivered_lease_with_a_retry_is_kept() {
        let (master, released) = (start_master(), Arc::default());
        let offer = offer(&master, &released).await;
        let lease = offer.lease.clone();
        drop(offer);
        assert_eq!(master.0.keys.apply("k", &Event::Lookup).await, Action::Reuse(lease.clone()));
        tokio::time::sleep(RETRY_GRACE * 2).await;
        assert_eq!(released.load(Ordering::SeqCst), 0);
        assert_eq!(master.0.keys.lease("k").await, Some(lease));
    }

    #[tokio::test(start_paused = true)]
    async fn second_lease_under_a_key_is_released_at_once() {
        let (master, first, second) = (start_master(), Arc::default(), Arc::new(AtomicUsize::new(0)));
        offer(&master, &first).await.deliver();
        let counter = Arc::clone(&second);
        let pending = PendingLease::new(InstanceId { lease: LeaseId::new(), slot: 9001 }, move |_| {
            counter.fetch_add(1, Ordering::SeqCst);
        });
        let leased = master.record_lease(&unreachable_node(), Some("k".into()), pending).await;
        assert!(matches!(leased, Leased::Duplicate { .. }));
        assert_eq!((first.load(Ordering::SeqCst), second.load(Ordering::SeqCst)), (0, 1));
    }
}
