//! Trajectories on disk: where they lie, how a run writes them so that a crash loses none, and the shapes in which
//! other people's tools read them. Owns every file format of the project; touches files only, never the network.

pub mod aggregate;
pub mod columnar;
pub mod durable;
pub mod export;
pub mod finish;
pub mod iteration;
pub mod journal;
pub mod layout;
pub mod metrics;
mod pickle;
pub mod pt;
pub mod run;
pub mod screenshots;
pub mod summary;
pub mod trajectories;
pub mod unpickle;

pub use finish::finish_iteration;
pub use iteration::IterationFile;
pub use journal::{Journal, JournalError};
pub use layout::{IterationId, SavePath, Split};
pub use run::{RunMetadata, RunRecord};
pub use summary::Summary;

#[cfg(test)]
#[path = "../tests/support/sample.rs"]
mod sample;
