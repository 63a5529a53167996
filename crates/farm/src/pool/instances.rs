//! The instances in the slots: filling a slot with a clean one, and disposing of those of ended and lost leases.

use std::sync::Arc;

use proto::InstanceId;

use super::{PoolInner, group::GroupRequest, slots::SlotState, tenancy::Tenancy};
use crate::audit::{self, LeaseEnd};

impl PoolInner {
    /// Gives a slot its clean instance.
    pub(super) fn fill(&self, slot: u16, instance: browser::Instance) {
        let mut state = self.state();
        state.set(slot, SlotState::Idle(Box::new(instance)));
        state.opened = true;
        drop(state);
        self.queue.wake();
        self.publish_change();
    }

    /// Asks the slot's browser for a clean instance.
    pub(super) fn request_instance(&self, slot: u16) {
        let group = self.state().group_of(slot);
        if let Some(requests) = group.and_then(|group| self.groups.get(group)) {
            let _ = requests.send(GroupRequest::Fill { slot });
        }
        self.publish_change();
    }

    /// Returns a clean instance to the browser of its slot. Session options have replaced it, and no client has used it.
    pub(super) fn take_back(&self, slot: u16, instance: browser::Instance) {
        let group = self.state().group_of(slot);
        if let Some(requests) = group.and_then(|group| self.groups.get(group)) {
            let _ = requests.send(GroupRequest::TakeBack(Box::new(instance)));
        }
    }

    /// Disposes of the instance of an ended lease in the background.
    pub(super) fn dispose(&self, tenancy: Arc<Tenancy>) {
        self.tasks.spawn("dispose", async move { tenancy.end().await });
    }

    /// Ends a lease whose browser is gone. Its client learns the reason with the next call; the slot gets a new
    /// instance.
    pub(super) fn lose(&self, id: &InstanceId, reason: &str) {
        let mut state = self.state();
        let Some(tenancy) = state.end(id) else { return };
        audit::ended(id, LeaseEnd::Lost);
        state.remember_lost(*id, reason);
        drop(state);
        // `Pool::stop` has logged the leases of a farm that shuts down.
        if !self.tasks.stopping().is_cancelled() {
            tracing::warn!(instance = %id, reason, "lost a leased instance");
        }
        self.metrics.instances_lost.inc();
        self.dispose(tenancy);
        self.request_instance(id.slot);
    }
}
