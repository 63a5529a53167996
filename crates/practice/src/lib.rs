//! The embedded practice websites: a shop, an encyclopedia, a job board and an obstacle course for browsers,
//! served by this process on a loopback port, offline and the same on every run.
//! Owns the sites and the tasks on them; knows nothing of browsers, farms or policies.

mod assets;
pub mod course;
mod echo;
mod forms;
mod home;
mod hosts;
mod html;
mod jobs;
mod server;
mod shop;
mod stop;
pub mod tasks;
mod vault;
mod wiki;
mod wire;

pub use server::Sites;
pub use tasks::{PracticeTask, task_file, tasks};
