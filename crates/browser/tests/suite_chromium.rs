//! What may differ on the full Chromium, whose windows, dialogs, pop-ups and processes are not those of the headless
//! shell. How a page is read, typed into and waited for is the same engine in both and tested there; with the feature
//! `every-case` (`make test-chromium`) all of it runs here too.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

#[cfg(feature = "every-case")]
mod cases;
mod common;

#[cfg(not(feature = "every-case"))]
#[path = "cases/choosing.rs"]
mod choosing;
#[cfg(not(feature = "every-case"))]
#[path = "cases/faults.rs"]
mod faults;
#[cfg(not(feature = "every-case"))]
#[path = "cases/scrolling.rs"]
mod scrolling;
#[cfg(not(feature = "every-case"))]
#[path = "cases/tenants.rs"]
mod tenants;
#[cfg(not(feature = "every-case"))]
#[path = "cases/windows.rs"]
mod windows;

const KIND: browser::BrowserKind = browser::BrowserKind::Full;
