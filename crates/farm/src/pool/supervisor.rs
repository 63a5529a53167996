//! Supervises one live browser: creates instances for its slots and a few spares, checks that it still answers, and
//! decides when it must be replaced.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use browser::{BrowserError, Host, Instance};
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Interval, MissedTickBehavior, interval_at},
};

use super::{PoolInner, group::GroupRequest};

/// Why the supervision of a browser ended.
pub(crate) enum BrowserExit {
    Died { reason: String },
    Recycled { reason: &'static str },
    Stopped,
}

const CHECK_INTERVAL: Duration = Duration::from_secs(5);
const RETRY_PAUSE: Duration = Duration::from_millis(200);
/// A browser that fails to create this many instances in a row is replaced, even if it seems alive.
const MAX_FAILURES: u32 = 5;

/// The result of creating an instance for a slot, or a spare (`None`).
type Created = (Option<u16>, Result<Instance, BrowserError>);

pub(crate) struct Supervisor {
    pool: Arc<PoolInner>,
    index: usize,
    host: Arc<Host>,
    started: Instant,
    creating: JoinSet<Created>,
    pings: JoinSet<Result<(), String>>,
    spares: VecDeque<Instance>,
    /// Spares among the instances that are being created.
    pending_spares: usize,
    failures: u32,
    /// Set once the browser gets no new tenants; it is recycled when the last one has left.
    retiring: Option<&'static str>,
    check: Interval,
}

impl Supervisor {
    pub(crate) fn new(pool: Arc<PoolInner>, index: usize, host: Host) -> Self {
        let mut check = interval_at((Instant::now() + CHECK_INTERVAL).into(), CHECK_INTERVAL);
        check.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            pool,
            index,
            host: Arc::new(host),
            started: Instant::now(),
            creating: JoinSet::new(),
            pings: JoinSet::new(),
            spares: VecDeque::new(),
            pending_spares: 0,
            failures: 0,
            retiring: None,
            check,
        }
    }

    /// Stops all work in the browser and returns it, unless something still uses it.
    pub(crate) async fn into_host(mut self) -> Option<Host> {
        self.creating.shutdown().await;
        self.pings.shutdown().await;
        self.spares.clear();
        Arc::into_inner(self.host)
    }

    pub(crate) async fn run(&mut self, requests: &mut mpsc::UnboundedReceiver<GroupRequest>) -> BrowserExit {
        let stop = self.pool.tasks.stopping().clone();
        let connection = self.host.connection().clone();
        let ports = self.pool.state().ports_of(self.index);
        for port in ports {
            self.create(Some(port), true);
        }
        loop {
            tokio::select! {
                () = stop.cancelled() => return BrowserExit::Stopped,
                gone = connection.wait_closed() => return BrowserExit::Died { reason: gone.to_string() },
                Some(request) = requests.recv() => match request {
                    GroupRequest::Fill { slot } => self.fulfil(slot),
                    GroupRequest::TakeBack(instance) => self.keep(*instance),
                },
                Some(created) = self.creating.join_next() => match created {
                    Ok(created) => self.record_created(created),
                    Err(bug) => return BrowserExit::Died { reason: bug.to_string() },
                },
                Some(ping) = self.pings.join_next() => {
                    if let Ok(Err(reason)) = ping {
                        return BrowserExit::Died { reason };
                    }
                }
                _ = self.check.tick() => self.check_browser(),
            }
            if self.failures >= MAX_FAILURES {
                return BrowserExit::Died { reason: "it cannot create instances any more".into() };
            }
            if let Some(reason) = self.retiring
                && self.pool.state().leases_of(self.index).is_empty()
            {
                return BrowserExit::Recycled { reason };
            }
        }
    }

    /// Fills the slot with a spare, or starts creating an instance for it.
    fn fulfil(&mut self, slot: u16) {
        if self.retiring.is_some() {
            return;
        }
        while let Some(spare) = self.spares.pop_front() {
            if spare.lost_reason().is_none() {
                self.pool.fill(slot, spare);
                self.top_up();
                return;
            }
        }
        self.create(Some(slot), false);
    }

    /// Keeps a clean instance as a spare. One more than wanted: with leases that have options, each takes one and returns it.
    fn keep(&mut self, instance: Instance) {
        let wanted = self.pool.options.spares;
        let is_wanted = wanted > 0 && self.spares.len() <= wanted;
        if is_wanted && self.retiring.is_none() && instance.lost_reason().is_none() {
            self.spares.push_back(instance);
        }
    }

    /// Starts creating an instance. At the start of the pool only a few are created at a time over all browsers; later
    /// on, a browser that hangs must not delay the others.
    fn create(&mut self, slot: Option<u16>, throttled: bool) {
        let (pool, host) = (Arc::clone(&self.pool), Arc::clone(&self.host));
        self.creating.spawn(async move {
            let _permit = if throttled { pool.start_permits.acquire().await.ok() } else { None };
            let started = Instant::now();
            let created = host.instance(&pool.options.instance).await;
            pool.metrics.record_operation("make", started.elapsed(), created.is_ok());
            if created.is_err() {
                // Avoids a tight retry loop. If the browser is dying, its end is noticed meanwhile.
                tokio::time::sleep(RETRY_PAUSE).await;
            }
            (slot, created)
        });
    }

    fn record_created(&mut self, (slot, created): Created) {
        self.pending_spares -= usize::from(slot.is_none());
        self.failures = if created.is_ok() { 0 } else { self.failures + 1 };
        match (slot, created) {
            (_, Ok(_)) if self.retiring.is_some() => {}
            (Some(slot), Ok(instance)) => {
                self.pool.fill(slot, instance);
                self.top_up();
            }
            (None, Ok(instance)) => self.spares.push_back(instance),
            (slot, Err(error)) => {
                tracing::warn!(browser = self.index, %error, "cannot create an instance; trying again");
                if slot.is_some() {
                    self.create(slot, false);
                }
            }
        }
    }

    /// Creates missing spares, once every slot has its instance.
    fn top_up(&mut self) {
        let wanted = self.pool.options.spares;
        let slots_done = self.creating.len() == self.pending_spares;
        while slots_done && self.spares.len() + self.pending_spares < wanted {
            self.pending_spares += 1;
            self.create(None, false);
        }
    }

    fn check_browser(&mut self) {
        let options = &self.pool.options;
        if self.pings.is_empty() {
            let (connection, timeout) = (self.host.connection().clone(), options.hang_limit);
            self.pings.spawn(async move { ping(&connection, timeout).await });
        }
        let slots = self.pool.state().ports_of(self.index).len() as u64;
        let max_rss = options.max_browser_rss * slots.max(1);
        let max_age = max_age(options.max_browser_age, self.index);
        let (age, resident) =
            (self.started.elapsed(), self.pool.metrics.browser_footprint(self.index).resident_bytes);
        let (is_old, is_large) = (age > max_age, resident > max_rss);
        let is_idle = self.pool.state().leases_of(self.index).is_empty();
        let is_urgent = age > max_age * 2 || resident > max_rss * 2;
        self.top_up();
        if (is_old || is_large) && (is_idle || is_urgent) {
            self.retire(if is_large { "it uses too much memory" } else { "it has reached its maximum age" });
        }
    }

    /// Accepts no new tenants; the browser is recycled when the last one has left.
    fn retire(&mut self, reason: &'static str) {
        self.retiring = Some(reason);
        self.spares.clear();
        self.pool.mark_starting(self.index);
    }
}

/// Spreads the maximum age, so that browsers that were started together are not all replaced together.
fn max_age(base: Duration, index: usize) -> Duration {
    base + base.mul_f64((index % 16) as f64 / 64.0)
}

async fn ping(connection: &browser::Connection, timeout: Duration) -> Result<(), String> {
    match connection.ping(timeout).await {
        Ok(()) => Ok(()),
        Err(error) => Err(format!("it does not answer any more ({error})")),
    }
}
