//! Runs a plan's episodes to the end: thousands at once on a few threads, independent of each other, each durable before it
//! counts. `assembly` puts a run together from its configuration, `collector` drives it, and `state` shows it.

mod assembly;
mod collector;
pub mod event;
mod finish;
mod group_prefix;
pub mod leases;
mod losses;
pub mod merge;
mod pause;
pub mod permits;
mod policy_version;
pub mod preflight;
pub mod queue;
mod start_limit;
pub mod state;
pub mod tensorboard;
mod watchdog;
mod worker;

pub use assembly::{
    AssemblyError, FinishedRun, ReadyRun, Run, RunOptions, StoppedRun, load_prompts, prompt_options,
};
pub use collector::{Collected, RunError, RunLimits, Stop, TaskSource, collect};
pub use group_prefix::{GroupPrefixes, Prefix};
pub use pause::{Pause, PauseStatus, TaskDeadline};
pub use policy_version::PolicyVersion;
pub use start_limit::{StartLimit, StartStatus, limit as start_limit, may_start};
pub use watchdog::watch;
