//! `webgym rollout --stream` as a trainer uses it: the real program, with a simulated farm and policy. Consumers and collectors
//! are killed, groups are delivered complete or masked, starts follow acknowledgments, and policy calls pause.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed helper fails its test")]

mod delivery;
mod groups;
mod harness;
mod pausing;
mod requests;
mod staleness;
