//! Manages the content of a save path: lists it, shows a trajectory, compares two, removes trajectories and checks
//! files.

mod check;
mod diff;
mod list;
mod remove;
mod show;
mod terminal_text;

pub use check::{CheckReport, Finding, Severity, check};
pub use diff::{Difference, TrajectoryDiff, diff};
pub use list::{FileListing, Listing, list, render_summaries};
pub use remove::{Removal, RemoveError, plan_removal};
pub use show::{ShowOptions, find, show};
