//! Helpers for tests of the whole system: the real `webgym`, Redis and nginx as child processes, an HTTP client for
//! every tier, the process table, simulated farms and model servers, and a node and a master that behave like those
//! of the Python system. Development only: a helper that fails panics with a message.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "a failed helper fails its test"
)]

pub mod arguments;
mod audit_log;
mod cdp_client;
mod env_client;
pub mod episode;
mod eventually;
mod farm;
pub mod hosts;
mod http;
mod live_client;
pub mod modern_site;
mod nginx;
mod process;
mod python_master;
mod python_node;
mod recording_server;
mod redis;
mod reserved_port;
mod rng;
pub mod rogue;
pub mod sim_farm;
pub mod sim_model;
pub mod sim_vllm;
mod slots;
mod tls_site;
mod webgym;

pub use audit_log::{AUDIT_LOG_ENV, AuditEntry, AuditLog};
pub use cdp_client::CdpClient;
pub use env_client::EnvClient;
pub use eventually::{eventually, poll_until};
pub use farm::{ENDPOINTS, Farm, Lease, Tier};
pub use live_client::{LiveClient, LiveMessage};

pub use http::{Http, Reply};

pub use nginx::Nginx;
pub use process::{Browser, Process, browsers_of, descendants, open_connections, processes, signal};
pub use python_master::PythonMaster;
pub use python_node::{NodeFault, PythonNode};
pub use recording_server::{RecordingServer, Served};
pub use redis::{REDIS_USER, Redis};
pub use reserved_port::ReservedPort;
pub use rng::Rng;
pub use slots::{SlotMonitor, Slots};

pub use tls_site::{TlsSite, plain_site};
pub use webgym::{Listening, Webgym};
