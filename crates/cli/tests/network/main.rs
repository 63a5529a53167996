//! Recording the network traffic of leases and replaying it, with a real farm, real Chromium and a site with TLS, HTTP/2, a
//! service worker, WebSockets and everything else that makes replays hard.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod common;
mod fork;
mod misses;
mod record;
mod refusals;
mod rollout;
