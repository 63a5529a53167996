//! Several collectors of one run, as real processes: fixed shares that are merged on the shared disk, and a work queue in a
//! real Redis. In every test, every task is in the merged file exactly once.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed helper fails its test")]

mod data_types;
mod harness;
mod queue;
mod shares;

#[path = "../../../store/tests/support/python.rs"]
mod python;
