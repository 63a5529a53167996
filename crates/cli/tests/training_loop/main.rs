//! `webgym loop` with a toy model server, a toy trainer and a simulated farm: kills, misbehaving programs and ranks.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed helper fails its test")]

mod failures;
mod harness;
mod kills;
mod original;
mod ranks;
mod servers;
