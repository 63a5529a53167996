//! Keeps pages away from addresses they have no business at: the rule over addresses, and the proxy that holds
//! every connection of the browsers to it.

mod address;
mod proxy;

pub use address::{is_public, refusal};
pub(crate) use proxy::{Proxy, resolve};
