//! Draining a pool: no new leases, while existing leases continue until they end.

use serde::{Deserialize, Serialize};

use super::Pool;
use crate::error::ApiError;

/// Progress of draining a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrainStatus {
    pub draining: bool,
    /// Leases that still exist.
    pub in_use: usize,
}

impl Pool {
    /// Grants no new leases until [`Pool::undrain`]; existing ones continue.
    pub fn drain(&self) -> DrainStatus {
        let mut state = self.0.state();
        let was_draining = std::mem::replace(&mut state.draining, true);
        let in_use = state.counts().in_use;
        drop(state);
        if !was_draining {
            tracing::info!(leases = in_use, "draining: no new leases, existing ones continue");
        }
        self.0.queue.wake();
        self.0.publish_change();
        DrainStatus { draining: true, in_use }
    }

    /// Ends draining. Fails once the pool is being stopped.
    pub fn undrain(&self) -> Result<DrainStatus, ApiError> {
        let mut state = self.0.state();
        if state.closing || state.leaving {
            return Err(ApiError::ShuttingDown);
        }
        let was_draining = std::mem::replace(&mut state.draining, false);
        let in_use = state.counts().in_use;
        drop(state);
        if was_draining {
            tracing::info!("no longer draining: new leases are granted again");
        }
        self.0.queue.wake();
        self.0.publish_change();
        Ok(DrainStatus { draining: false, in_use })
    }

    /// Drains permanently and returns when the last lease has ended.
    pub async fn drain_and_wait(&self) {
        self.0.state().leaving = true;
        let mut changes = self.changes();
        let mut status = self.drain();
        while status.in_use > 0 && changes.changed().await.is_ok() {
            status.in_use = self.counts().in_use;
        }
    }

    pub fn is_draining(&self) -> bool {
        self.0.state().draining
    }
}
