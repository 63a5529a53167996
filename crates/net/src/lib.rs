//! Code that our servers and clients share: an HTTP listener with limits, comparison of secrets, the local-host check,
//! escaping for terminals and logs, and the connection to a Redis server. Knows nothing of browsers or trajectories.

pub mod escape;
pub mod host;
#[cfg(feature = "listener")]
pub mod listener;
#[cfg(feature = "redis")]
pub mod redis;
pub mod secret;
