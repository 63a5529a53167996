//! The HTTP API of the three tiers: routes, keys, limits and errors. Parses requests, calls the master or the pool, and
//! writes responses.

mod auth;
mod cdp;
mod docs;
mod home;
mod instance;
pub(crate) mod listen;
mod live;
mod master;
mod node;
mod openapi;
mod request;
mod response;

pub(crate) use auth::Key;
pub(crate) use instance::instance_routes;
pub(crate) use master::master_routes;
pub(crate) use node::node_routes;
pub use openapi::{Tier, document};
pub use request::MAX_WAIT_SECS;
