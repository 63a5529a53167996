//! What the master does by itself: asks the nodes how they are, follows the registry, and wakes those who wait
//! for a slot when one may have become free.

use std::{collections::HashSet, time::Duration};

use super::{Entry, Master, Origin};
use crate::{node::AnyNode, registry::Registry};

/// Nodes that do not answer are asked this often, so that they are back soon.
const ASK_SICK_EVERY: Duration = Duration::from_secs(1);

pub(crate) async fn poll(master: Master) {
    let limits = master.limits().clone();
    let pace = ASK_SICK_EVERY.min(limits.poll_interval);
    let rounds = (limits.poll_interval.as_secs_f64() / pace.as_secs_f64()).ceil().max(1.0) as u64;
    let mut round = 0;
    loop {
        let all = round % rounds == 0;
        let mut due = master.table().entries();
        due.retain(|entry| entry.is_remote() && (all || !entry.healthy()));
        master.ask_after(due).await;
        master.announce();
        if round == 0 {
            master.0.looked.send_modify(|looked| *looked += 1);
        }
        round += 1;
        tokio::time::sleep(pace).await;
    }
}

/// Wakes those who wait when a slot in this process may have become free.
pub(crate) async fn local(master: Master) {
    let Some(pool) = master.local_pool() else { return };
    let mut changes = pool.changes();
    while changes.changed().await.is_ok() {
        master.announce();
    }
}

pub(crate) async fn discover(master: Master, registry: Registry) {
    let mut first = true;
    loop {
        match registry.nodes().await {
            Ok(urls) => merge(&master, &registry, &urls),
            Err(error) => {
                tracing::warn!(%error, "the registry cannot be read; going on with the nodes known")
            }
        }
        if std::mem::take(&mut first) {
            let mut unasked = master.table().entries();
            unasked.retain(|entry| !entry.healthy());
            master.ask_after(unasked).await;
            master.0.looked.send_modify(|looked| *looked += 1);
        }
        tokio::time::sleep(registry.limits.registry.read).await;
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
