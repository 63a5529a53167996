//! All cases, on chromium-headless-shell.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod cases;
mod common;

const KIND: browser::BrowserKind = browser::BrowserKind::HeadlessShell;
