//! The nodes that a master knows, where it knows them from, and the last known status of each.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock},
};

use proto::InstanceId;
use serde_json::{Value, json};

use super::schedule::{Asked, NextNode, NodeOrder, Place};
use crate::{
    error::ApiError,
    node::{AnyNode, LocalNode, NodeInfo},
};

/// Why a node is in the table, which decides whether it can be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// In this process or given on the command line: never removed.
    Configured,
    /// Found in the registry: removed when it is neither listed there nor reachable.
    Discovered,
}

/// A node and what the master knows about it.
pub(crate) struct NodeEntry {
    hash: Arc<str>,
    origin: Origin,
    node: AnyNode,
    status: Mutex<Status>,
    /// The order of the table, to which a remote node reports every change.
    order: Arc<NodeOrder>,
}

impl Status {
    fn snapshot(&self) -> NodeSnapshot {
        let info = &self.info;
        NodeSnapshot {
            accepting: self.healthy && !info.draining,
            free: info.available.saturating_sub(self.reservations),
            starting: info.capacity.saturating_sub(info.available + info.in_use.len() + info.dead),
            held_back: info.held_back.is_some(),
        }
    }
}

/// The last known status of a remote node. A local node is asked each time.
#[derive(Default)]
struct Status {
    healthy: bool,
    /// Whether the node has left the table. Requests to it may still be in progress.
    removed: bool,
    /// Leases that are being requested from the node at the moment.
    reservations: usize,
    /// Identifies the process that answers at the address.
    incarnation: Option<u128>,
    /// The last response to `/info`, updated with the leases and releases that this master made since.
    info: NodeInfo,
}

impl NodeEntry {
    pub(crate) fn new(hash: &str, origin: Origin, node: AnyNode) -> Self {
        let healthy = matches!(node, AnyNode::Local(_));
        let status = Mutex::new(Status { healthy, ..Status::default() });
        Self { hash: hash.into(), origin, node, status, order: Arc::default() }
    }

    fn status(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn hash(&self) -> &str {
        &self.hash
    }

    pub(crate) fn origin(&self) -> Origin {
        self.origin
    }

    pub(crate) fn node(&self) -> &AnyNode {
        &self.node
    }

    pub(crate) fn is_remote(&self) -> bool {
        matches!(self.node, AnyNode::Remote(_))
    }

    pub(crate) fn is_healthy(&self) -> bool {
        self.status().healthy
    }

    /// Whether the node applies session options. Nodes of the Python system, which report no version, ignore them.
    pub(crate) fn accepts_options(&self) -> bool {
        self.info().version.is_some()
    }

    /// Returns the node's slots and leases: current if it is local, else as last known.
    pub(crate) fn info(&self) -> NodeInfo {
        match &self.node {
            AnyNode::Local(node) => node.info_now(),
            AnyNode::Remote(_) => {
                let mut info = self.status().info.clone();
                if info.draining {
                    (info.available, info.starting) = (0, 0);
                    return info;
                }
                info.starting = info.capacity.saturating_sub(info.available + info.in_use.len() + info.dead);
                info
            }
        }
    }

    /// Returns what scheduling needs to know, without the list of leases.
    pub(crate) fn snapshot(&self) -> NodeSnapshot {
        if let AnyNode::Local(LocalNode(pool)) = &self.node {
            let (counts, draining, reserved) =
                (pool.counts(), pool.is_draining(), self.status().reservations);
            let free = if draining { 0 } else { counts.available.saturating_sub(reserved) };
            let held_back = pool.held_back().is_some();
            return NodeSnapshot { accepting: !draining, free, starting: counts.starting, held_back };
        }
        self.status().snapshot()
    }

    /// Changes the status and reports it to the order of the table.
    fn change<T>(&self, change: impl FnOnce(&mut Status) -> T) -> T {
        let mut status = self.status();
        let result = change(&mut status);
        if self.is_remote() {
            // Under the lock, so that the order gets the changes in the order in which they were made.
            self.order.update(&self.hash, (!status.removed).then(|| self.place(&status)));
        }
        result
    }

    fn place(&self, status: &Status) -> Place {
        let preference = (!status.healthy, self.origin == Origin::Discovered);
        Place { snapshot: status.snapshot(), process: status.incarnation, preference }
    }

    /// Returns which process this is, if the node reports it.
    pub(crate) fn incarnation(&self) -> Option<u128> {
        match &self.node {
            AnyNode::Local(LocalNode(pool)) => parse_incarnation(&pool.identity().incarnation),
            AnyNode::Remote(_) => self.status().incarnation,
        }
    }

    /// Records a response to `/info`, or its failure.
    pub(crate) fn record_info(&self, answer: Result<NodeInfo, ApiError>) {
        self.change(|status| match answer {
            Ok(info) => {
                if !status.healthy {
                    tracing::info!(node = self.hash(), capacity = info.capacity, "node is up");
                }
                status.healthy = true;
                status.incarnation = info.incarnation.as_deref().and_then(parse_incarnation);
                status.info = info;
            }
            Err(error) => {
                if status.healthy {
                    tracing::warn!(node = self.hash(), %error, "node is down");
                }
                status.healthy = false;
            }
        });
    }

    /// Counts one slot as taken while the node is being asked, so that other requests prefer other nodes.
    pub(crate) fn reserve(self: &Arc<Self>) -> Reservation {
        self.change(|status| status.reservations += 1);
        Reservation(Arc::clone(self))
    }

    pub(crate) fn mark_full(&self) {
        self.change(|status| status.info.available = 0);
    }

    /// Records what the node just reported; otherwise the next poll would.
    pub(crate) fn set_draining(&self, draining: bool) {
        self.change(|status| status.info.draining = draining);
    }

    pub(crate) fn mark_unreachable(&self) {
        self.change(|status| status.healthy = false);
    }

    pub(crate) fn record_lease(&self, id: &InstanceId) {
        let id = id.to_string();
        self.change(|status| {
            if !status.info.in_use.contains(&id) {
                status.info.available = status.info.available.saturating_sub(1);
                status.info.in_use.push(id);
            }
        });
    }

    pub(crate) fn record_release(&self, id: &InstanceId) {
        let id = id.to_string();
        self.change(|status| {
            let before = status.info.in_use.len();
            status.info.in_use.retain(|held| *held != id);
            status.info.available += before - status.info.in_use.len();
        });
    }

    /// Returns the node's part of the master's `/info`.
    pub(crate) fn describe(&self) -> Value {
        let (healthy, info) = (self.is_healthy(), self.info());
        let mut described = json!({
            "url": self.hash(), "hash": self.hash(), "healthy": healthy, "capacity": info.capacity,
            "available": info.available, "instances": info.in_use, "starting": info.starting, "dead": info.dead,
        });
        if info.draining {
            described["draining"] = true.into();
        }
        let optional = [
            ("id", info.id),
            ("held_back", info.held_back),
            ("dead_because", info.dead_because),
            ("version", info.version),
        ];
        for (name, text) in optional {
            if let Some(text) = text {
                described[name] = text.into();
            }
        }
        described
    }
}

/// A slot that is counted as taken until this is dropped.
#[must_use = "the reservation ends when this is dropped"]
pub(crate) struct Reservation(Arc<NodeEntry>);

impl Drop for Reservation {
    fn drop(&mut self) {
        self.0.change(|status| status.reservations -= 1);
    }
}

/// What scheduling needs to know about a node at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeSnapshot {
    /// Healthy and not draining.
    pub(crate) accepting: bool,
    /// Free slots, without those that other requests are about to take.
    pub(crate) free: usize,
    /// Slots whose browser is being started or cleaned.
    pub(crate) starting: usize,
    /// New leases wait for memory or CPU there.
    pub(crate) held_back: bool,
}

fn parse_incarnation(text: &str) -> Option<u128> {
    u128::from_str_radix(text, 16).ok()
}

/// How many former addresses of nodes are remembered.
const MAX_MOVED: usize = 4096;

/// All nodes of a master, by address.
#[derive(Default)]
pub(crate) struct NodeTable {
    nodes: RwLock<BTreeMap<Arc<str>, Arc<NodeEntry>>>,
    order: Arc<NodeOrder>,
    /// The node in this process.
    local: OnceLock<Arc<NodeEntry>>,
    /// The process that was last at an address which left the table. It may be reachable at another address, while
    /// clients still use the old one.
    moved: Mutex<HashMap<String, u128>>,
}

impl NodeTable {
    pub(crate) fn add(&self, mut entry: NodeEntry) {
        let mut nodes = self.nodes.write().unwrap_or_else(PoisonError::into_inner);
        if nodes.contains_key(&entry.hash) {
            return;
        }
        entry.order = Arc::clone(&self.order);
        let entry = Arc::new(entry);
        if entry.is_remote() {
            entry.change(|_| {});
        } else {
            self.order.set_own_process(entry.incarnation());
            let _ = self.local.set(Arc::clone(&entry));
        }
        nodes.insert(Arc::clone(&entry.hash), entry);
    }

    /// Returns the next node to ask for a lease, the one with the most free slots of those that were not asked.
    pub(crate) fn next_to_ask(&self, asked: &mut Asked) -> Option<Arc<NodeEntry>> {
        let local = self.local.get();
        loop {
            return match asked.next(local.map(|entry| entry.snapshot()), &self.order)? {
                NextNode::Own => local.cloned(),
                NextNode::Remote(address) => match self.find(&address) {
                    Some(entry) => Some(entry),
                    // It has just left the table.
                    None => continue,
                },
            };
        }
    }

    /// Returns whether any accepting node holds leases back, and whether any has starting slots.
    pub(crate) fn hints(&self) -> (bool, bool) {
        let (held_back, starting) = self.order.hints();
        let local = self.local.get().map(|entry| entry.snapshot()).filter(|local| local.accepting);
        let local = local.map_or((false, false), |local| (local.held_back, local.starting > 0));
        (held_back || local.0, starting || local.1)
    }

    pub(crate) fn find(&self, hash: &str) -> Option<Arc<NodeEntry>> {
        let nodes = self.nodes.read().unwrap_or_else(PoisonError::into_inner);
        nodes.get(hash).or_else(|| nodes.get(hash.trim_end_matches('/'))).cloned()
    }

    pub(crate) fn entries(&self) -> Vec<Arc<NodeEntry>> {
        self.nodes.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Returns every node once, even if it is known under two addresses. Preferred are the local node, then healthy
    /// entries, then configured ones.
    pub(crate) fn distinct(&self) -> Vec<Arc<NodeEntry>> {
        let mut entries = self.entries();
        let rank = |entry: &Arc<NodeEntry>| {
            (entry.is_remote(), !entry.is_healthy(), entry.origin() == Origin::Discovered)
        };
        entries.sort_by_cached_key(rank);
        let mut seen = HashSet::new();
        entries.retain(|entry| entry.incarnation().is_none_or(|incarnation| seen.insert(incarnation)));
        entries
    }

    /// Returns the entry to use for a node that a client names: the entry itself, or another healthy one of the same
    /// process if the node has changed its address.
    pub(crate) fn route(&self, hash: &str) -> Option<Arc<NodeEntry>> {
        let named = self.find(hash);
        if named.as_ref().is_some_and(|entry| entry.is_healthy()) {
            return named;
        }
        let removed = || self.moved.lock().unwrap_or_else(PoisonError::into_inner).get(hash).copied();
        let incarnation = named.as_ref().map_or_else(removed, |entry| entry.incarnation());
        let moved = incarnation.and_then(|incarnation| {
            let mut entries = self.entries().into_iter();
            entries.find(|entry| entry.is_healthy() && entry.incarnation() == Some(incarnation))
        });
        moved.or(named)
    }

    pub(crate) fn remove(&self, hash: &str) {
        let removed = self.nodes.write().unwrap_or_else(PoisonError::into_inner).remove(hash);
        if let Some(entry) = &removed {
            entry.change(|status| status.removed = true);
        }
        let Some(incarnation) = removed.and_then(|entry| entry.incarnation()) else { return };
        let mut moved = self.moved.lock().unwrap_or_else(PoisonError::into_inner);
        if moved.len() < MAX_MOVED {
            moved.insert(hash.to_owned(), incarnation);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::node::{HttpClient, RemoteNode};

    /// Adds a remote node that has reported this incarnation.
    fn add(table: &NodeTable, hash: &str, origin: Origin, incarnation: Option<&str>) -> Arc<NodeEntry> {
        let node = RemoteNode {
            url: hash.to_owned(),
            key: axum::http::HeaderValue::from_static("k"),
            client: HttpClient::new(),
            request_timeout: Duration::ZERO,
            info_timeout: Duration::ZERO,
        };
        table.add(NodeEntry::new(hash, origin, AnyNode::Remote(Box::new(node))));
        let entry = table.find(hash).unwrap();
        entry
            .record_info(Ok(NodeInfo { incarnation: incarnation.map(str::to_owned), ..NodeInfo::default() }));
        entry
    }

    fn hashes(entries: &[Arc<NodeEntry>]) -> Vec<&str> {
        entries.iter().map(|entry| entry.hash()).collect()
    }

    #[tokio::test]
    async fn addresses_of_one_process_are_one_node() {
        let table = NodeTable::default();
        add(&table, "http://a", Origin::Discovered, Some("1f"));
        add(&table, "http://b", Origin::Configured, Some("1f"));
        add(&table, "http://c", Origin::Discovered, Some("2f"));
        // Nodes without an incarnation are never merged.
        add(&table, "http://p", Origin::Discovered, None);
        add(&table, "http://q", Origin::Discovered, None);
        assert_eq!(hashes(&table.distinct()), ["http://b", "http://c", "http://p", "http://q"]);
    }

    #[tokio::test]
    async fn calls_follow_a_moved_node() {
        let table = NodeTable::default();
        let old = add(&table, "http://old", Origin::Discovered, Some("1f"));
        let route = |table: &NodeTable| table.route("http://old").map(|entry| entry.hash().to_owned());
        assert_eq!(route(&table).as_deref(), Some("http://old"));
        old.mark_unreachable();
        assert_eq!(route(&table).as_deref(), Some("http://old"), "there is no other address");
        add(&table, "http://other", Origin::Discovered, Some("2f"));
        add(&table, "http://new", Origin::Discovered, Some("1f"));
        assert_eq!(route(&table).as_deref(), Some("http://new"));
        table.remove("http://old");
        assert_eq!(route(&table).as_deref(), Some("http://new"), "the old address is still known");
        table.find("http://new").unwrap().mark_unreachable();
        assert_eq!(route(&table), None);
    }
}
