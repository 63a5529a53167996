//! The training loop: collect, export, train, verify, switch, serve, again. A driver walks through phases that are data, each
//! of which can be repeated, so that a killed loop continues where it was. Every program runs under a supervisor that ends
//! what it started. Knows the collector and the exporter as commands only.

/// The files of checkpoints: what a trainer must have written, and which one is current.
pub mod checkpoint;
/// Programs with placeholders.
pub mod command;
/// The configuration of a loop.
pub mod config;
/// Runs the phases of a loop and records them.
pub mod driver;
mod launcher;
mod lock;
mod original;
mod phases;
/// Commands of well-known trainers.
pub mod preset;
mod ranks;
mod schedule;
mod server;
/// Runs a program and ends everything that it started.
pub mod supervisor;

pub use config::LoopConfig;
pub use driver::{LoopError, LoopOptions, LoopOutcome, run};
