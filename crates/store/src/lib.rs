//! Trajectories on disk: where files are, how a run writes them so that a crash loses nothing, and the formats that
//! other tools read. Owns every file format of the project; uses files only, never the network.

pub mod aggregate;
pub mod columnar;
pub mod durable;
pub mod export;
pub mod iteration;
pub mod journal;
pub mod layout;
pub mod loop_state;
mod masked;
pub mod metrics;
mod pickle;
mod prompts;
pub mod pt;
pub mod run_record;
pub mod screenshots;
pub mod summary;
pub mod trajectories;
pub mod unpickle;

pub use iteration::IterationFile;
pub use journal::{Journal, JournalError};
pub use layout::{IterationId, SavePath, Split};
pub use masked::steps_without_rewards;
pub use prompts::Prompts;
pub use pt::finish_iteration;
pub use run_record::{RunMetadata, RunRecord};
pub use summary::Summary;

#[cfg(test)]
#[path = "../tests/support/sample.rs"]
mod sample;
