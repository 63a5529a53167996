//! Episodes for other people's loops: a server whose sessions are episodes, each with a lease of a farm, a task and a reward
//! from the configured judge. Clients speak the OpenEnv protocol or MCP. It knows the farm by its HTTP API only.

mod access;
mod action;
mod browser_session;
mod catalog;
mod environment;
mod episode;
mod error;
#[doc(hidden)]
pub mod fuzzing;
mod held_lease;
mod mcp;
mod metrics;
mod openenv;
mod page;
mod progress;
mod recorder;
mod screenshot_files;
mod server;

pub use catalog::{CatalogError, TaskCatalog};
pub use environment::{EnvOptions, Environment};
pub use mcp::serve_stdio;
pub use recorder::{RecordError, Recorder};
pub use server::{EnvServer, ServerOptions};

/// The name of the environment in the paths of the task API.
pub const ENVIRONMENT_NAME: &str = "webgym";
