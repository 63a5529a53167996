//! Converts the files that benchmarks publish into task files. A file is converted whole or not at all: every record that is
//! not a task of the benchmark is reported with its line. What a record says beyond the task is kept in `source`.

mod assistantbench;
mod benchmark;
mod browsecomp;
mod csv;
mod miniwob;
mod online_mind2web;
mod records;
mod task_draft;
mod webarena_verified;
mod webvoyager;

pub use benchmark::{Benchmark, ImportError, ImportOptions, Imported, import};
pub use miniwob::{MiniwobOptions, import_miniwob};
pub use webarena_verified::SITES as WEBARENA_SITES;
