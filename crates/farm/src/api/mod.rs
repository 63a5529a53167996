//! The HTTP face of the three tiers: routes, keys, limits, errors. Thin: it reads requests, asks the master or
//! the pool, and writes answers.

mod auth;
mod docs;
mod home;
mod input;
mod instance;
pub(crate) mod listen;
mod master;
mod node;
mod openapi;
mod reply;

pub(crate) use auth::Key;
pub use input::LONGEST_WAIT;
pub(crate) use instance::instance_routes;
pub(crate) use master::master_routes;
pub(crate) use node::node_routes;
pub use openapi::{Tier, document};
