//! The master: knows the nodes, sends each `/get` to the one with the most free slots, and every other call to the
//! node that it names. Apart from idempotency keys, all of its state can be rebuilt by polling the nodes once.

mod acquire;
mod background;
mod offer;
mod recover;
mod schedule;
mod table;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use axum::{extract::Request, response::Response};
use futures_util::{StreamExt, stream};
use proto::InstanceId;
use serde_json::{Value, json};
use tokio::sync::watch;

pub(crate) use offer::LeaseOffer;
pub(crate) use table::{NodeEntry, NodeSnapshot, NodeTable, Origin};

use crate::{
    access::{AccessSegment, Endpoint, LeaseAccess},
    cdp,
    error::ApiError,
    idempotency::LeaseKeys,
    live,
    node::{AnyNode, Call, LocalNode, Node},
    options::ServerLimits,
    pool::{DrainStatus, Pool},
    queue::Queue,
    registry::Registry,
    tasks::Tasks,
};

const MAX_CONCURRENT_POLLS: usize = 64;
/// Longer node names in a request are cut off in the error message.
const MAX_QUOTED_CHARS: usize = 200;

struct MasterInner {
    table: NodeTable,
    queue: Queue,
    keys: LeaseKeys,
    limits: ServerLimits,
    stopping: AtomicBool,
    /// How many sources of nodes (configuration, registry) have been polled once.
    polled_sources: watch::Sender<usize>,
    /// How many sources of nodes there are.
    sources: usize,
    tasks: Tasks,
}

/// A handle to the master. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct Master(Arc<MasterInner>);

impl Master {
    pub(crate) fn start(
        table: NodeTable,
        limits: ServerLimits,
        registry: Option<Registry>,
        keys: LeaseKeys,
        tasks: &Tasks,
    ) -> Self {
        let master = Self(Arc::new(MasterInner {
            table,
            queue: Queue::default(),
            keys,
            limits,
            stopping: AtomicBool::new(false),
            polled_sources: watch::Sender::new(0),
            sources: 1 + usize::from(registry.is_some()),
            tasks: tasks.clone(),
        }));
        tasks.spawn_until_stopped("poll nodes", background::poll(master.clone()));
        tasks.spawn_until_stopped("follow local pool", background::follow_local_pool(master.clone()));
        if let Some(registry) = registry {
            tasks.spawn_until_stopped("discover nodes", background::discover(master.clone(), registry));
        }
        master
    }

    pub(crate) fn table(&self) -> &NodeTable {
        &self.0.table
    }

    pub(crate) fn limits(&self) -> &ServerLimits {
        &self.0.limits
    }

    /// Returns the number of queued `/get` requests.
    pub(crate) fn waiting(&self) -> usize {
        self.0.queue.len()
    }

    pub(crate) fn wake_queue(&self) {
        self.0.queue.wake();
    }

    pub(crate) fn stop_leasing(&self) {
        self.0.stopping.store(true, Ordering::Relaxed);
        self.wake_queue();
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.0.stopping.load(Ordering::Relaxed)
    }

    fn record_first_poll(&self) {
        self.0.polled_sources.send_modify(|polled| *polled += 1);
    }

    /// Waits until every node that is known at the start has been polled once.
    pub(crate) async fn first_poll_done(&self) {
        let mut polled = self.0.polled_sources.subscribe();
        let _ = polled.wait_for(|polled| *polled >= self.0.sources).await;
    }

    fn node(&self, hash: &str) -> Result<Arc<NodeEntry>, ApiError> {
        let unknown = || ApiError::UnknownNode(hash.chars().take(MAX_QUOTED_CHARS).collect());
        self.0.table.route(hash).ok_or_else(unknown)
    }

    /// Releases a lease.
    pub(crate) async fn reset(&self, node: &str, id: &InstanceId) -> Result<(), ApiError> {
        let entry = self.node(node)?;
        self.free_keys(id);
        let outcome = entry.node().reset(id).await;
        match &outcome {
            Ok(()) => entry.record_release(id),
            Err(ApiError::NodeUnreachable { .. }) => entry.mark_unreachable(),
            Err(_) => {}
        }
        self.wake_queue();
        outcome
    }

    /// Frees the keys of a lease at its end: a busy farm grants thousands of leases before a key would expire.
    fn free_keys(&self, id: &InstanceId) {
        let ended = self.0.keys.end(id);
        if ended.is_empty() || !self.0.keys.is_shared() {
            return;
        }
        let master = self.clone();
        self.0.tasks.spawn_until_stopped("free keys", async move { master.0.keys.end_shared(ended).await });
    }

    /// Passes a call to the node that has the instance.
    pub(crate) async fn call(&self, node: &str, id: &InstanceId, call: Call) -> Result<Response, ApiError> {
        let entry = self.node(node)?;
        let answer = entry.node().call(id, call).await;
        if matches!(answer, Err(ApiError::NodeUnreachable { .. })) {
            entry.mark_unreachable();
        }
        answer
    }

    /// Returns how CDP clients and viewers reach a lease.
    pub(crate) async fn access(&self, node: &str, id: &InstanceId) -> Result<Option<LeaseAccess>, ApiError> {
        self.node(node)?.node().access(id).await
    }

    /// Serves a request to an endpoint of a lease, or passes it to the node that has the lease.
    pub(crate) async fn serve_endpoint(
        &self,
        endpoint: Endpoint,
        segment: &str,
        path: &str,
        request: Request,
    ) -> Result<Response, ApiError> {
        let access = AccessSegment::parse(segment).ok_or(ApiError::UnknownSecret)?;
        let is_named = |entry: &Arc<NodeEntry>| {
            entry.incarnation().is_some_and(|incarnation| access.is_for_node(incarnation))
        };
        let entry = self.0.table.distinct().into_iter().find(is_named).ok_or(ApiError::UnknownSecret)?;
        match entry.node() {
            AnyNode::Local(LocalNode(pool)) => match endpoint {
                Endpoint::Cdp => cdp::serve(pool, &access, segment, path, request).await,
                Endpoint::Live => live::serve(pool, &access, path, request).await,
            },
            AnyNode::Remote(node) => {
                let mut path = format!("/{}/{segment}/{path}", endpoint.as_str());
                path.truncate(path.trim_end_matches('/').len());
                let answer = node.forward_stream(&path, request, &self.0.tasks).await;
                if matches!(answer, Err(ApiError::NodeUnreachable { .. })) {
                    entry.mark_unreachable();
                }
                answer
            }
        }
    }

    /// Starts or ends the draining of a node. Other masters learn of it when they poll the node.
    pub(crate) async fn set_draining(&self, node: &str, draining: bool) -> Result<DrainStatus, ApiError> {
        let entry = self.node(node)?;
        let status = entry.node().set_draining(draining).await?;
        entry.set_draining(status.draining);
        self.wake_queue();
        Ok(status)
    }

    /// Polls these nodes concurrently.
    async fn refresh(&self, entries: Vec<Arc<NodeEntry>>) {
        stream::iter(entries)
            .for_each_concurrent(MAX_CONCURRENT_POLLS, |entry| async move {
                let answer = entry.node().info().await;
                entry.record_info(answer);
            })
            .await;
    }

    /// Returns `/info` of the master, after polling the healthy nodes.
    pub(crate) async fn info(&self) -> Value {
        let entries = self.0.table.distinct();
        let mut healthy = entries.clone();
        healthy.retain(|entry| entry.is_remote() && entry.is_healthy());
        self.refresh(healthy).await;
        let nodes: Vec<Value> = entries.iter().map(|entry| entry.describe()).collect();
        json!({ "nodes": nodes })
    }

    /// Returns the pool in this process, if the master has one.
    pub(crate) fn local_pool(&self) -> Option<Pool> {
        self.0.table.entries().iter().find_map(|entry| match entry.node() {
            AnyNode::Local(LocalNode(pool)) => Some(pool.clone()),
            AnyNode::Remote(_) => None,
        })
    }
}
