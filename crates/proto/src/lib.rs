//! Data types shared by all tiers and the collector: ids, commands, action dialects, page data, trajectories, error codes.
//! Plain data with parsing and formatting; no I/O, no clocks, no tasks.

mod args;
pub mod command;
mod command_specs;
pub mod dialect;
pub mod error;
pub mod ids;
pub mod judgment;
pub mod network;
pub mod page;
pub mod session_options;
pub mod storage_state;
pub mod text;
pub mod trajectory;

pub use command::{Command, CommandError};
pub use error::ErrorCode;
pub use ids::{InstanceId, LeaseId};
pub use page::{ImageFormat, InteractionMode};
pub use session_options::SessionOptions;
pub use storage_state::StorageState;
