//! The nodes a master knows, where it knows them from, and what it last heard of each.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
};

use proto::InstanceId;
use serde_json::{Value, json};

use crate::{
    error::FarmError,
    node::{AnyNode, LocalNode, NodeInfo},
};

/// Why a node is in the table, which decides whether it may leave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// In this process or named on the command line: stays.
    Named,
    /// Found in the registry: goes when it is neither there nor answering.
    Discovered,
}

pub(crate) struct Entry {
    hash: String,
    origin: Origin,
    node: AnyNode,
    status: Mutex<Status>,
}

/// What is known of a node elsewhere. One in this process is asked each time.
#[derive(Default)]
struct Status {
    healthy: bool,
    /// How many are being asked for at this moment.
    claims: usize,
    /// Which process answers there.
    incarnation: Option<u128>,
    /// As last heard, and brought up to date with what went through our hands since.
    info: NodeInfo,
}

impl Entry {
    pub(crate) fn new(hash: String, origin: Origin, node: AnyNode) -> Self {
        let healthy = matches!(node, AnyNode::Local(_));
        let status = Status { healthy, ..Status::default() };
        Self { hash, origin, node, status: Mutex::new(status) }
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

    pub(crate) fn healthy(&self) -> bool {
        self.status().healthy
    }

    /// What the node holds: live if it is here, else as far as we know.
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

    /// What a choice between nodes needs, without the list of leases.
    pub(crate) fn glance(&self) -> Glance {
        if let AnyNode::Local(LocalNode(pool)) = &self.node {
            let (counts, draining, claims) = (pool.counts(), pool.draining(), self.status().claims);
            let free = if draining { 0 } else { counts.available.saturating_sub(claims) };
            let held_back = pool.held_back().is_some();
            return Glance { open: !draining, free, coming: counts.starting, held_back };
        }
        let status = self.status();
        let info = &status.info;
        let coming = info.capacity.saturating_sub(info.available + info.in_use.len() + info.dead);
        let free = info.available.saturating_sub(status.claims);
        Glance { open: status.healthy && !info.draining, free, coming, held_back: info.held_back.is_some() }
    }

    /// Which process this is, if it is one that says so.
    pub(crate) fn incarnation(&self) -> Option<u128> {
        match &self.node {
            AnyNode::Local(LocalNode(pool)) => number(&pool.identity().incarnation),
            AnyNode::Remote(_) => self.status().incarnation,
        }
    }

    /// Takes note of an answer to `/info`, or of there being none.
    pub(crate) fn note(&self, answer: Result<NodeInfo, FarmError>) {
        let mut status = self.status();
        match answer {
            Ok(info) => {
                if !status.healthy {
                    tracing::info!(node = self.hash, capacity = info.capacity, "a node is up");
                }
                status.healthy = true;
                status.incarnation = info.incarnation.as_deref().and_then(number);
                status.info = info;
            }
            Err(error) => {
                if status.healthy {
                    tracing::warn!(node = self.hash, %error, "a node is down");
                }
                status.healthy = false;
            }
        }
    }

    /// Counts one instance as taken while its node is being asked, so that others are not sent there too.
    pub(crate) fn claim(self: &Arc<Self>) -> Claim {
        self.status().claims += 1;
        Claim(Arc::clone(self))
    }

    pub(crate) fn is_full(&self) {
        self.status().info.available = 0;
    }

    /// What a node has just said of its draining. Otherwise the next poll tells.
    pub(crate) fn is_draining(&self, draining: bool) {
        self.status().info.draining = draining;
    }

    pub(crate) fn is_unreachable(&self) {
        self.status().healthy = false;
    }

    pub(crate) fn has_leased(&self, id: &InstanceId) {
        let mut status = self.status();
        let id = id.to_string();
        if !status.info.in_use.contains(&id) {
            status.info.available = status.info.available.saturating_sub(1);
            status.info.in_use.push(id);
        }
    }

    pub(crate) fn has_released(&self, id: &InstanceId) {
        let mut status = self.status();
        let id = id.to_string();
        let before = status.info.in_use.len();
        status.info.in_use.retain(|held| *held != id);
        status.info.available += before - status.info.in_use.len();
    }

    pub(crate) fn describe(&self) -> Value {
        let (healthy, info) = (self.healthy(), self.info());
        let mut described = json!({
            "url": self.hash, "hash": self.hash, "healthy": healthy, "capacity": info.capacity,
            "available": info.available, "instances": info.in_use, "starting": info.starting, "dead": info.dead,
        });
        let words = [
            ("id", &info.id),
            ("held_back", &info.held_back),
            ("dead_because", &info.dead_because),
            ("version", &info.version),
        ];
        if info.draining {
            described["draining"] = true.into();
        }
        for (name, words) in words {
            if let Some(words) = words {
                described[name] = words.as_str().into();
            }
        }
        described
    }
}

#[must_use = "the claim ends when this is dropped"]
pub(crate) struct Claim(Arc<Entry>);

impl Drop for Claim {
    fn drop(&mut self) {
        self.0.status().claims -= 1;
    }
}

/// What counts about a node when one is to be chosen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Glance {
    /// Answers, and is not on its way out.
    pub(crate) open: bool,
    /// Free instances that nobody is about to take.
    pub(crate) free: usize,
    /// Those being made ready.
    pub(crate) coming: usize,
    /// New leases wait for memory or CPU there.
    pub(crate) held_back: bool,
}

fn number(incarnation: &str) -> Option<u128> {
    u128::from_str_radix(incarnation, 16).ok()
}

/// How many addresses that nodes have left are remembered.
const MOST_MOVED: usize = 4096;

#[derive(Default)]
pub(crate) struct Table {
    nodes: RwLock<BTreeMap<String, Arc<Entry>>>,
    /// Who was at an address that has left the table: it may go on elsewhere, and clients name it by the old one.
    moved: Mutex<HashMap<String, u128>>,
}

impl Table {
    pub(crate) fn add(&self, entry: Entry) {
        let mut nodes = self.nodes.write().unwrap_or_else(PoisonError::into_inner);
        nodes.entry(entry.hash.clone()).or_insert_with(|| Arc::new(entry));
    }

    pub(crate) fn find(&self, hash: &str) -> Option<Arc<Entry>> {
        let nodes = self.nodes.read().unwrap_or_else(PoisonError::into_inner);
        nodes.get(hash).or_else(|| nodes.get(hash.trim_end_matches('/'))).cloned()
    }

    pub(crate) fn entries(&self) -> Vec<Arc<Entry>> {
        self.nodes.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Every node once, also where it is known under two addresses: the one in this process first, then one that
    /// answers, then one named by hand.
    pub(crate) fn distinct(&self) -> Vec<Arc<Entry>> {
        let mut entries = self.entries();
        let rank =
            |entry: &Arc<Entry>| (entry.is_remote(), !entry.healthy(), entry.origin() == Origin::Discovered);
        entries.sort_by_cached_key(rank);
        let mut seen = HashSet::new();
        entries.retain(|entry| entry.incarnation().is_none_or(|one| seen.insert(one)));
        entries
    }

    /// Who answers for a node that a client names: the node itself, or where it went if it has changed its address.
    pub(crate) fn route(&self, hash: &str) -> Option<Arc<Entry>> {
        let named = self.find(hash);
        if named.as_ref().is_some_and(|entry| entry.healthy()) {
            return named;
        }
        let left = || self.moved.lock().unwrap_or_else(PoisonError::into_inner).get(hash).copied();
        let who = named.as_ref().map_or_else(left, |entry| entry.incarnation());
        let elsewhere = who.and_then(|who| {
            self.entries().into_iter().find(|entry| entry.healthy() && entry.incarnation() == Some(who))
        });
        elsewhere.or(named)
    }

    pub(crate) fn remove(&self, hash: &str) {
        let gone = self.nodes.write().unwrap_or_else(PoisonError::into_inner).remove(hash);
        let Some(who) = gone.and_then(|entry| entry.incarnation()) else { return };
        let mut moved = self.moved.lock().unwrap_or_else(PoisonError::into_inner);
        if moved.len() < MOST_MOVED {
            moved.insert(hash.to_owned(), who);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::node::{HttpClient, RemoteNode};

    /// Adds a node that says that it is this process.
    fn add(table: &Table, hash: &str, origin: Origin, incarnation: Option<&str>) -> Arc<Entry> {
        let node = RemoteNode {
            url: hash.to_owned(),
            key: axum::http::HeaderValue::from_static("k"),
            client: HttpClient::new(),
            request_limit: Duration::ZERO,
            info_limit: Duration::ZERO,
        };
        table.add(Entry::new(hash.to_owned(), origin, AnyNode::Remote(node)));
        let entry = table.find(hash).unwrap();
        entry.note(Ok(NodeInfo { incarnation: incarnation.map(str::to_owned), ..NodeInfo::default() }));
        entry
    }

    fn hashes(entries: &[Arc<Entry>]) -> Vec<&str> {
        entries.iter().map(|entry| entry.hash()).collect()
    }

    #[tokio::test]
    async fn a_node_under_two_addresses_is_one_and_nodes_that_do_not_say_are_not_merged() {
        let table = Table::default();
        add(&table, "http://a", Origin::Discovered, Some("1f"));
        add(&table, "http://b", Origin::Named, Some("1f"));
        add(&table, "http://c", Origin::Discovered, Some("2f"));
        add(&table, "http://p", Origin::Discovered, None);
        add(&table, "http://q", Origin::Discovered, None);
        assert_eq!(hashes(&table.distinct()), ["http://b", "http://c", "http://p", "http://q"]);
    }

    #[tokio::test]
    async fn calls_for_a_node_that_moved_follow_it() {
        let table = Table::default();
        let old = add(&table, "http://old", Origin::Discovered, Some("1f"));
        let to = |table: &Table| table.route("http://old").map(|entry| entry.hash().to_owned());
        assert_eq!(to(&table).as_deref(), Some("http://old"));
        old.is_unreachable();
        assert_eq!(to(&table).as_deref(), Some("http://old"), "there is no other");
        add(&table, "http://other", Origin::Discovered, Some("2f"));
        add(&table, "http://new", Origin::Discovered, Some("1f"));
        assert_eq!(to(&table).as_deref(), Some("http://new"));
        table.remove("http://old");
        assert_eq!(to(&table).as_deref(), Some("http://new"), "also when the old address is forgotten");
        table.find("http://new").unwrap().is_unreachable();
        assert_eq!(to(&table), None);
    }
}
