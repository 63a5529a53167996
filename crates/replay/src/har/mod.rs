//! HAR 1.2: what browsers and Playwright export and read.

mod export;
mod format;
mod import;

pub use export::export;
pub use import::{HarReport, import};
