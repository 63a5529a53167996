//! Reports what episodes wait for when a run makes no progress. It only reads the run's state.

use std::{sync::Arc, time::Duration};

use super::state::RunState;

/// Calls `report` with a diagnosis each time the run has made no progress for another `stall_timeout`.
pub async fn watch(state: Arc<RunState>, stall_timeout: Duration, mut report: impl FnMut(&str)) {
    let mut reported = 0;
    loop {
        tokio::time::sleep(stall_timeout / 4).await;
        let stalled = state.stalled();
        let periods = (stalled.as_secs_f64() / stall_timeout.as_secs_f64()) as u64;
        if periods > reported {
            report(&format!("no progress for {} s: {}", stalled.as_secs(), state.diagnosis()));
        }
        reported = periods;
    }
}
