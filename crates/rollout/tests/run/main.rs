//! Whole runs against a simulated farm, policy and judge: real HTTP servers that fail exactly where a test wants it.
//! Every rule of the sections "Episode loop" and "Judge and rewards" of docs/contract.md has a test here.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed helper is a failed test")]

mod dialects;
mod faulty_servers;
mod group_prefixes;
mod harness;
mod judge_questions;
mod judge_replies;
mod judging;
mod limits;
mod losses;
mod network;
mod observations;
mod planning;
mod program_judging;
mod rejudging;
mod screenshots;
mod stops;
