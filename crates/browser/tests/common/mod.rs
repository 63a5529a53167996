//! What the browser tests share: one runtime, one browser and one set of practice sites a test binary; an
//! instance of its own for every test.
#![allow(
    dead_code,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a helper of tests; each test file uses its part"
)]

pub(crate) mod stage;
pub(crate) mod table;
pub(crate) mod tester;
