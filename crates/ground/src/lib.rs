//! The shared ground of several machines: a link to a Redis server. The farm's registry and the collectors' work queue
//! stand on it; what they keep there is their own business.

mod link;
mod trouble;

pub use link::{Link, Server};
pub use redis;
pub use trouble::{LinkError, Place, without_password};
