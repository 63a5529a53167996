//! A lease on its way to the client that asked for it.

use std::sync::Arc;

use super::{Master, NodeEntry};
use crate::{access::LeaseAccess, idempotency::NodeLease, pool::PendingLease};

/// A lease to answer `/get` with. Dropping it before [`LeaseOffer::deliver`] means that the client disconnected.
#[must_use = "a lease that is not delivered is released or kept for a retry"]
pub(crate) struct LeaseOffer {
    pub(crate) lease: NodeLease,
    origin: LeaseOrigin,
}

/// Where an offered lease comes from, which decides what happens if it is not delivered.
enum LeaseOrigin {
    /// An earlier request: nothing to undo.
    Existing,
    /// This request, without a key: the lease is released.
    New(PendingLease),
    /// This request, under a key: the lease is kept for a while, in case the client asks again.
    Keyed { pending: PendingLease, key: String, entry: Arc<NodeEntry>, master: Master },
}

impl LeaseOffer {
    pub(super) fn existing(lease: NodeLease) -> Self {
        Self { lease, origin: LeaseOrigin::Existing }
    }

    pub(super) fn new(lease: NodeLease, pending: PendingLease) -> Self {
        Self { lease, origin: LeaseOrigin::New(pending) }
    }

    pub(super) fn keyed(
        lease: NodeLease,
        pending: PendingLease,
        key: String,
        entry: Arc<NodeEntry>,
        master: Master,
    ) -> Self {
        Self { lease, origin: LeaseOrigin::Keyed { pending, key, entry, master } }
    }

    /// Returns how CDP clients reach the lease, if the node said so when it granted it.
    pub(crate) fn access(&self) -> Option<&LeaseAccess> {
        match &self.origin {
            LeaseOrigin::Existing => None,
            LeaseOrigin::New(pending) | LeaseOrigin::Keyed { pending, .. } => pending.access(),
        }
    }

    /// Records that the client is being answered.
    pub(crate) fn deliver(mut self) {
        match std::mem::replace(&mut self.origin, LeaseOrigin::Existing) {
            LeaseOrigin::Existing => {}
            LeaseOrigin::New(pending) => pending.deliver(),
            LeaseOrigin::Keyed { pending, key, master, .. } => {
                pending.deliver();
                master.record_answer(key, self.lease.clone());
            }
        }
    }
}

impl Drop for LeaseOffer {
    fn drop(&mut self) {
        if let LeaseOrigin::Keyed { pending, key, entry, master } =
            std::mem::replace(&mut self.origin, LeaseOrigin::Existing)
        {
            master.keep_for_retry(key, &entry, pending);
        }
    }
}
