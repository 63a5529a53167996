//! A lease that has been granted but not yet delivered to its client.

use proto::InstanceId;

use crate::access::LeaseAccess;

type Release = Box<dyn FnOnce(InstanceId) + Send>;

/// A new lease. Dropping it before [`PendingLease::deliver`] releases the instance: the client disconnected.
#[must_use = "a lease that is not delivered is released"]
pub(crate) struct PendingLease {
    id: InstanceId,
    release: Option<Release>,
    access: Option<LeaseAccess>,
}

impl PendingLease {
    pub(crate) fn new(id: InstanceId, release: impl FnOnce(InstanceId) + Send + 'static) -> Self {
        Self { id, release: Some(Box::new(release)), access: None }
    }

    /// A lease that the client already has: dropping it releases nothing.
    pub(crate) fn existing(id: InstanceId) -> Self {
        Self { id, release: None, access: None }
    }

    /// Whether the lease was granted by this request.
    pub(crate) fn is_new(&self) -> bool {
        self.release.is_some()
    }

    pub(crate) fn id(&self) -> &InstanceId {
        &self.id
    }

    /// Adds how CDP clients reach the lease.
    pub(crate) fn with_access(mut self, access: Option<LeaseAccess>) -> Self {
        self.access = access;
        self
    }

    pub(crate) fn access(&self) -> Option<&LeaseAccess> {
        self.access.as_ref()
    }

    pub(crate) fn deliver(mut self) {
        self.release = None;
    }
}

impl Drop for PendingLease {
    fn drop(&mut self) {
        if let Some(release) = self.release.take() {
            release(self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use proto::LeaseId;

    use super::*;

    #[test]
    fn undelivered_lease_is_released_once() {
        let released = Arc::new(AtomicUsize::new(0));
        let lease = || {
            let released = Arc::clone(&released);
            PendingLease::new(InstanceId { lease: LeaseId::new(), slot: 9000 }, move |_| {
                released.fetch_add(1, Ordering::SeqCst);
            })
        };
        lease().deliver();
        assert_eq!(released.load(Ordering::SeqCst), 0, "delivered");
        drop(lease());
        assert_eq!(released.load(Ordering::SeqCst), 1, "dropped");
        drop(PendingLease::existing(*lease().id()));
        assert_eq!(released.load(Ordering::SeqCst), 2, "only the new one");
    }
}
