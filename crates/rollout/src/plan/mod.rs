//! Decides before a run which tasks it has, in which order, as which iteration, and in which journal it writes. A resumed run
//! takes all of this from what the interrupted run recorded, even if the configuration has changed since.

pub mod blocklist;
mod error;
mod joining;
mod launcher;
mod prepare;
pub mod rank_detection;
pub mod ranks;
mod resume;
pub mod sampler;
mod selection;
mod shared_plan;
pub mod tasks;

pub use error::PlanError;
pub use prepare::{Plan, Unfinished, check, prepare};
pub use selection::{remove_plan_file, remove_selection_file};
pub use shared_plan::SharedPlan;
