//! What the master does by itself: asks the nodes how they are, follows the registry, and wakes those who wait
//! for a slot when one in this process becomes free.

use std::{collections::HashSet, time::Duration};

use futures_util::{StreamExt, stream};

use super::{Entry, Master, Origin};
use crate::{
    node::{AnyNode, Node},
    registry::Registry,
};

/// Nodes that do not answer are asked this often, so that they are back soon.
const ASK_SICK_EVERY: Duration = Duration::from_secs(1);
const READ_REGISTRY_EVERY: Duration = Duration::from_secs(10);
const POLLS_AT_ONCE: usize = 64;

pub(crate) async fn poll(master: Master) {
    let limits = master.limits().clone();
    let pace = ASK_SICK_EVERY.min(limits.poll_interval);
    let rounds = (limits.poll_interval.as_secs_f64() / pace.as_secs_f64()).ceil().max(1.0) as u64;
    let mut round = 0;
    loop {
        let all = round % rounds == 0;
        let due = master.table().entries().into_iter().filter(|entry| all || !entry.healthy());
        stream::iter(due)
            .for_each_concurrent(POLLS_AT_ONCE, |entry| async move {
                let answer = entry.node().info().await;
                entry.note(answer);
            })
            .await;
        master.announce();
        round += 1;
        tokio::time::sleep(pace).await;
    }
}

pub(crate) async fn local(master: Master) {
    let Some(pool) = master.local_pool() else { return };
    let mut changes = pool.changes();
    loop {
        for entry in master.table().entries() {
            if let AnyNode::Local(node) = entry.node() {
                entry.note(node.info().await);
            }
        }
        master.announce();
        if changes.changed().await.is_err() {
            return;
        }
    }
}

pub(crate) async fn discover(master: Master, registry: Registry) {
    loop {
        match registry.nodes().await {
            Ok(urls) => merge(&master, &registry, &urls),
            Err(error) => {
                tracing::warn!(%error, "the registry cannot be read; going on with the nodes known")
            }
        }
        tokio::time::sleep(READ_REGISTRY_EVERY).await;
    }
}

fn merge(master: &Master, registry: &Registry, urls: &[String]) {
    let table = master.table();
    for url in urls {
        let hash = url.trim_end_matches('/');
        if table.find(hash).is_none() {
            tracing::info!(node = hash, "a node was discovered");
            table.add(Entry::new(
                hash.to_owned(),
                Origin::Discovered,
                AnyNode::Remote(registry.remote(hash)),
            ));
        }
    }
    let listed: HashSet<&str> = urls.iter().map(|url| url.trim_end_matches('/')).collect();
    for entry in table.entries() {
        // A registry that lost its memory does not make healthy nodes vanish.
        if entry.origin() == Origin::Discovered && !listed.contains(entry.hash()) && !entry.healthy() {
            tracing::info!(node = entry.hash(), "a node has left");
            table.remove(entry.hash());
        }
    }
}
