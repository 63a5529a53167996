//! A node as the master sees it: one set of questions, answered by the pool in this process or by a node
//! elsewhere over HTTP. Both keep the same contract.

mod local;
mod remote;

use std::{future::Future, time::Duration};

use axum::response::Response;
use proto::{Command, ImageFormat, InstanceId, InteractionMode};
use serde::{Deserialize, Serialize};

pub(crate) use local::LocalNode;
pub(crate) use remote::{HttpClient, RemoteNode};

use crate::{
    error::FarmError,
    observe::{Encoding, ObserveCall},
    pool::{Drained, Granted},
};

/// A wish for an instance.
#[derive(Clone, Debug)]
pub(crate) struct GetRequest {
    pub(crate) lifetime_mins: i64,
    pub(crate) key: Option<String>,
    /// How long to wait for a free one; `None` leaves it to us.
    pub(crate) wait: Option<Duration>,
}

/// What can be asked of a leased instance.
#[derive(Clone, Debug)]
pub(crate) enum Call {
    Screenshot { mode: InteractionMode, format: ImageFormat },
    Execute(Command),
    Metadata,
    Probe,
    Observe { call: ObserveCall, encoding: Encoding },
}

/// `/info` of a node. Nodes of the Python system leave our additions out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct NodeInfo {
    pub(crate) available: usize,
    pub(crate) capacity: usize,
    #[serde(default)]
    pub(crate) in_use: Vec<String>,
    #[serde(default)]
    pub(crate) starting: usize,
    #[serde(default)]
    pub(crate) dead: usize,
    #[serde(default)]
    pub(crate) waiting: usize,
    /// Why new leases wait at the moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) held_back: Option<String>,
    /// Why some slots have no browser.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) dead_because: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<String>,
    /// The node's name, which stays over restarts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<String>,
    /// Which process answers: two addresses with the same one are one node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) incarnation: Option<String>,
    /// Gives no new leases: nothing counts as available then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) draining: bool,
}

impl NodeInfo {
    /// Whether this lease is held there.
    pub(crate) fn holds(&self, id: &InstanceId) -> bool {
        let id = id.to_string();
        self.in_use.contains(&id)
    }
}

pub(crate) trait Node: Send + Sync {
    fn get(&self, request: &GetRequest) -> impl Future<Output = Result<Granted, FarmError>> + Send;
    fn reset(&self, id: &InstanceId) -> impl Future<Output = Result<(), FarmError>> + Send;
    fn call(&self, id: &InstanceId, call: Call) -> impl Future<Output = Result<Response, FarmError>> + Send;
    fn info(&self) -> impl Future<Output = Result<NodeInfo, FarmError>> + Send;
    /// Lets the node's leases run out, or takes that back.
    fn drain(&self, on: bool) -> impl Future<Output = Result<Drained, FarmError>> + Send;
}

/// Either kind of node.
#[derive(Clone)]
pub(crate) enum AnyNode {
    Local(LocalNode),
    Remote(RemoteNode),
}

impl Node for AnyNode {
    async fn get(&self, request: &GetRequest) -> Result<Granted, FarmError> {
        match self {
            Self::Local(node) => node.get(request).await,
            Self::Remote(node) => node.get(request).await,
        }
    }

    async fn reset(&self, id: &InstanceId) -> Result<(), FarmError> {
        match self {
            Self::Local(node) => node.reset(id).await,
            Self::Remote(node) => node.reset(id).await,
        }
    }

    async fn call(&self, id: &InstanceId, call: Call) -> Result<Response, FarmError> {
        match self {
            Self::Local(node) => node.call(id, call).await,
            Self::Remote(node) => node.call(id, call).await,
        }
    }

    async fn info(&self) -> Result<NodeInfo, FarmError> {
        match self {
            Self::Local(node) => node.info().await,
            Self::Remote(node) => node.info().await,
        }
    }

    async fn drain(&self, on: bool) -> Result<Drained, FarmError> {
        match self {
            Self::Local(node) => node.drain(on).await,
            Self::Remote(node) => node.drain(on).await,
        }
    }
}
