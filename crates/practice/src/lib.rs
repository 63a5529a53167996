//! The embedded practice websites: a shop, an encyclopedia, a job board and an obstacle course for browsers.
//! They are served by this process, need no network and are identical on every run.
//! Owns the sites and the tasks on them; does not depend on browsers, farms or policies.

mod assets;
mod connection;
pub mod course;
mod data;
mod echo;
mod forms;
mod home;
mod hosts;
mod html;
mod jobs;
mod server;
mod shop;
mod shutdown;
pub mod tasks;
mod vault;
mod wiki;

pub use server::Sites;
pub use tasks::{PracticeTask, task_file, tasks};
