//! A lease on its way to a client: given back by itself unless it arrives.

use proto::InstanceId;

type Release = Box<dyn FnOnce(InstanceId) + Send>;

/// Dropping it before [`Granted::keep`] releases the instance: the client hung up.
#[must_use = "a lease that is not kept is given back"]
pub(crate) struct Granted {
    id: InstanceId,
    release: Option<Release>,
}

impl Granted {
    pub(crate) fn new(id: InstanceId, release: impl FnOnce(InstanceId) + Send + 'static) -> Self {
        Self { id, release: Some(Box::new(release)) }
    }

    /// A lease that its client held already.
    pub(crate) fn again(id: InstanceId) -> Self {
        Self { id, release: None }
    }

    pub(crate) fn id(&self) -> &InstanceId {
        &self.id
    }

    /// The same lease; should it not arrive, `otherwise` decides what becomes of it.
    pub(crate) fn or(mut self, otherwise: impl FnOnce(Self) + Send + 'static) -> Self {
        let release = self.release.take();
        Self::new(self.id, move |id| otherwise(Self { id, release }))
    }

    pub(crate) fn keep(mut self) -> InstanceId {
        self.release = None;
        self.id
    }
}

impl Drop for Granted {
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
    fn what_does_not_arrive_is_released_once_by_whom_it_was_left_to() {
        let released = Arc::new(AtomicUsize::new(0));
        let lease = || {
            let released = Arc::clone(&released);
            Granted::new(InstanceId { lease: LeaseId::new(), slot: 9000 }, move |_| {
                released.fetch_add(1, Ordering::SeqCst);
            })
        };
        lease().or(drop).keep();
        assert_eq!(released.load(Ordering::SeqCst), 0, "it arrived");
        drop(lease().or(drop));
        assert_eq!(released.load(Ordering::SeqCst), 1, "nobody wanted it");
        drop(lease().or(|granted| drop(granted.keep())));
        assert_eq!(released.load(Ordering::SeqCst), 1, "it was kept for another");
    }
}
