//! The slots of a farm by state, read from `/metrics`, and the invariant that they add up to the capacity.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use hyper::Method;
use tokio::task::JoinHandle;

use crate::{http::Http, webgym::Webgym};

/// Slot counts by state, with the related browser and lease metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slots {
    pub available: usize,
    pub in_use: usize,
    pub starting: usize,
    pub dead: usize,
    pub capacity: usize,
    pub browsers: usize,
    pub restarts: usize,
    pub waiting: usize,
    pub lost: usize,
    pub expired: usize,
}

impl Slots {
    /// Reads the current values from a node, or from a master that contains one.
    pub async fn fetch(http: &Http) -> Self {
        Self::parse(&http.get("/metrics", &[]).await.text())
    }

    /// Parses Prometheus text; panics if a metric is missing.
    pub fn parse(metrics: &str) -> Self {
        Self::try_parse(metrics).unwrap_or_else(|name| panic!("no {name} in\n{metrics}"))
    }

    /// Parses text that may be incomplete; the error is the name of the missing metric.
    pub fn try_parse(metrics: &str) -> Result<Self, String> {
        let value = |name: &str| -> Result<usize, String> {
            let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.and_then(|count| count.trim().parse().ok()).ok_or_else(|| name.to_owned())
        };
        let state = |state: &str| value(&format!("webgym_slots{{state=\"{state}\"}}"));
        Ok(Self {
            available: state("available")?,
            in_use: state("in_use")?,
            starting: state("starting")?,
            dead: state("dead")?,
            capacity: value("webgym_capacity")?,
            browsers: value("webgym_browsers")?,
            restarts: value("webgym_browser_restarts_total")?,
            waiting: value("webgym_get_queue_length")?,
            lost: value("webgym_instances_lost_total")?,
            expired: value("webgym_leases_expired_total")?,
        })
    }

    /// Every slot is in exactly one state.
    pub fn is_consistent(&self) -> bool {
        self.available + self.in_use + self.starting + self.dead == self.capacity
    }

    /// Every slot is available.
    pub fn is_all_free(&self) -> bool {
        self.available == self.capacity
    }

    /// Waits until every slot is free and the farm's browser count matches its processes.
    pub async fn wait_all_free(webgym: &Webgym, http: &Http, limit: Duration) -> Self {
        let what =
            format!("all slots of {} are free and its browser count matches its processes", http.base());
        crate::poll_until(&what, limit, async || {
            let slots = Self::fetch(http).await;
            (slots.is_all_free() && slots.browsers == webgym.browsers().len()).then_some(slots)
        })
        .await
    }
}

/// Samples the slots continuously and records every sample that does not add up.
#[must_use = "call `assert_consistent` or `stop`"]
pub struct SlotMonitor {
    stop: Arc<AtomicBool>,
    task: JoinHandle<(usize, Vec<Slots>)>,
}

impl SlotMonitor {
    pub fn start(http: &Http) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (until, http) = (Arc::clone(&stop), http.clone());
        let task = tokio::spawn(async move {
            let (mut samples, mut inconsistent) = (0, Vec::new());
            while !until.load(Ordering::Relaxed) {
                if let Ok(reply) = http.try_send(Method::GET, "/metrics", &[], "", &[]).await {
                    let slots = Slots::parse(&reply.text());
                    samples += 1;
                    inconsistent.extend((!slots.is_consistent()).then_some(slots));
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            (samples, inconsistent)
        });
        Self { stop, task }
    }

    /// Stops sampling. Returns the number of samples and those that were inconsistent.
    pub async fn stop(self) -> (usize, Vec<Slots>) {
        self.stop.store(true, Ordering::Relaxed);
        self.task.await.expect("the monitor does not panic")
    }

    /// Stops sampling and panics if a sample was inconsistent.
    pub async fn assert_consistent(self) {
        let (samples, inconsistent) = self.stop().await;
        assert!(samples > 0, "no sample was taken");
        assert!(
            inconsistent.is_empty(),
            "{} of {samples} samples: {:?}",
            inconsistent.len(),
            inconsistent[0]
        );
    }
}
