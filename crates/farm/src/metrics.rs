//! Prometheus metrics of pools and masters. Labels are operations, outcomes and slot states only, never addresses or
//! tasks.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

use crate::{pool::Pool, process::Footprint};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OperationLabels {
    operation: &'static str,
    ok: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabels {
    state: &'static str,
}

/// The live browsers by index: process id and last measured footprint.
#[derive(Default)]
struct Browsers(Mutex<HashMap<usize, (u32, Footprint)>>);

impl Browsers {
    fn lock(&self) -> MutexGuard<'_, HashMap<usize, (u32, Footprint)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a pool counts over its lifetime.
pub(crate) struct PoolMetrics {
    operations: Family<OperationLabels, Histogram, fn() -> Histogram>,
    pub(crate) browser_restarts: Counter,
    pub(crate) instances_lost: Counter,
    pub(crate) leases_expired: Counter,
    pub(crate) processes_ended: Counter,
    browsers: Arc<Browsers>,
}

fn latency_histogram() -> Histogram {
    Histogram::new([0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 120.0])
}

impl Default for PoolMetrics {
    fn default() -> Self {
        Self {
            operations: Family::new_with_constructor(latency_histogram as fn() -> Histogram),
            browser_restarts: Counter::default(),
            instances_lost: Counter::default(),
            leases_expired: Counter::default(),
            processes_ended: Counter::default(),
            browsers: Arc::default(),
        }
    }
}

impl PoolMetrics {
    pub(crate) fn record_operation(&self, operation: &'static str, duration: Duration, ok: bool) {
        let labels = OperationLabels { operation, ok: if ok { "true" } else { "false" } };
        self.operations.get_or_create(&labels).observe(duration.as_secs_f64());
    }

    pub(crate) fn record_browser_start(&self, index: usize, pid: u32) {
        self.browsers.lock().insert(index, (pid, Footprint::default()));
    }

    pub(crate) fn record_browser_end(&self, index: usize) {
        self.browsers.lock().remove(&index);
    }

    pub(crate) fn record_footprints(&self, footprints: &HashMap<u32, Footprint>) {
        for (pid, footprint) in self.browsers.lock().values_mut() {
            if let Some(measured) = footprints.get(pid) {
                *footprint = *measured;
            }
        }
    }

    /// Returns the last measured footprint of a browser.
    pub(crate) fn browser_footprint(&self, index: usize) -> Footprint {
        self.browsers.lock().get(&index).map(|(_, footprint)| *footprint).unwrap_or_default()
    }

    /// Returns the process ids of the live browsers.
    pub(crate) fn browser_pids(&self) -> Vec<u32> {
        self.browsers.lock().values().map(|(pid, _)| *pid).collect()
    }

    fn footprints(&self) -> Vec<Footprint> {
        self.browsers.lock().values().map(|(_, footprint)| *footprint).collect()
    }
}

/// Returns the pool's metrics in the OpenMetrics text format.
pub(crate) fn render_pool(pool: &Pool) -> String {
    let mut registry = Registry::with_prefix("webgym");
    register_pool(&mut registry, pool);
    render(&registry)
}

/// What a master reports besides the metrics of its local pool.
pub(crate) struct MasterMetrics {
    pub(crate) nodes: usize,
    pub(crate) healthy_nodes: usize,
    pub(crate) queue_length: usize,
    pub(crate) capacity: usize,
    pub(crate) available: usize,
}

/// Returns the master's metrics, and those of its local pool, in the OpenMetrics text format.
pub(crate) fn render_master(metrics: &MasterMetrics, local_pool: Option<&Pool>) -> String {
    let mut registry = Registry::with_prefix("webgym");
    register_gauges(
        registry.sub_registry_with_prefix("master"),
        [
            ("nodes", "Nodes this master knows", metrics.nodes),
            ("healthy_nodes", "Nodes that answered lately", metrics.healthy_nodes),
            ("get_queue_length", "Requests to /get that wait for a slot", metrics.queue_length),
            ("capacity", "Slots of all healthy nodes", metrics.capacity),
            ("available", "Free slots of all healthy nodes", metrics.available),
        ],
    );
    if let Some(pool) = local_pool {
        register_pool(&mut registry, pool);
    }
    render(&registry)
}

fn register_pool(registry: &mut Registry, pool: &Pool) {
    register_slots(registry, pool);
    register_browsers(registry, pool.metrics());
    register_lease_ages(registry, pool);
    register_counters(registry, pool);
    registry.register("operation_seconds", "Duration of operations", pool.metrics().operations.clone());
}

fn register_slots(registry: &mut Registry, pool: &Pool) {
    let counts = pool.counts();
    let slots = Family::<StateLabels, Gauge>::default();
    for (state, count) in [
        ("available", counts.available),
        ("in_use", counts.in_use),
        ("starting", counts.starting),
        ("dead", counts.dead),
    ] {
        slots.get_or_create(&StateLabels { state }).set(gauge_value(count));
    }
    registry.register("slots", "Slots by state; they add up to the capacity", slots);
    let held_back = usize::from(pool.held_back().is_some());
    let draining = usize::from(pool.is_draining());
    register_gauges(
        registry,
        [
            ("capacity", "Slots of this node", counts.capacity),
            ("get_queue_length", "Requests to /get that wait for a slot", pool.waiting()),
            ("leases_held_back", "1 while new leases wait for memory or CPU", held_back),
            ("cdp_connections", "Open connections of CDP clients", pool.cdp_connections()),
            ("live_viewers", "Open live views of leases", pool.live_viewers()),
            ("draining", "1 while this node is being drained and grants no new leases", draining),
        ],
    );
}

fn register_browsers(registry: &mut Registry, metrics: &PoolMetrics) {
    let footprints = metrics.footprints();
    let processes = footprints.iter().map(|footprint| footprint.processes).sum();
    let resident: u64 = footprints.iter().map(|footprint| footprint.resident_bytes).sum();
    register_gauges(
        registry,
        [
            ("browsers", "Live Chromium process trees", footprints.len()),
            ("browser_processes", "Processes of all browsers", processes),
            (
                "browser_resident_bytes",
                "Resident memory of all browsers; shared pages are counted in each process",
                resident as usize,
            ),
        ],
    );
}

fn register_lease_ages(registry: &mut Registry, pool: &Pool) {
    let ages = Histogram::new([1.0, 10.0, 60.0, 300.0, 900.0, 1800.0, 3600.0]);
    for age in pool.lease_ages() {
        ages.observe(age.as_secs_f64());
    }
    registry.register("lease_age_seconds", "Ages of the current leases", ages);
}

fn register_counters(registry: &mut Registry, pool: &Pool) {
    let metrics = pool.metrics();
    let refused: Counter = Counter::default();
    refused.inner().store(pool.refused_connections(), Ordering::Relaxed);
    for (name, help, counter) in [
        ("browser_restarts", "Browsers started to replace another", &metrics.browser_restarts),
        ("instances_lost", "Leased instances whose browser ended", &metrics.instances_lost),
        ("leases_expired", "Leases that ended because they were not used", &metrics.leases_expired),
        ("processes_ended", "Browser processes killed for using too much memory", &metrics.processes_ended),
        ("addresses_refused", "Connections from pages to forbidden addresses", &refused),
    ] {
        registry.register(name, help, counter.clone());
    }
}

fn register_gauges<const N: usize>(registry: &mut Registry, gauges: [(&str, &str, usize); N]) {
    for (name, help, value) in gauges {
        let gauge: Gauge<i64, AtomicI64> = Gauge::default();
        gauge.set(gauge_value(value));
        registry.register(name, help, gauge);
    }
}

fn gauge_value(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn render(registry: &Registry) -> String {
    let mut text = String::new();
    match encode(&mut text, registry) {
        Ok(()) => text,
        Err(error) => format!("# cannot write metrics: {error}\n"),
    }
}
