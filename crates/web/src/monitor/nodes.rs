//! The farm's nodes for the monitor, from the farm's `/info`. Polled in the background only while a page is open, so that
//! neither the run nor a page waits for the farm.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use client::{
    farm::{FarmClient, NodeInfo},
    http::Deadline,
};
use serde_json::{Value, json};

const POLL_INTERVAL: Duration = Duration::from_secs(2);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// The latest known state of the farm's nodes.
pub(super) struct Nodes {
    farm: Option<FarmClient>,
    is_polling: AtomicBool,
    latest: Mutex<Polled>,
}

/// The last response and when it arrived.
#[derive(Default)]
struct Polled {
    received: Option<Instant>,
    nodes: Value,
}

impl Nodes {
    pub(super) fn new(farm: Option<FarmClient>) -> Arc<Self> {
        Arc::new(Self { farm, is_polling: AtomicBool::new(false), latest: Mutex::default() })
    }

    /// Returns a list of nodes, or null while none is known.
    pub(super) fn latest(&self) -> Value {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).nodes.clone()
    }

    fn is_fresh(&self) -> bool {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        latest.received.is_some_and(|received| received.elapsed() < POLL_INTERVAL)
    }

    /// Starts a poll unless the last response is fresh or a poll is running.
    pub(super) fn refresh(self: &Arc<Self>) {
        let Some(farm) = self.farm.clone() else { return };
        if self.is_fresh() || self.is_polling.swap(true, Ordering::AcqRel) {
            return;
        }
        let nodes = Arc::clone(self);
        tokio::spawn(async move {
            let info = farm.info(Deadline::after(REQUEST_TIMEOUT)).await;
            let list = info.map_or(Value::Null, |info| info.nodes.iter().map(describe).collect());
            *nodes.latest.lock().unwrap_or_else(PoisonError::into_inner) =
                Polled { received: Some(Instant::now()), nodes: list };
            nodes.is_polling.store(false, Ordering::Release);
        });
    }
}

fn describe(node: &NodeInfo) -> Value {
    let name = if node.url.is_empty() { &node.hash } else { &node.url };
    json!({
        "name": name, "healthy": node.healthy, "capacity": node.capacity, "available": node.available,
        "in_use": node.instances.len(), "starting": node.starting, "dead": node.dead,
    })
}
