//! Several collectors of one run, as real processes: fixed shares that meet on the shared disk, and one queue in a real
//! Redis. Every fault has a test of its name; in each, every task is in the merged file exactly once.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed helper is a failed test")]

mod queue;
mod scene;
mod shares;
