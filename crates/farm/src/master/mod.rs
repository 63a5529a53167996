//! The master: knows the nodes, sends each `/get` to the freest, and every other call to the node it names.
//! Holds nothing that one poll of the nodes could not rebuild.

mod keys;
mod place;
mod schedule;
mod shared_keys;
mod table;
mod watch;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use axum::response::Response;
use futures_util::{StreamExt, stream};
use proto::InstanceId;
use serde_json::{Value, json};
use tokio::sync::watch as tell;

use keys::Keys;
pub(crate) use shared_keys::SharedKeys;
pub(crate) use table::{Entry, Glance, Origin, Table};

use crate::{
    error::FarmError,
    node::{AnyNode, Call, LocalNode, Node},
    options::Limits,
    pool::{Drained, Pool},
    queue::Queue,
    registry::Registry,
    tasks::Tasks,
};

const POLLS_AT_ONCE: usize = 64;

struct Shared {
    table: Table,
    queue: Queue,
    keys: Keys,
    /// The same over several masters, where they meet in Redis.
    shared: Option<SharedKeys>,
    limits: Limits,
    stopping: AtomicBool,
    /// How many of the first looks (nodes, registry) have been taken.
    looked: tell::Sender<usize>,
    looks: usize,
    tasks: Tasks,
}

#[derive(Clone)]
pub(crate) struct Master(Arc<Shared>);

impl Master {
    pub(crate) fn start(
        table: Table,
        limits: Limits,
        registry: Option<Registry>,
        shared: Option<SharedKeys>,
        tasks: &Tasks,
    ) -> Self {
        let shared = Arc::new(Shared {
            table,
            queue: Queue::default(),
            keys: Keys::default(),
            shared,
            limits,
            stopping: AtomicBool::new(false),
            looked: tell::Sender::new(0),
            looks: 1 + usize::from(registry.is_some()),
            tasks: tasks.clone(),
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

    pub(crate) fn limits(&self) -> &Limits {
        &self.0.limits
    }

    pub(crate) fn waiting(&self) -> usize {
        self.0.queue.len()
    }

    pub(crate) fn announce(&self) {
        self.0.queue.announce();
    }

    pub(crate) fn close_to_new(&self) {
        self.0.stopping.store(true, Ordering::Relaxed);
        self.announce();
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.0.stopping.load(Ordering::Relaxed)
    }

    /// Waits until every node that is known from the start has been asked once how it is.
    pub(crate) async fn looked(&self) {
        let mut looked = self.0.looked.subscribe();
        let _ = looked.wait_for(|looked| *looked >= self.0.looks).await;
    }

    fn node(&self, hash: &str) -> Result<Arc<Entry>, FarmError> {
        self.0.table.route(hash).ok_or_else(|| FarmError::UnknownNode(hash.chars().take(200).collect()))
    }

    pub(crate) async fn reset(&self, node: &str, id: &InstanceId) -> Result<(), FarmError> {
        let entry = self.node(node)?;
        self.forget_keys(id);
        let outcome = entry.node().reset(id).await;
        match &outcome {
            Ok(()) => entry.has_released(id),
            Err(FarmError::NodeUnreachable { .. }) => entry.is_unreachable(),
            Err(_) => {}
        }
        self.announce();
        outcome
    }

    /// A busy farm gives thousands of leases while a key would run out by itself.
    fn forget_keys(&self, id: &InstanceId) {
        let keys = self.0.keys.forget(id);
        if keys.is_empty() || self.0.shared.is_none() {
            return;
        }
        let master = self.clone();
        self.0.tasks.spawn_until_stopped("forget keys", async move {
            for (key, given) in keys {
                if let Some(shared) = &master.0.shared {
                    shared.forget(&key, &given.node, &given.id).await;
                }
            }
        });
    }

    pub(crate) async fn call(&self, node: &str, id: &InstanceId, call: Call) -> Result<Response, FarmError> {
        let entry = self.node(node)?;
        let answer = entry.node().call(id, call).await;
        if matches!(answer, Err(FarmError::NodeUnreachable { .. })) {
            entry.is_unreachable();
        }
        answer
    }

    /// Lets a node's leases run out, or takes that back. Other masters hear of it when they ask the node.
    pub(crate) async fn drain(&self, node: &str, on: bool) -> Result<Drained, FarmError> {
        let entry = self.node(node)?;
        let drained = entry.node().drain(on).await?;
        entry.is_draining(drained.draining);
        self.announce();
        Ok(drained)
    }

    /// Asks these nodes how they are, all at once.
    async fn ask_after(&self, entries: Vec<Arc<Entry>>) {
        stream::iter(entries)
            .for_each_concurrent(POLLS_AT_ONCE, |entry| async move {
                let answer = entry.node().info().await;
                entry.note(answer);
            })
            .await;
    }

    /// `/info` of the master: fresh, as far as the nodes answer.
    pub(crate) async fn info(&self) -> Value {
        let entries = self.0.table.distinct();
        let mut answering = entries.clone();
        answering.retain(|entry| entry.is_remote() && entry.healthy());
        self.ask_after(answering).await;
        let nodes: Vec<Value> = entries.iter().map(|entry| entry.describe()).collect();
        json!({ "nodes": nodes })
    }

    /// The pool in this process, if the master has one.
    pub(crate) fn local_pool(&self) -> Option<Pool> {
        self.0.table.entries().iter().find_map(|entry| match entry.node() {
            AnyNode::Local(LocalNode(pool)) => Some(pool.clone()),
            AnyNode::Remote(_) => None,
        })
    }
}
