//! A node as the master sees it: one trait, implemented by the pool in this process and by a remote node over HTTP.

mod local;
mod remote;
mod stream;

use std::{future::Future, time::Duration};

use axum::{body::Bytes, response::Response};
use proto::{Command, ImageFormat, InstanceId, InteractionMode, SessionOptions, StorageState};
use serde::{Deserialize, Serialize};

pub(crate) use local::LocalNode;
pub(crate) use remote::{HttpClient, RemoteNode};

use crate::{
    access::LeaseAccess,
    computer::ComputerCall,
    error::ApiError,
    observe::{Encoding, ObserveCall},
    pool::{DrainStatus, PendingLease},
    recording::RecordingPart,
};

/// A request for a lease.
#[derive(Clone, Debug)]
pub(crate) struct GetRequest {
    pub(crate) lifetime_mins: i64,
    pub(crate) key: Option<String>,
    /// How long to wait for a free slot; `None` uses the default.
    pub(crate) wait: Option<Duration>,
    pub(crate) options: SessionOptions,
    /// Start in the state of another lease, with its options.
    pub(crate) fork: Option<Fork>,
}

/// Which lease to fork.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fork {
    pub(crate) from: InstanceId,
    /// How many of its steps are repeated; `None` = all.
    pub(crate) steps: Option<usize>,
}

/// A call to a leased instance.
#[derive(Clone, Debug)]
pub(crate) enum Call {
    Screenshot { mode: InteractionMode, format: ImageFormat },
    Execute(Command),
    Metadata,
    Probe,
    StorageState,
    SetStorageState(Box<StorageState>),
    ListFiles,
    ReadFile(String),
    WriteFile { name: String, content: Bytes },
    DeleteFile(String),
    Recording(RecordingPart),
    Network,
    Observe { call: ObserveCall, encoding: Encoding },
    Computer(Box<ComputerCall>),
}

/// The response of a node to `/info`. Nodes of the Python system omit the fields with a default.
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
    /// Why new leases are held back at the moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) held_back: Option<String>,
    /// Why some slots have no browser.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) dead_because: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<String>,
    /// The node's id, which survives restarts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<String>,
    /// Identifies the process: two addresses with the same incarnation are one node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) incarnation: Option<String>,
    /// Grants no new leases; `available` is 0 then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) draining: bool,
}

impl NodeInfo {
    /// Whether the node has this lease.
    pub(crate) fn holds(&self, id: &InstanceId) -> bool {
        let id = id.to_string();
        self.in_use.contains(&id)
    }
}

/// What a master can ask of a node.
pub(crate) trait Node: Send + Sync {
    fn get(&self, request: &GetRequest) -> impl Future<Output = Result<PendingLease, ApiError>> + Send;
    fn reset(&self, id: &InstanceId) -> impl Future<Output = Result<(), ApiError>> + Send;
    /// Returns how CDP clients and viewers reach a lease; `None` if the node has no endpoints for them.
    fn access(&self, id: &InstanceId) -> impl Future<Output = Result<Option<LeaseAccess>, ApiError>> + Send;
    fn call(&self, id: &InstanceId, call: Call) -> impl Future<Output = Result<Response, ApiError>> + Send;
    fn info(&self) -> impl Future<Output = Result<NodeInfo, ApiError>> + Send;
    /// Starts or ends draining: no new leases, while existing ones continue.
    fn set_draining(&self, draining: bool) -> impl Future<Output = Result<DrainStatus, ApiError>> + Send;
}

/// A local or remote node.
#[derive(Clone)]
pub(crate) enum AnyNode {
    Local(LocalNode),
    Remote(Box<RemoteNode>),
}

impl Node for AnyNode {
    async fn get(&self, request: &GetRequest) -> Result<PendingLease, ApiError> {
        match self {
            Self::Local(node) => node.get(request).await,
            Self::Remote(node) => node.get(request).await,
        }
    }

    async fn reset(&self, id: &InstanceId) -> Result<(), ApiError> {
        match self {
            Self::Local(node) => node.reset(id).await,
            Self::Remote(node) => node.reset(id).await,
        }
    }

    async fn access(&self, id: &InstanceId) -> Result<Option<LeaseAccess>, ApiError> {
        match self {
            Self::Local(node) => node.access(id).await,
            Self::Remote(node) => node.access(id).await,
        }
    }

    async fn call(&self, id: &InstanceId, call: Call) -> Result<Response, ApiError> {
        match self {
            Self::Local(node) => node.call(id, call).await,
            Self::Remote(node) => node.call(id, call).await,
        }
    }

    async fn info(&self) -> Result<NodeInfo, ApiError> {
        match self {
            Self::Local(node) => node.info().await,
            Self::Remote(node) => node.info().await,
        }
    }

    async fn set_draining(&self, draining: bool) -> Result<DrainStatus, ApiError> {
        match self {
            Self::Local(node) => node.set_draining(draining).await,
            Self::Remote(node) => node.set_draining(draining).await,
        }
    }
}
