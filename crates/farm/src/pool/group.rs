//! One Chromium process and the slots that share its fate: starts it, fills its slots, keeps spares ready,
//! notices when it dies or hangs, and starts the next one. Never gives up, only waits longer.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use browser::{Host, LaunchError};
use tokio::sync::mpsc;

use super::{
    Shared,
    keeper::{Keeper, Over},
    slots::SlotState,
};

/// A slot wants a clean instance.
pub(crate) struct Wish {
    pub(crate) slot: u16,
}

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);
/// A browser that lived this long was healthy: its end starts the pauses anew.
const HEALTHY_AGE: Duration = Duration::from_secs(30);

pub(crate) async fn run(shared: Arc<Shared>, index: usize, mut wishes: mpsc::UnboundedReceiver<Wish>) {
    let stop = shared.tasks.stopping().clone();
    let mut pause = FIRST_PAUSE;
    let mut first = true;
    while !stop.is_cancelled() {
        let started = Instant::now();
        let launched = tokio::select! {
            () = stop.cancelled() => return,
            launched = Host::launch(&shared.options.launch) => launched,
        };
        match launched {
            Ok(host) => {
                if !std::mem::take(&mut first) {
                    shared.metrics.browser_restarts.inc();
                }
                // What was wished for of the last browser is wished for again below.
                while wishes.try_recv().is_ok() {}
                if shared.tend(index, host, &mut wishes).await {
                    return;
                }
            }
            Err(error) => shared.cannot_start(index, &error),
        }
        if !shared.options.recovery {
            shared.bury(index, "its browser ended and recovery is disabled");
            return;
        }
        if started.elapsed() > HEALTHY_AGE {
            pause = FIRST_PAUSE;
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
        }
    }
}

impl Shared {
    fn cannot_start(&self, index: usize, error: &LaunchError) {
        tracing::error!(browser = index, %error, "a browser did not start; trying again");
        self.bury(index, &error.to_string());
    }

    fn bury(&self, index: usize, why: &str) {
        let mut state = self.state();
        for port in state.ports_of(index) {
            state.set(port, SlotState::Dead { why: why.to_owned() });
        }
        drop(state);
        self.note_change();
    }

    /// Looks after one browser until it is over. True when the pool is stopping.
    async fn tend(
        self: &Arc<Self>,
        index: usize,
        host: Host,
        wishes: &mut mpsc::UnboundedReceiver<Wish>,
    ) -> bool {
        let pid = host.pid();
        self.metrics.browser_started(index, pid);
        let mut keeper = Keeper::new(Arc::clone(self), index, host);
        let over = keeper.run(wishes).await;
        self.metrics.browser_ended(index);
        let Some(host) = keeper.give_back().await else { return matches!(over, Over::Stopped) };
        match over {
            Over::Died(why) => {
                tracing::warn!(browser = index, pid, why, "a browser died; starting another");
                self.clear(index, &why);
                host.kill().await;
                false
            }
            Over::Recycle(why) => {
                tracing::info!(browser = index, pid, why, "recycling an idle browser");
                self.clear(index, "its browser was recycled");
                host.close().await;
                false
            }
            Over::Stopped => {
                self.clear(index, "the farm is shutting down");
                host.close().await;
                true
            }
        }
    }

    /// Takes every slot of a browser that is over: leases are lost, the rest is to be made again.
    fn clear(&self, index: usize, why: &str) {
        let leased = self.state().leases_of(index);
        for id in leased {
            self.lose(&id, why);
        }
        let mut state = self.state();
        for port in state.ports_of(index) {
            state.set(port, SlotState::Starting);
        }
        drop(state);
        self.note_change();
    }
}
