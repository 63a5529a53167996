//! Keeps pages away from private addresses: the rules for addresses, and the egress proxy that enforces them on every
//! connection of the browsers.

mod address;
mod proxy;
mod upstream;

pub use address::{is_public, refusal_reason};
pub(crate) use proxy::{ConnectError, EgressProxy, resolve};
pub(crate) use upstream::Upstream;
