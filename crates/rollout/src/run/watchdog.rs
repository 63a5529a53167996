//! Says where everyone waits when nothing has moved for a while. Changes nothing; it only looks and tells.

use std::{sync::Arc, time::Duration};

use crate::run::state::RunState;

/// Tells `say` who waits for what whenever nothing has progressed for `patience`, and again at each further one.
pub async fn watch(state: Arc<RunState>, patience: Duration, mut say: impl FnMut(&str)) {
    let mut told = 0;
    loop {
        tokio::time::sleep(patience / 4).await;
        let stalled = state.stalled();
        let times = (stalled.as_secs_f64() / patience.as_secs_f64()) as u64;
        if times > told {
            say(&format!("nothing has progressed for {} s: {}", stalled.as_secs(), state.diagnosis()));
        }
        told = times;
    }
}
