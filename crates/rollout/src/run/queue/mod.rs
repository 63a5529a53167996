//! One queue in Redis for all collectors of a run: each takes the next task when it has a free worker, so a slow or dead
//! collector does not block the others. Only the disk decides what is finished; the queue divides the work and can be
//! rebuilt from the disk.

mod bitmap;
mod disk;
mod redis_queue;
mod taking;
mod upkeep;
mod work_queue;

use net::redis::{RedisConnection, RedisConnectionError, redact_password};

pub use work_queue::WorkQueue;

#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    #[error(
        "the work queue at {address} cannot be used: {source}. Start Redis there, or correct env_config.work_queue"
    )]
    Unusable { address: String, source: RedisConnectionError },
    #[error(
        "the work queue at {address} holds another plan for this run: its digest is {there}, ours is {here}. Start all \
         collectors with the same configuration, or a new run with --fresh"
    )]
    PlanMismatch { address: String, there: String, here: String },
    #[error("cannot read what the ranks have collected: {0}")]
    Disk(String),
    #[error(
        "the journal to resume is of a run without a work queue; resume it without env_config.work_queue"
    )]
    NoSharedPlan,
}

/// Checks that the Redis server of the queue answers.
pub async fn check(address: &str) -> Result<(), QueueError> {
    let unusable = |source| QueueError::Unusable { address: redact_password(address), source };
    RedisConnection::to(address)
        .map_err(unusable)?
        .run::<()>(&net::redis::cmd("PING"))
        .await
        .map_err(unusable)
}
