//! Keeps pages away from private addresses: the rules for addresses, and the egress proxy that enforces them on every
//! connection of the browsers.

mod address;
mod connect;
mod live;
mod proxy;
mod response;
mod upstream;

pub use address::{is_public, refusal_reason};
pub(crate) use connect::{ConnectError, Route, Stream, resolve};
pub(crate) use live::{host_and_port, remove_hop_headers, tunnel};
pub(crate) use proxy::{EgressProxy, WEBRTC_FLAGS};
pub(crate) use response::{BodyError, ProxyResponse, error_response, failure, full_body, text_response};
pub(crate) use upstream::Upstream;
