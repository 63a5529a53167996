//! The client of a farm: the master's HTTP API, ours or the Python system's. It knows which calls may be repeated, classifies
//! errors, and combines command and observation in one request where the farm supports it.

mod calls;
mod client;
mod error;
mod fallback;
mod script;
mod wire;

pub use client::{FarmClient, FarmClientOptions};
pub use error::ClientError;
pub use script::ScriptError;
pub use wire::{
    CdpUrl, FarmInfo, GrantedLease, Lease, LiveUrl, NodeInfo, Observation, ObserveOptions, Screenshot,
    Viewport, read_screenshot_info,
};
