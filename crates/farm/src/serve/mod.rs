//! A farm in this process: starts its tiers, and stops them in the right order.

mod check;
mod start;
mod stop;

use std::net::SocketAddr;

use tokio_util::sync::CancellationToken;

pub use check::{DEFAULT_KEY, StartError};

use crate::{
    master::Master,
    options::ServerLimits,
    pool::{Pool, PoolCounts},
    tasks::Tasks,
};

/// A listening server of the farm.
#[derive(Clone, Debug)]
pub struct BoundServer {
    pub tier: &'static str,
    pub address: SocketAddr,
    pub url: String,
}

/// A running farm. End it with [`Farm::stop`]; if it is dropped, the reaper processes clean up the browsers.
pub struct Farm {
    pool: Option<Pool>,
    master: Option<Master>,
    bound: Vec<BoundServer>,
    servers: Tasks,
    stop_serving: CancellationToken,
    tasks: Tasks,
    limits: ServerLimits,
}

impl Farm {
    /// Returns the listening servers.
    pub fn bound(&self) -> &[BoundServer] {
        &self.bound
    }

    /// Returns the URL of a tier.
    pub fn url(&self, tier: &str) -> Option<&str> {
        self.bound.iter().find(|bound| bound.tier == tier).map(|bound| bound.url.as_str())
    }

    pub fn pool(&self) -> Option<&Pool> {
        self.pool.as_ref()
    }

    /// Waits until every local instance is ready and the master has polled every known node once.
    pub async fn ready(&self, progress: impl FnMut(&PoolCounts)) {
        if let Some(pool) = &self.pool {
            pool.ready(progress).await;
        }
        if let Some(master) = &self.master {
            master.first_poll_done().await;
        }
    }
}
