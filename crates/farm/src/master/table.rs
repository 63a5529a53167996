//! The nodes a master knows, where it knows them from, and what it last heard of each.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
};

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

#[derive(Default)]
struct Status {
    healthy: bool,
    /// As last heard, less what we have given out since.
    available: i64,
    info: NodeInfo,
}

impl Entry {
    pub(crate) fn new(hash: String, origin: Origin, node: AnyNode) -> Self {
        Self { hash, origin, node, status: Mutex::default() }
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

    pub(crate) fn healthy(&self) -> bool {
        self.status().healthy
    }

    pub(crate) fn available(&self) -> i64 {
        self.status().available
    }

    pub(crate) fn capacity(&self) -> usize {
        self.status().info.capacity
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
                status.available = info.available as i64;
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

    /// Counts one instance as given out while its node is being asked, so that others are not sent there too.
    pub(crate) fn claim(&self) -> Claim<'_> {
        self.status().available -= 1;
        Claim { entry: self, kept: false }
    }

    pub(crate) fn is_full(&self) {
        self.status().available = 0;
    }

    pub(crate) fn is_unreachable(&self) {
        self.status().healthy = false;
    }

    pub(crate) fn has_one_more(&self) {
        let mut status = self.status();
        status.available = (status.available + 1).min(status.info.capacity as i64);
    }

    pub(crate) fn describe(&self) -> Value {
        let status = self.status();
        let info = &status.info;
        let mut described = json!({
            "url": self.hash, "hash": self.hash, "healthy": status.healthy, "capacity": info.capacity,
            "available": status.available.max(0), "instances": info.in_use, "starting": info.starting, "dead": info.dead,
        });
        for (name, why) in [("held_back", &info.held_back), ("dead_because", &info.dead_because)] {
            if let Some(why) = why {
                described[name] = why.as_str().into();
            }
        }
        described
    }
}

#[must_use]
pub(crate) struct Claim<'a> {
    entry: &'a Entry,
    kept: bool,
}

impl Claim<'_> {
    pub(crate) fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if !self.kept {
            self.entry.status().available += 1;
        }
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
