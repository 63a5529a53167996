//! What a pool counts, for Prometheus. Labelled by operation and outcome only: never by address or task.

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

#[derive(Default)]
struct Browsers(Mutex<HashMap<usize, (u32, Footprint)>>);

impl Browsers {
    fn lock(&self) -> MutexGuard<'_, HashMap<usize, (u32, Footprint)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) struct PoolMetrics {
    operations: Family<OperationLabels, Histogram, fn() -> Histogram>,
    pub(crate) browser_restarts: Counter,
    pub(crate) instances_lost: Counter,
    pub(crate) leases_expired: Counter,
    pub(crate) processes_ended: Counter,
    browsers: Arc<Browsers>,
}

fn latency() -> Histogram {
    Histogram::new([0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 120.0])
}

impl Default for PoolMetrics {
    fn default() -> Self {
        Self {
            operations: Family::new_with_constructor(latency as fn() -> Histogram),
            browser_restarts: Counter::default(),
            instances_lost: Counter::default(),
            leases_expired: Counter::default(),
            processes_ended: Counter::default(),
            browsers: Arc::default(),
        }
    }
}

impl PoolMetrics {
    pub(crate) fn operation(&self, operation: &'static str, took: Duration, ok: bool) {
        let labels = OperationLabels { operation, ok: if ok { "true" } else { "false" } };
        self.operations.get_or_create(&labels).observe(took.as_secs_f64());
    }

    pub(crate) fn browser_started(&self, index: usize, pid: u32) {
        self.browsers.lock().insert(index, (pid, Footprint::default()));
    }

    pub(crate) fn browser_ended(&self, index: usize) {
        self.browsers.lock().remove(&index);
    }

    pub(crate) fn note_footprints(&self, prints: &HashMap<u32, Footprint>) {
        for (pid, print) in self.browsers.lock().values_mut() {
            if let Some(seen) = prints.get(pid) {
                *print = *seen;
            }
        }
    }

    /// What a browser held when last looked at.
    pub(crate) fn browser_footprint(&self, index: usize) -> Footprint {
        self.browsers.lock().get(&index).map(|(_, print)| *print).unwrap_or_default()
    }

    /// Process ids of the live browsers.
    pub(crate) fn browser_pids(&self) -> Vec<u32> {
        self.browsers.lock().values().map(|(pid, _)| *pid).collect()
    }
}

/// The pool's figures in Prometheus' text form.
pub(crate) fn render_pool(pool: &Pool) -> String {
    let metrics = pool.metrics();
    let mut registry = Registry::with_prefix("webgym");
    let slots = Family::<StateLabels, Gauge>::default();
    let counts = pool.counts();
    for (state, count) in [
        ("available", counts.available),
        ("in_use", counts.in_use),
        ("starting", counts.starting),
        ("dead", counts.dead),
    ] {
        slots.get_or_create(&StateLabels { state }).set(count as i64);
    }
    registry.register("slots", "Slots by state; they add up to the capacity", slots);
    let gauge = |registry: &mut Registry, name: &str, help: &str, value: usize| {
        let gauge: Gauge<i64, AtomicI64> = Gauge::default();
        gauge.set(value as i64);
        registry.register(name, help, gauge);
    };
    gauge(&mut registry, "capacity", "Slots this node has", counts.capacity);
    gauge(&mut registry, "get_queue_length", "Callers of /get who wait for a slot", pool.waiting());
    gauge(
        &mut registry,
        "leases_held_back",
        "1 while new leases wait for memory or CPU",
        usize::from(pool.held_back().is_some()),
    );
    gauge(
        &mut registry,
        "draining",
        "1 while this node gives no new leases because it was told so",
        usize::from(pool.draining()),
    );
    let footprints: Vec<Footprint> = metrics.browsers.lock().values().map(|(_, print)| *print).collect();
    gauge(&mut registry, "browsers", "Chromium process trees alive", footprints.len());
    gauge(
        &mut registry,
        "browser_processes",
        "Processes of all browsers",
        footprints.iter().map(|f| f.processes).sum(),
    );
    let resident: u64 = footprints.iter().map(|print| print.resident_bytes).sum();
    gauge(
        &mut registry,
        "browser_resident_bytes",
        "Resident memory of all browsers, shared pages counted in each",
        resident as usize,
    );
    let ages = Histogram::new([1.0, 10.0, 60.0, 300.0, 900.0, 1800.0, 3600.0]);
    for age in pool.lease_ages() {
        ages.observe(age.as_secs_f64());
    }
    registry.register("lease_age_seconds", "Ages of the leases held now", ages);
    registry.register("operation_seconds", "How long operations took", metrics.operations.clone());
    registry.register(
        "browser_restarts",
        "Browsers started in place of another",
        metrics.browser_restarts.clone(),
    );
    registry.register(
        "instances_lost",
        "Leased instances whose browser went away",
        metrics.instances_lost.clone(),
    );
    registry.register(
        "leases_expired",
        "Leases taken back because nobody used them",
        metrics.leases_expired.clone(),
    );
    registry.register(
        "processes_ended",
        "Processes of browsers that were ended because they held too much memory",
        metrics.processes_ended.clone(),
    );
    let refused: Counter = Counter::default();
    refused.inner().store(pool.refused_addresses(), Ordering::Relaxed);
    registry.register("addresses_refused", "Connections of pages to addresses they may not reach", refused);
    text(&registry)
}

/// The master's own figures.
pub(crate) fn render_master(
    nodes: usize,
    healthy: usize,
    waiting: usize,
    capacity: usize,
    available: usize,
) -> String {
    let mut registry = Registry::with_prefix("webgym_master");
    for (name, help, value) in [
        ("nodes", "Nodes this master knows", nodes),
        ("healthy_nodes", "Nodes that answered lately", healthy),
        ("get_queue_length", "Callers of /get who wait for a slot", waiting),
        ("capacity", "Slots of all healthy nodes", capacity),
        ("available", "Free slots of all healthy nodes", available),
    ] {
        let gauge: Gauge<i64, AtomicI64> = Gauge::default();
        gauge.set(value as i64);
        registry.register(name, help, gauge);
    }
    text(&registry)
}

fn text(registry: &Registry) -> String {
    let mut out = String::new();
    match encode(&mut out, registry) {
        Ok(()) => out,
        Err(error) => format!("# metrics could not be written: {error}\n"),
    }
}
