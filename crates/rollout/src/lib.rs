//! The collector's room: configuration, tasks, sampling, policy and the clients it speaks to the farm and the
//! model with. It meets the farm on the wire only and never names its crate.

pub mod address;
pub mod blocklist;
pub mod board;
pub mod chat;
pub mod config;
pub mod episode;
pub mod event;
pub mod farm_client;
pub mod gallery;
pub mod http;
pub mod judge;
pub mod leases;
pub mod merge;
pub mod model;
pub mod plan;
pub mod policy;
pub mod pools;
pub mod queue;
pub mod ranks;
pub mod rejudge;
pub mod run;
pub mod sampler;
pub mod shares;
pub mod tasks;
pub mod tensorboard;
