//! The shared vocabulary: what the tiers and the collector say to each other.
//! Plain data with its parsing and printing; no I/O, no clocks, no tasks.

mod args;
pub mod command;
pub mod error;
pub mod ids;
pub mod page;
pub mod trajectory;

pub use command::{Command, CommandError};
pub use error::ErrorCode;
pub use ids::{InstanceId, LeaseId};
pub use page::{ImageFormat, InteractionMode};
