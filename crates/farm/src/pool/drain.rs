//! A pool on its way out: gives nothing new, and lets the leases it has come to their end.

use serde::{Deserialize, Serialize};

use super::Pool;
use crate::error::FarmError;

/// How far a node is with letting go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drained {
    pub draining: bool,
    /// Leases that are still held.
    pub in_use: usize,
}

impl Pool {
    /// No new leases until [`Pool::reopen`]; those there are go on.
    pub fn drain(&self) -> Drained {
        let mut state = self.0.state();
        let before = std::mem::replace(&mut state.draining, true);
        let in_use = state.counts().in_use;
        drop(state);
        if !before {
            tracing::info!(leases = in_use, "draining: no new leases; those held go on");
        }
        self.0.queue.announce();
        self.0.note_change();
        Drained { draining: true, in_use }
    }

    /// Takes the draining back. Not possible once the pool is being stopped.
    pub fn reopen(&self) -> Result<Drained, FarmError> {
        let mut state = self.0.state();
        if state.closing || state.leaving {
            return Err(FarmError::ShuttingDown);
        }
        let before = std::mem::replace(&mut state.draining, false);
        let in_use = state.counts().in_use;
        drop(state);
        if before {
            tracing::info!("no longer draining: new leases are given again");
        }
        self.0.queue.announce();
        self.0.note_change();
        Ok(Drained { draining: false, in_use })
    }

    /// Drains for good and returns when the last lease has ended.
    pub async fn leave(&self) {
        self.0.state().leaving = true;
        let mut changes = self.changes();
        let mut drained = self.drain();
        while drained.in_use > 0 && changes.changed().await.is_ok() {
            drained.in_use = self.counts().in_use;
        }
    }

    pub fn draining(&self) -> bool {
        self.0.state().draining
    }
}
