//! The collector's room: configuration, tasks, sampling, policy and the clients it speaks to the farm and the
//! model with. It meets the farm on the wire only and never names its crate.

pub mod address;
pub mod blocklist;
pub mod chat;
pub mod config;
pub mod farm_client;
pub mod http;
pub mod model;
pub mod policy;
pub mod sampler;
pub mod shares;
pub mod tasks;
