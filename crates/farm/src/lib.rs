//! The browser farm: a pool of instances behind leases, the node that owns it, the master that routes to nodes,
//! the registry they meet in, and the HTTP API of each tier. Knows nothing of episodes or trajectories.

mod advertise;
pub mod api;
mod error;
pub mod guard;
mod identity;
mod ledger;
mod master;
mod metrics;
mod node;
mod observe;
mod options;
mod pool;
mod pressure;
mod process;
mod queue;
mod registry;
mod serve;
mod tasks;

pub use error::FarmError;
pub use identity::{BadNodeId, Identity};
pub use options::{FarmOptions, Limits, Mode, NetworkRules, PoolOptions};
pub use pool::{Drained, Pool, PoolCounts};
pub use registry::{Pace, RedisServer, RegistryError, ping_redis};
pub use serve::{Bound, DEFAULT_KEY, Farm, StartError};
