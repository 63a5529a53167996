//! Prometheus metrics of an environment server. Labels are outcomes and message types only, never tasks or clients.

use std::time::Duration;

use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    outcome: &'static str,
}

/// What a server counts.
pub(crate) struct EnvMetrics {
    connections: Gauge,
    waiting: Gauge,
    resets: Counter,
    outcomes: Family<OutcomeLabels, Counter>,
    step_seconds: Histogram,
}

impl Default for EnvMetrics {
    fn default() -> Self {
        Self {
            connections: Gauge::default(),
            waiting: Gauge::default(),
            resets: Counter::default(),
            outcomes: Family::default(),
            step_seconds: Histogram::new([0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 120.0]),
        }
    }
}

/// Counts something as long as it exists.
#[must_use]
pub(crate) struct Counted(Gauge);

impl Counted {
    fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl EnvMetrics {
    pub(crate) fn count_connection(&self) -> Counted {
        Counted::new(&self.connections)
    }

    pub(crate) fn count_waiting(&self) -> Counted {
        Counted::new(&self.waiting)
    }

    pub(crate) fn record_reset(&self) {
        self.resets.inc();
    }

    pub(crate) fn record_step(&self, duration: Duration) {
        self.step_seconds.observe(duration.as_secs_f64());
    }

    pub(crate) fn record_outcome(&self, outcome: &'static str) {
        self.outcomes.get_or_create(&OutcomeLabels { outcome }).inc();
    }

    /// Formats the metrics for Prometheus.
    pub(crate) fn to_text(&self, active_sessions: usize) -> String {
        let mut registry = Registry::with_prefix("webgym_env");
        let active = Gauge::<i64>::default();
        active.set(i64::try_from(active_sessions).unwrap_or(i64::MAX));
        registry.register("active_sessions", "Episodes that hold a browser", active);
        registry.register("connections", "Open WebSocket connections", self.connections.clone());
        registry.register("waiting", "Resets that wait for a session", self.waiting.clone());
        registry.register("resets", "Episodes started", self.resets.clone());
        registry.register("episodes", "Episodes ended, by outcome", self.outcomes.clone());
        registry.register("step_seconds", "Duration of a step", self.step_seconds.clone());
        let mut text = String::new();
        let _ = encode(&mut text, &registry);
        text
    }
}
