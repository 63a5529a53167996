//! The collector: plans which tasks to run, runs them as episodes on a farm with a policy, judges and saves them.
//! It knows the farm by its HTTP API only and never depends on the farm's crate.

/// URLs as tasks and agents write them.
pub mod address;
/// The typed configuration of a run.
pub mod config;
/// One episode: observe, ask the policy, act, until it ends.
pub mod episode;
/// Converts the files of benchmarks into task files.
pub mod import;
/// Scores finished episodes.
pub mod judge;
/// Decides which tasks a run has: task files, sampling, ranks, resuming.
pub mod plan;
/// What the policy model is asked, and what its replies mean.
pub mod policy;
/// The templates of the prompts of policy and judge.
pub mod prompts;
/// Runs a plan's episodes to the end: workers, leases, state, events, results.
pub mod run;
/// The session options of an episode.
pub mod session_options;
