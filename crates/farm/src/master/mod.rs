//! The master: knows the nodes, sends each `/get` to the freest, and every other call to the node it names.
//! Holds nothing that one poll of the nodes could not rebuild.

mod schedule;
mod table;
mod watch;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use axum::response::Response;
use proto::InstanceId;
use serde_json::{Value, json};

pub(crate) use table::{Entry, Origin, Table};

use crate::{
    error::FarmError,
    node::{AnyNode, Call, GetRequest, LocalNode, Node},
    options::Limits,
    pool::{Granted, Pool},
    queue::Queue,
    registry::Registry,
    tasks::Tasks,
};

struct Shared {
    table: Table,
    queue: Queue,
    /// What was given out under a key, so that a repeated `/get` gives the same.
    keys: Mutex<HashMap<String, Keyed>>,
    limits: Limits,
    stopping: std::sync::atomic::AtomicBool,
}

#[derive(Clone)]
struct Keyed {
    node: String,
    id: InstanceId,
    until: Instant,
}

#[derive(Clone)]
pub(crate) struct Master(Arc<Shared>);

/// A lease and the node it is on.
pub(crate) struct Placed {
    pub(crate) node: String,
    pub(crate) granted: Granted,
}

impl Master {
    pub(crate) fn start(table: Table, limits: Limits, registry: Option<Registry>, tasks: &Tasks) -> Self {
        let shared = Arc::new(Shared {
            table,
            queue: Queue::default(),
            keys: Mutex::default(),
            limits,
            stopping: false.into(),
        });
        let master = Self(shared);
        tasks.spawn_until_stopped("poll nodes", watch::poll(master.clone()));
        tasks.spawn_until_stopped("local slots", watch::local(master.clone()));
        if let Some(registry) = registry {
            tasks.spawn_until_stopped("discover nodes", watch::discover(master.clone(), registry));
        }
        master
    }

    pub(crate) fn table(&self) -> &Table {
        &self.0.table
    }

    pub(crate) fn waiting(&self) -> usize {
        self.0.queue.len()
    }

    pub(crate) fn announce(&self) {
        self.0.queue.announce();
    }

    pub(crate) fn close_to_new(&self) {
        self.0.stopping.store(true, std::sync::atomic::Ordering::Relaxed);
        self.announce();
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.0.stopping.load(std::sync::atomic::Ordering::Relaxed)
    }

    fn keys(&self) -> MutexGuard<'_, HashMap<String, Keyed>> {
        self.0.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A lease on the freest node: now, or within the wait asked for, first come first served.
    pub(crate) async fn get(&self, request: &GetRequest) -> Result<Placed, FarmError> {
        if let Some(known) = request.key.as_deref().and_then(|key| self.given_before(key)) {
            return Ok(known);
        }
        if request.wait == Duration::ZERO && self.waiting() == 0 {
            return self.remember(request, self.get_now(request).await?);
        }
        let attempt = || async {
            match self.get_now(request).await {
                Err(error @ FarmError::NoCapacity(_)) => Ok(Err(error)),
                Err(error) => Err(error),
                Ok(placed) => Ok(Ok(placed)),
            }
        };
        let placed =
            self.0.queue.take(Instant::now() + request.wait, attempt, || FarmError::NoCapacity(None)).await?;
        self.remember(request, placed)
    }

    /// Asks node after node, freest first. Full is not an error while there is another to ask.
    async fn get_now(&self, request: &GetRequest) -> Result<Placed, FarmError> {
        if self.is_stopping() {
            return Err(FarmError::ShuttingDown);
        }
        let here = GetRequest { wait: Duration::ZERO, ..request.clone() };
        let mut full = FarmError::NoCapacity(None);
        for entry in schedule::order(self.0.table.entries()) {
            let claim = entry.claim();
            match entry.node().get(&here).await {
                Ok(granted) => {
                    claim.keep();
                    return Ok(Placed { node: entry.hash().to_owned(), granted });
                }
                Err(error @ FarmError::NoCapacity(_)) => {
                    entry.is_full();
                    full = error;
                }
                Err(FarmError::ShuttingDown) => entry.is_full(),
                Err(error @ FarmError::NodeUnreachable { .. }) => {
                    tracing::warn!(node = entry.hash(), %error, "a node did not answer");
                    entry.is_unreachable();
                }
                // A request no node would take: asking the others cannot help.
                Err(error) => return Err(error),
            }
        }
        Err(full)
    }

    fn given_before(&self, key: &str) -> Option<Placed> {
        let keyed = self.keys().get(key).filter(|keyed| keyed.until > Instant::now()).cloned()?;
        Some(Placed { node: keyed.node, granted: Granted::again(keyed.id) })
    }

    fn remember(&self, request: &GetRequest, placed: Placed) -> Result<Placed, FarmError> {
        /// A client that lost an answer asks again soon or never.
        const KEY_LIFE: Duration = Duration::from_secs(15 * 60);
        if let Some(key) = &request.key {
            let mut keys = self.keys();
            let now = Instant::now();
            if keys.len() > 10_000 {
                keys.retain(|_, keyed| keyed.until > now);
            }
            let keyed = Keyed { node: placed.node.clone(), id: *placed.granted.id(), until: now + KEY_LIFE };
            keys.insert(key.clone(), keyed);
        }
        Ok(placed)
    }

    fn node(&self, hash: &str) -> Result<Arc<Entry>, FarmError> {
        self.0.table.find(hash).ok_or_else(|| FarmError::UnknownNode(hash.chars().take(200).collect()))
    }

    pub(crate) async fn reset(&self, node: &str, id: &InstanceId) -> Result<(), FarmError> {
        let entry = self.node(node)?;
        self.keys().retain(|_, keyed| keyed.id != *id);
        let outcome = entry.node().reset(id).await;
        match &outcome {
            Ok(()) => entry.has_one_more(),
            Err(FarmError::NodeUnreachable { .. }) => entry.is_unreachable(),
            Err(_) => {}
        }
        self.announce();
        outcome
    }

    pub(crate) async fn call(&self, node: &str, id: &InstanceId, call: Call) -> Result<Response, FarmError> {
        let entry = self.node(node)?;
        let answer = entry.node().call(id, call).await;
        if matches!(answer, Err(FarmError::NodeUnreachable { .. })) {
            entry.is_unreachable();
        }
        answer
    }

    /// `/info` of the master, fresh from the nodes that are near, as last polled from the others.
    pub(crate) async fn info(&self) -> Value {
        let mut nodes = Vec::new();
        for entry in self.0.table.entries() {
            if let AnyNode::Local(node) = entry.node() {
                entry.note(node.info().await);
            }
            nodes.push(entry.describe());
        }
        json!({ "nodes": nodes })
    }

    /// The pool in this process, if the master has one.
    pub(crate) fn local_pool(&self) -> Option<Pool> {
        self.0.table.entries().iter().find_map(|entry| match entry.node() {
            AnyNode::Local(LocalNode(pool)) => Some(pool.clone()),
            AnyNode::Remote(_) => None,
        })
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.0.limits
    }
}
