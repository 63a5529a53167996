//! Composes Hydra-style configuration: YAML files with a `defaults:` list, overrides from the command line and OmegaConf
//! interpolations, read into any type that serde can read. Every value keeps its origin: a file and line, or an argument.

mod compose;
mod error;
mod grammar;
mod interpolate;
mod load;
mod nearest;
mod node;
mod overrides;
mod pieces;
mod scalar;
mod show;
mod typed;
mod yaml;

pub use compose::{EmbeddedFile, SearchPath};
pub use error::{ConfigError, Problem};
pub use load::{Environment, Resolved, compose, load};
pub use nearest::nearest;
pub use node::Origin;
