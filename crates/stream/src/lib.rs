//! The stream of a run: finished trajectories, or complete groups of attempts, over HTTP as they become durable. Items are
//! read from the run's journal on request, by cursor, so nothing waits in memory; the only thing stored here is how far the
//! consumer has acknowledged. The same server pauses and resumes the policy calls of the run.

mod access;
mod acknowledged;
mod cursor;
mod error;
mod feed;
mod index;
mod item;
mod parameters;
mod routes;
mod server;
mod shared;

pub use server::{Stream, StreamListener, StreamOptions, StreamedRun};
pub use shared::{EndReason, StartError};
