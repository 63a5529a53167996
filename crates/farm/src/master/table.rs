//! The nodes a master knows, where it knows them from, and what it last heard of each.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
};

use proto::InstanceId;
use serde_json::{Value, json};

use crate::{
    error::FarmError,
    node::{AnyNode, NodeInfo},
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
                info.starting = info.capacity.saturating_sub(info.available + info.in_use.len() + info.dead);
                info
            }
        }
    }

    /// Free instances that nobody is about to take.
    pub(crate) fn available(&self) -> usize {
        let free = self.info().available;
        free.saturating_sub(self.status().claims)
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
            ("held_back", &info.held_back),
            ("dead_because", &info.dead_because),
            ("version", &info.version),
        ];
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

#[derive(Default)]
pub(crate) struct Table(RwLock<BTreeMap<String, Arc<Entry>>>);

impl Table {
    pub(crate) fn add(&self, entry: Entry) {
        let mut nodes = self.0.write().unwrap_or_else(PoisonError::into_inner);
        nodes.entry(entry.hash.clone()).or_insert_with(|| Arc::new(entry));
    }

    pub(crate) fn find(&self, hash: &str) -> Option<Arc<Entry>> {
        let nodes = self.0.read().unwrap_or_else(PoisonError::into_inner);
        nodes.get(hash).or_else(|| nodes.get(hash.trim_end_matches('/'))).cloned()
    }

    pub(crate) fn entries(&self) -> Vec<Arc<Entry>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    pub(crate) fn remove(&self, hash: &str) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(hash);
    }
}
