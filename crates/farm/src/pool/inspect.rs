//! What a pool reports about itself. Nothing here changes its state.

use std::{
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use proto::InstanceId;
use tokio::sync::watch;

use super::{Pool, PoolCounts};
use crate::{egress::EgressProxy, identity::Identity, metrics::PoolMetrics};

impl Pool {
    pub fn counts(&self) -> PoolCounts {
        self.0.state().counts()
    }

    pub fn identity(&self) -> &Identity {
        &self.0.options.identity
    }

    /// Returns the ids of the leased instances.
    pub fn in_use(&self) -> Vec<InstanceId> {
        self.0.state().in_use()
    }

    /// Returns counts and leases of the same moment.
    pub(crate) fn snapshot(&self) -> (PoolCounts, Vec<InstanceId>) {
        let state = self.0.state();
        (state.counts(), state.in_use())
    }

    /// Returns the numbers of the slots that can be leased.
    pub(crate) fn available_ports(&self) -> Vec<u16> {
        self.0.state().available_ports()
    }

    /// Returns why no new leases are granted at the moment.
    pub fn held_back(&self) -> Option<String> {
        self.0.state().held_back.clone()
    }

    /// Returns why some slots have no browser.
    pub fn dead_reason(&self) -> Option<String> {
        self.0.state().dead_reason()
    }

    /// True if a client that waits for a moment can get a lease here.
    pub(crate) fn is_ready(&self) -> bool {
        let state = self.0.state();
        let counts = state.counts();
        state.opened && !state.closing && !state.draining && counts.dead < counts.capacity
    }

    pub(crate) fn lease_ages(&self) -> Vec<Duration> {
        self.0.state().tenancies().map(|tenancy| tenancy.age()).collect()
    }

    /// Returns the process ids of the live browsers; each is also the id of a process group.
    pub fn browser_pids(&self) -> Vec<u32> {
        self.0.metrics.browser_pids()
    }

    /// Returns the number of queued `/get` requests.
    pub(crate) fn waiting(&self) -> usize {
        self.0.queue.len()
    }

    pub(crate) fn metrics(&self) -> &PoolMetrics {
        &self.0.metrics
    }

    pub(super) fn refused_counter(&self) -> Arc<AtomicU64> {
        self.0.proxy.as_ref().map(EgressProxy::refused_counter).unwrap_or_default()
    }

    pub(crate) fn refused_connections(&self) -> u64 {
        self.0.proxy.as_ref().map_or(0, EgressProxy::refused)
    }

    /// Notifies whenever the state of a slot changes.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.0.version.subscribe()
    }
}
