//! A node's pool of slots. Owns the browsers and the leases; everything outside only asks it. Invariant:
//! available + in use + starting + dead = capacity.

mod addresses;
mod drain;
mod group;
mod lease;
mod slots;
mod supervisor;
mod sweep;
mod tenancy;
mod watchdog;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use proto::{InstanceId, LeaseId};
use tokio::sync::{Semaphore, mpsc, watch};

pub use drain::DrainStatus;
pub(crate) use lease::PendingLease;
pub use slots::PoolCounts;
use slots::{PoolState, SlotState};
pub(crate) use tenancy::{ObserveResult, Operation, OperationResult};

use crate::{
    audit::{self, LeaseEnd},
    egress::EgressProxy,
    error::ApiError,
    identity::Identity,
    metrics::PoolMetrics,
    options::PoolOptions,
    queue::Queue,
    tasks::Tasks,
};

pub(crate) struct PoolInner {
    options: PoolOptions,
    state: Mutex<PoolState>,
    /// One task per browser, which creates instances for its slots.
    groups: Vec<mpsc::UnboundedSender<group::InstanceRequest>>,
    /// Limits how many browsers and instances start at the same time.
    start_permits: Semaphore,
    queue: Queue,
    version: watch::Sender<u64>,
    metrics: PoolMetrics,
    tasks: Tasks,
    proxy: Option<EgressProxy>,
}

/// A handle to the pool. Cloning is cheap.
#[derive(Clone)]
pub struct Pool(Arc<PoolInner>);

impl Pool {
    /// Starts the browsers in the background; slots become available one by one.
    pub async fn start(mut options: PoolOptions) -> Result<Self, std::io::Error> {
        let tasks = Tasks::default();
        let proxy = if options.network.is_unrestricted() {
            None
        } else {
            Some(EgressProxy::start(options.network.clone(), &tasks).await?)
        };
        options.launch.extra_flags.extend(proxy.iter().flat_map(EgressProxy::browser_flags));
        options.launch.memory_limit = Some(options.max_process_memory).filter(|max| *max > 0);
        options.launch.window_size = options.instance.viewport;
        let slots_per_group = options.instances_per_browser.max(1);
        let browsers = options.instances.div_ceil(slots_per_group);
        let (groups, inboxes): (Vec<_>, Vec<_>) = (0..browsers).map(|_| mpsc::unbounded_channel()).unzip();
        let state = PoolState::new(options.instances, options.first_port, slots_per_group);
        let inner = Arc::new(PoolInner {
            start_permits: Semaphore::new(options.max_parallel.max(1)),
            state: Mutex::new(state),
            groups,
            queue: Queue::default(),
            version: watch::Sender::new(0),
            metrics: PoolMetrics::default(),
            tasks,
            proxy,
            options,
        });
        for (index, inbox) in inboxes.into_iter().enumerate() {
            inner.tasks.spawn("browser", group::run(Arc::clone(&inner), index, inbox));
        }
        inner.tasks.spawn_until_stopped("sweep", sweep::run(Arc::clone(&inner)));
        Ok(Self(inner))
    }

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

    pub(crate) fn refused_connections(&self) -> u64 {
        self.0.proxy.as_ref().map_or(0, EgressProxy::refused)
    }

    /// Notifies whenever the state of a slot changes.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.0.version.subscribe()
    }

    /// Waits until every slot is ready, and reports the counts after each change.
    pub async fn ready(&self, mut progress: impl FnMut(&PoolCounts)) {
        let mut changes = self.changes();
        loop {
            let counts = self.counts();
            progress(&counts);
            if counts.starting + counts.dead == 0 || changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Converts the lifetime that a client asked for, or explains why it is not allowed.
    pub(crate) fn lifetime(&self, minutes: i64) -> Result<Duration, ApiError> {
        let max = self.0.options.max_lifetime_mins;
        match u32::try_from(minutes) {
            Ok(minutes) if (1..=max).contains(&minutes) => Ok(self.0.options.lease_minute * minutes),
            _ => Err(ApiError::BadRequest(format!("lifetime_mins is {minutes}; it must be from 1 to {max}"))),
        }
    }

    /// Grants a lease now, or returns why that is not possible.
    fn try_lease(&self, lifetime: Duration, key: Option<&str>) -> Result<PendingLease, ApiError> {
        let mut state = self.0.state();
        if state.closing {
            return Err(ApiError::ShuttingDown);
        }
        if let Some(id) = key.and_then(|key| state.leased_under(key)) {
            return Ok(PendingLease::existing(id));
        }
        if state.draining {
            return Err(ApiError::Draining);
        }
        if let Some(reason) = &state.held_back {
            return Err(ApiError::NoCapacity(Some(reason.clone())));
        }
        let id = state.lease(LeaseId::new(), lifetime, key).ok_or(ApiError::NoCapacity(None))?;
        audit::leased(&id);
        drop(state);
        self.0.publish_change();
        let pool = self.clone();
        Ok(PendingLease::new(id, move |id| {
            let _ = pool.release(&id);
        }))
    }

    /// Grants a lease as soon as a slot is free, first come first served, until the wait is over.
    pub(crate) async fn lease(
        &self,
        lifetime: Duration,
        key: Option<&str>,
        wait: Option<Duration>,
    ) -> Result<PendingLease, ApiError> {
        // A repeated request must not queue: earlier waiters may be waiting for exactly the slot it already has.
        if let Some(id) = key.and_then(|key| self.0.state().leased_under(key)) {
            return Ok(PendingLease::existing(id));
        }
        let wait = wait.unwrap_or_else(|| self.default_wait());
        let attempt = || async {
            match self.try_lease(lifetime, key) {
                Err(error @ ApiError::NoCapacity(_)) => Ok(Err(error)),
                Err(error) => Err(error),
                Ok(lease) => Ok(Ok(lease)),
            }
        };
        let too_late = || ApiError::NoCapacity(self.held_back());
        self.0.queue.acquire(Instant::now() + wait, attempt, too_late).await
    }

    fn default_wait(&self) -> Duration {
        let state = self.0.state();
        default_wait(state.held_back.is_some(), state.counts().starting > 0)
    }

    /// Ends a lease. The slot gets a clean instance in the background.
    pub(crate) fn release(&self, id: &InstanceId) -> Result<(), ApiError> {
        let mut state = self.0.state();
        if state.forget_lost(id).is_some() {
            // Its browser died and the slot already has a new instance: nothing is left to release.
            return Ok(());
        }
        let tenancy = state.end(id).ok_or(ApiError::NotInUse)?;
        audit::ended(id, LeaseEnd::Released);
        drop(state);
        self.0.dispose(tenancy);
        self.0.request_instance(id.slot);
        Ok(())
    }

    /// Performs an operation in the instance of a lease.
    pub(crate) async fn perform(
        &self,
        id: &InstanceId,
        operation: Operation,
    ) -> Result<OperationResult, ApiError> {
        let tenancy = self.0.state().tenancy(id)?;
        let started = Instant::now();
        let name = operation.name();
        let result = match self.check_addresses(operation).await {
            Ok(operation) => tenancy.perform(operation, &self.0.tasks).await,
            Err(refused) => Err(refused.into()),
        };
        self.0.metrics.record_operation(name, started.elapsed(), result.is_ok());
        match result {
            Err(ApiError::InstanceLost(reason)) => {
                self.0.lose(id, &reason);
                Err(ApiError::InstanceLost(reason))
            }
            // The lease ended during the call: return the error that the next call would get.
            Err(ApiError::InvalidInstance) => {
                Err(self.0.state().tenancy(id).err().unwrap_or(ApiError::InvalidInstance))
            }
            other => other,
        }
    }

    /// Grants no new leases from now on.
    pub fn stop_leasing(&self) {
        self.0.state().closing = true;
        self.0.queue.wake();
        self.0.publish_change();
    }

    /// Ends every browser. Returns whether all were gone before the timeout.
    pub async fn stop(&self, timeout: Duration) -> bool {
        self.stop_leasing();
        self.0.tasks.stop(timeout).await
    }
}

/// Returns how long `/get` waits when the client sends no `wait_secs`: longer while the machine is overloaded than while
/// a slot is merely starting.
pub(crate) fn default_wait(held_back: bool, starting: bool) -> Duration {
    const WAIT_WHILE_HELD_BACK: Duration = Duration::from_secs(30);
    const WAIT_WHILE_STARTING: Duration = Duration::from_secs(5);
    match (held_back, starting) {
        (true, _) => WAIT_WHILE_HELD_BACK,
        (_, true) => WAIT_WHILE_STARTING,
        _ => Duration::ZERO,
    }
}

impl PoolInner {
    pub(crate) fn state(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish_change(&self) {
        self.version.send_modify(|version| *version += 1);
    }

    /// Gives a slot its clean instance.
    fn fill(&self, slot: u16, instance: browser::Instance) {
        let mut state = self.state();
        state.set(slot, SlotState::Idle(Box::new(instance)));
        state.opened = true;
        drop(state);
        self.queue.wake();
        self.publish_change();
    }

    /// Asks the slot's browser for a clean instance.
    fn request_instance(&self, slot: u16) {
        let group = self.state().group_of(slot);
        if let Some(requests) = group.and_then(|group| self.groups.get(group)) {
            let _ = requests.send(group::InstanceRequest { slot });
        }
        self.publish_change();
    }

    /// Disposes of the instance of an ended lease in the background.
    fn dispose(&self, tenancy: Arc<tenancy::Tenancy>) {
        self.tasks.spawn("dispose", async move { tenancy.end().await });
    }

    /// Ends a lease whose browser is gone. Its client learns the reason with the next call; the slot gets a new
    /// instance.
    fn lose(&self, id: &InstanceId, reason: &str) {
        let mut state = self.state();
        let Some(tenancy) = state.end(id) else { return };
        audit::ended(id, LeaseEnd::Lost);
        state.remember_lost(*id, reason);
        drop(state);
        tracing::warn!(instance = %id, reason, "lost a leased instance");
        self.metrics.instances_lost.inc();
        self.dispose(tenancy);
        self.request_instance(id.slot);
    }
}
