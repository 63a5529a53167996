//! Keeps pages away from private addresses: the rules for addresses, and the egress proxy that enforces them on every
//! connection of the browsers.

mod address;
mod proxy;

pub use address::{is_public, refusal_reason};
pub(crate) use proxy::{EgressProxy, resolve};
