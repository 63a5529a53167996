//! Background tasks of the master: polling the nodes, reading the registry, and waking queued requests when a slot
//! may have become free.

use std::{collections::HashSet, time::Duration};

use super::{Master, NodeEntry, Origin};
use crate::{node::AnyNode, registry::Registry};

/// Unreachable nodes are polled this often, so that they are back in use soon.
const UNREACHABLE_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Polls all remote nodes, and the unreachable ones more often.
pub(crate) async fn poll(master: Master) {
    let limits = master.limits().clone();
    let interval = UNREACHABLE_POLL_INTERVAL.min(limits.poll_interval);
    let rounds = (limits.poll_interval.as_secs_f64() / interval.as_secs_f64()).ceil().max(1.0) as u64;
    let mut round = 0;
    loop {
        let all = round % rounds == 0;
        let mut due = master.table().entries();
        due.retain(|entry| entry.is_remote() && (all || !entry.is_healthy()));
        master.refresh(due).await;
        master.wake_queue();
        if round == 0 {
            master.record_first_poll();
        }
        round += 1;
        tokio::time::sleep(interval).await;
    }
}

/// Wakes queued requests when a slot in this process may have become free.
pub(crate) async fn follow_local_pool(master: Master) {
    let Some(pool) = master.local_pool() else { return };
    let mut changes = pool.changes();
    while changes.changed().await.is_ok() {
        master.wake_queue();
    }
}

/// Keeps the node table in step with the registry.
pub(crate) async fn discover(master: Master, registry: Registry) {
    let mut first = true;
    loop {
        match registry.nodes().await {
            Ok(urls) => merge(&master, &registry, &urls),
            Err(error) => {
                tracing::warn!(%error, "cannot read the registry; continuing with the known nodes");
            }
        }
        if std::mem::take(&mut first) {
            let mut unpolled = master.table().entries();
            unpolled.retain(|entry| !entry.is_healthy());
            master.refresh(unpolled).await;
            master.record_first_poll();
        }
        tokio::time::sleep(registry.limits.registry.read_interval).await;
    }
}

fn merge(master: &Master, registry: &Registry, urls: &[String]) {
    let table = master.table();
    for url in urls {
        let hash = url.trim_end_matches('/');
        if table.find(hash).is_none() {
            tracing::info!(node = hash, "node discovered");
            let node = AnyNode::Remote(Box::new(registry.remote(hash)));
            table.add(NodeEntry::new(hash, Origin::Discovered, node));
        }
    }
    let listed: HashSet<&str> = urls.iter().map(|url| url.trim_end_matches('/')).collect();
    for entry in table.entries() {
        // Healthy nodes stay even if the registry lost its data.
        if entry.origin() == Origin::Discovered && !listed.contains(entry.hash()) && !entry.is_healthy() {
            tracing::info!(node = entry.hash(), "node removed: it is neither registered nor reachable");
            table.remove(entry.hash());
        }
    }
}
