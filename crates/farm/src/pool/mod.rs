//! A node's pool: N slots, each empty, clean and waiting, or leased. Owns the browsers, the leases and the
//! accounting; everything outside only asks. The invariant: available + in use + starting + dead = capacity.

mod addresses;
mod drain;
mod group;
mod keeper;
mod lease;
mod slots;
mod sweep;
mod tenancy;
mod watchdog;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use proto::{InstanceId, LeaseId};
use tokio::sync::{Semaphore, mpsc, watch};

pub use drain::Drained;
pub(crate) use lease::Granted;
pub use slots::PoolCounts;
use slots::{SlotState, State};
pub(crate) use tenancy::{Operation, Outcome, Seen};

use crate::{
    error::FarmError,
    guard::Proxy,
    identity::Identity,
    ledger::{self, End},
    metrics::PoolMetrics,
    options::PoolOptions,
    queue::Queue,
    tasks::Tasks,
};

pub(crate) struct Shared {
    options: PoolOptions,
    state: Mutex<State>,
    groups: Vec<mpsc::UnboundedSender<group::Wish>>,
    making: Semaphore,
    queue: Queue,
    changed: watch::Sender<u64>,
    metrics: PoolMetrics,
    tasks: Tasks,
    proxy: Option<Proxy>,
}

/// A handle to the pool. Cloning is cheap.
#[derive(Clone)]
pub struct Pool(Arc<Shared>);

impl Pool {
    /// Starts making instances; they become available one by one.
    pub async fn start(options: PoolOptions) -> Result<Self, std::io::Error> {
        let tasks = Tasks::default();
        let mut options = options;
        let proxy = if options.network.open() {
            None
        } else {
            Some(Proxy::start(options.network.clone(), &tasks).await?)
        };
        options.launch.extra_flags.extend(proxy.iter().flat_map(Proxy::flags));
        options.launch.memory_limit = Some(options.max_process_memory).filter(|most| *most > 0);
        options.launch.window_size = options.instance.viewport;
        let share = options.instances_per_browser.max(1);
        let count = options.instances.div_ceil(share);
        let (groups, inboxes): (Vec<_>, Vec<_>) = (0..count).map(|_| mpsc::unbounded_channel()).unzip();
        let state = State::new(options.instances, options.first_port, share);
        let shared = Arc::new(Shared {
            making: Semaphore::new(options.max_parallel.max(1)),
            state: Mutex::new(state),
            groups,
            queue: Queue::default(),
            changed: watch::Sender::new(0),
            metrics: PoolMetrics::default(),
            tasks,
            proxy,
            options,
        });
        for (index, inbox) in inboxes.into_iter().enumerate() {
            shared.tasks.spawn("browser", group::run(Arc::clone(&shared), index, inbox));
        }
        shared.tasks.spawn_until_stopped("sweep", sweep::run(Arc::clone(&shared)));
        Ok(Self(shared))
    }

    pub fn counts(&self) -> PoolCounts {
        self.0.state().counts()
    }

    /// Who this node is.
    pub fn identity(&self) -> &Identity {
        &self.0.options.identity
    }

    /// Ids of the leased instances.
    pub fn in_use(&self) -> Vec<InstanceId> {
        self.0.state().in_use()
    }

    /// Counts and leases of the same moment.
    pub(crate) fn snapshot(&self) -> (PoolCounts, Vec<InstanceId>) {
        let state = self.0.state();
        (state.counts(), state.in_use())
    }

    /// Slot numbers that are free to be leased.
    pub(crate) fn available_ports(&self) -> Vec<u16> {
        self.0.state().available_ports()
    }

    /// Why no new leases are given at the moment, if so.
    pub fn held_back(&self) -> Option<String> {
        self.0.state().held_back.clone()
    }

    /// Why some slots have no browser, if so.
    pub fn dead_because(&self) -> Option<String> {
        self.0.state().dead_because()
    }

    /// Instances can be had here, at least by those who wait a moment.
    pub(crate) fn is_open(&self) -> bool {
        let state = self.0.state();
        let counts = state.counts();
        state.opened && !state.closing && !state.draining && counts.dead < counts.capacity
    }

    pub(crate) fn lease_ages(&self) -> Vec<Duration> {
        self.0.state().tenancies().map(|tenancy| tenancy.age()).collect()
    }

    /// Process ids of the live browsers: each is also the id of its process group.
    pub fn browser_pids(&self) -> Vec<u32> {
        self.0.metrics.browser_pids()
    }

    pub(crate) fn waiting(&self) -> usize {
        self.0.queue.len()
    }

    pub(crate) fn metrics(&self) -> &PoolMetrics {
        &self.0.metrics
    }

    pub(crate) fn refused_addresses(&self) -> u64 {
        self.0.proxy.as_ref().map_or(0, Proxy::refused)
    }

    /// Wakes whenever slots change hands.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.0.changed.subscribe()
    }

    /// Waits until every slot is up, telling each time how many are.
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

    /// The lifetime a client asked for, if it may have it.
    pub(crate) fn lifetime(&self, minutes: i64) -> Result<Duration, FarmError> {
        let most = self.0.options.max_lifetime_mins;
        match u32::try_from(minutes) {
            Ok(minutes) if (1..=most).contains(&minutes) => Ok(self.0.options.lease_minute * minutes),
            _ => {
                Err(FarmError::BadRequest(format!("lifetime_mins is {minutes}; it must be from 1 to {most}")))
            }
        }
    }

    /// A lease now, or the reason why not.
    pub(crate) fn try_get(&self, lifetime: Duration, key: Option<&str>) -> Result<Granted, FarmError> {
        let mut state = self.0.state();
        if state.closing {
            return Err(FarmError::ShuttingDown);
        }
        if let Some(id) = key.and_then(|key| state.leased_under(key)) {
            return Ok(Granted::again(id));
        }
        if state.draining {
            return Err(FarmError::Draining);
        }
        if let Some(why) = &state.held_back {
            return Err(FarmError::NoCapacity(Some(why.clone())));
        }
        let id = state.lease(LeaseId::new(), lifetime, key).ok_or(FarmError::NoCapacity(None))?;
        ledger::leased(&id);
        drop(state);
        self.0.note_change();
        let pool = self.clone();
        Ok(Granted::new(id, move |id| {
            let _ = pool.reset(&id);
        }))
    }

    /// A lease as soon as one is free, first come first served, until the deadline.
    pub(crate) async fn get(
        &self,
        lifetime: Duration,
        key: Option<&str>,
        wait: Option<Duration>,
    ) -> Result<Granted, FarmError> {
        // What one holds already is not waited for: those in line may be waiting for exactly that.
        if let Some(id) = key.and_then(|key| self.0.state().leased_under(key)) {
            return Ok(Granted::again(id));
        }
        let patience = wait.unwrap_or_else(|| self.natural_wait());
        let attempt = || async {
            match self.try_get(lifetime, key) {
                Err(error @ FarmError::NoCapacity(_)) => Ok(Err(error)),
                Err(error) => Err(error),
                Ok(granted) => Ok(Ok(granted)),
            }
        };
        let too_late = || FarmError::NoCapacity(self.held_back());
        self.0.queue.take(Instant::now() + patience, attempt, too_late).await
    }

    fn natural_wait(&self) -> Duration {
        let state = self.0.state();
        natural_wait(state.held_back.is_some(), state.counts().starting > 0)
    }

    /// Ends a lease. The slot is made clean in the background.
    pub(crate) fn reset(&self, id: &InstanceId) -> Result<(), FarmError> {
        let mut state = self.0.state();
        if state.forget_lost(id).is_some() {
            // Its browser died and the slot has long been given a new one: released is what it is.
            return Ok(());
        }
        let tenancy = state.end(id).ok_or(FarmError::NotInUse)?;
        ledger::ended(id, End::Released);
        drop(state);
        self.0.retire(tenancy);
        self.0.remake(id.slot);
        Ok(())
    }

    /// Carries out an operation for whoever holds the lease.
    pub(crate) async fn perform(&self, id: &InstanceId, operation: Operation) -> Result<Outcome, FarmError> {
        let tenancy = self.0.state().tenancy(id)?;
        let started = Instant::now();
        let name = operation.name();
        let outcome = match self.check_addresses(operation).await {
            Ok(operation) => tenancy.perform(operation, &self.0.tasks).await,
            Err(refused) => Err(refused.into()),
        };
        self.0.metrics.operation(name, started.elapsed(), outcome.is_ok());
        match outcome {
            Err(FarmError::InstanceLost(why)) => {
                self.0.lose(id, &why);
                Err(FarmError::InstanceLost(why))
            }
            // The lease ended under the call: say what the next call would be told.
            Err(FarmError::InvalidInstance) => {
                Err(self.0.state().tenancy(id).err().unwrap_or(FarmError::InvalidInstance))
            }
            other => other,
        }
    }

    /// No new leases from here on.
    pub fn close_to_new(&self) {
        self.0.state().closing = true;
        self.0.queue.announce();
        self.0.note_change();
    }

    /// Ends every browser and returns when they are gone.
    pub async fn stop(&self, limit: Duration) -> bool {
        self.close_to_new();
        self.0.tasks.stop(limit).await
    }
}

/// How long those who did not say how long they would wait do: while the machine is short of something, or a slot
/// is merely being made ready.
pub(crate) fn natural_wait(held_back: bool, starting: bool) -> Duration {
    const PRESSURE: Duration = Duration::from_secs(30);
    const MAKING: Duration = Duration::from_secs(5);
    match (held_back, starting) {
        (true, _) => PRESSURE,
        (_, true) => MAKING,
        _ => Duration::ZERO,
    }
}

impl Shared {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note_change(&self) {
        self.changed.send_modify(|version| *version += 1);
    }

    /// A clean instance for a slot.
    fn fill(&self, slot: u16, instance: browser::Instance) {
        let mut state = self.state();
        state.set(slot, SlotState::Idle(Box::new(instance)));
        state.opened = true;
        drop(state);
        self.queue.announce();
        self.note_change();
    }

    /// Asks the slot's browser for a clean instance.
    fn remake(&self, slot: u16) {
        let group = self.state().group_of(slot);
        if let Some(wishes) = group.and_then(|group| self.groups.get(group)) {
            let _ = wishes.send(group::Wish { slot });
        }
        self.note_change();
    }

    /// Ends the browser side of a lease without anyone waiting for it.
    fn retire(&self, tenancy: Arc<tenancy::Tenancy>) {
        self.tasks.spawn("retire", async move { tenancy.end().await });
    }

    /// The browser behind a lease is gone: its holder will be told so, the slot gets a new one.
    fn lose(&self, id: &InstanceId, why: &str) {
        let mut state = self.state();
        let Some(tenancy) = state.end(id) else { return };
        ledger::ended(id, End::Lost);
        state.remember_lost(*id, why);
        drop(state);
        tracing::warn!(instance = %id, why, "a leased instance was lost");
        self.metrics.instances_lost.inc();
        self.retire(tenancy);
        self.remake(id.slot);
    }
}
