//! A node's pool of slots. Owns the browsers and the leases; other modules use it only through [`Pool`].
//! Invariant: available + in use + starting + dead = capacity.

mod acquire;
mod addresses;
mod computer;
mod drain;
mod fork;
mod group;
mod history;
mod inspect;
mod instances;
mod lease;
mod lifecycle;
mod network;
mod operate;
mod operation;
mod operation_gate;
mod slots;
mod sockets;
mod supervisor;
mod sweep;
mod tenancy;
mod viewers;
mod watchdog;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::{OnceCell, Semaphore, mpsc, watch};

pub(crate) use acquire::default_wait;
pub use drain::DrainStatus;
pub(crate) use lease::PendingLease;
pub(crate) use operation::{ObserveResult, Operation, OperationResult};
pub use slots::PoolCounts;
use slots::PoolState;
pub(crate) use sockets::SocketGuard;
pub(crate) use tenancy::LeaseUsage;
use tenancy::Tenancy;
pub(crate) use viewers::{OpenLive, ViewerGuard};

use crate::{egress::EgressProxy, metrics::PoolMetrics, options::PoolOptions, queue::Queue, tasks::Tasks};

pub(crate) struct PoolInner {
    options: PoolOptions,
    state: Mutex<PoolState>,
    /// One task per browser, which creates instances for its slots.
    groups: Vec<mpsc::UnboundedSender<group::GroupRequest>>,
    /// Limits how many browsers and instances start at the same time.
    start_permits: Semaphore,
    operations: Arc<operation_gate::OperationGate>,
    queue: Queue,
    version: watch::Sender<u64>,
    metrics: PoolMetrics,
    tasks: Tasks,
    proxy: Option<EgressProxy>,
    archives: Option<network::PoolArchives>,
    /// What CDP clients get as the description of the protocol, once one has asked for it.
    protocol: OnceCell<Bytes>,
}

/// A handle to the pool. Cloning is cheap.
#[derive(Clone)]
pub struct Pool(Arc<PoolInner>);

impl PoolInner {
    pub(crate) fn state(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish_change(&self) {
        self.version.send_modify(|version| *version += 1);
    }
}
