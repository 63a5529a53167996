//! Whole runs against a simulated farm, policy and judge: real HTTP servers that fail exactly where a test says so.
//! Every rule of REFERENCE §7 and §8 has a test here that names it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed helper is a failed test")]

mod bounds;
mod harness;
mod hostile;
mod judging;
mod losses;
mod nonsense;
mod pages;
mod planning;
mod rejudging;
mod stops;
mod verdicts;
