//! Helpers for the browser tests. A test binary has one runtime, one browser and one set of practice sites; each test has
//! its own instance.
#![allow(
    dead_code,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "test helpers; each test file uses some of them"
)]

pub(crate) mod fixture;
pub(crate) mod raw_site;
pub(crate) mod table;
pub(crate) mod tester;
pub(crate) mod virtual_site;
