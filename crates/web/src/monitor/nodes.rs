//! The farm's nodes as its `/info` tells of them: asked for now and then while somebody looks, never in anyone's way.

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

const EVERY: Duration = Duration::from_secs(2);
const LIMIT: Duration = Duration::from_secs(5);

pub(super) struct Nodes {
    farm: Option<FarmClient>,
    asking: AtomicBool,
    state: Mutex<(Option<Instant>, Value)>,
}

impl Nodes {
    pub(super) fn new(farm: Option<FarmClient>) -> Arc<Self> {
        Arc::new(Self { farm, asking: AtomicBool::new(false), state: Mutex::new((None, Value::Null)) })
    }

    /// A list of nodes; null when nothing is known of them.
    pub(super) fn latest(&self) -> Value {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).1.clone()
    }

    fn is_fresh(&self) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.0.is_some_and(|asked| asked.elapsed() < EVERY)
    }

    /// Asks anew, unless the last answer is fresh or still to come.
    pub(super) fn refresh(self: &Arc<Self>) {
        let Some(farm) = self.farm.clone() else { return };
        if self.is_fresh() || self.asking.swap(true, Ordering::AcqRel) {
            return;
        }
        let nodes = Arc::clone(self);
        tokio::spawn(async move {
            let info = farm.info(Deadline::after(LIMIT)).await;
            let told = info.map_or(Value::Null, |info| info.nodes.iter().map(describe).collect());
            *nodes.state.lock().unwrap_or_else(PoisonError::into_inner) = (Some(Instant::now()), told);
            nodes.asking.store(false, Ordering::Release);
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
