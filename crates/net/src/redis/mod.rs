//! A connection to one database of a Redis server, with or without TLS. The farm's registry and idempotency keys and the
//! collectors' work queue use it; what they store is up to them.

mod connection;
mod error;

pub use ::redis::{Cmd, FromRedisValue, Pipeline, cmd, pipe};
pub use connection::{RedisConnection, RedisServer};
pub use error::{RedisAddress, RedisConnectionError, redact_password};
