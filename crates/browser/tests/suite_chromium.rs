//! The cases that may differ on the full Chromium: windows, dialogs, pop-ups and processes. Reading, typing and settling
//! use the same engine as the headless shell and are tested there; with the feature `every-case` (`make test-chromium`) all
//! cases run here too.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

#[cfg(feature = "every-case")]
mod cases;
mod common;

#[cfg(not(feature = "every-case"))]
#[path = "cases/crashes.rs"]
mod crashes;
#[cfg(not(feature = "every-case"))]
#[path = "cases/isolation.rs"]
mod isolation;
#[cfg(not(feature = "every-case"))]
#[path = "cases/scrolling.rs"]
mod scrolling;
#[cfg(not(feature = "every-case"))]
#[path = "cases/select.rs"]
mod select;
#[cfg(not(feature = "every-case"))]
#[path = "cases/tabs.rs"]
mod tabs;
#[cfg(not(feature = "every-case"))]
#[path = "cases/windows.rs"]
mod windows;

const KIND: browser::BrowserKind = browser::BrowserKind::Full;
