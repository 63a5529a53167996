//! The browser farm: a pool of browser instances behind leases, the node that owns it, the master that routes requests
//! to nodes, the registry in Redis, and the HTTP API of each tier. Knows nothing about episodes or trajectories.

mod access;
mod advertise;
pub mod api;
mod audit;
mod cdp;
mod computer;
pub mod egress;
mod error;
mod idempotency;
mod identity;
mod live;
mod master;
mod metrics;
mod node;
mod observe;
mod options;
mod pool;
mod pressure;
mod process;
mod public_address;
mod queue;
mod recording;
mod registry;
mod serve;
mod tasks;
mod traffic;

#[doc(hidden)]
pub use cdp::{
    filter_for_fuzzing,
    policy::{is_reviewed, reviewed_methods},
};
pub use error::ApiError;
pub use identity::{Identity, InvalidNodeId};
#[doc(hidden)]
pub use live::live_message_for_fuzzing;
pub use options::{FarmOptions, Mode, NetworkRules, PoolOptions, ServerLimits};
pub use pool::{DrainStatus, Pool, PoolCounts};
pub use registry::{RedisServer, RegistryError, RegistryTiming, ping_redis};
pub use serve::{BoundServer, DEFAULT_KEY, Farm, StartError};
