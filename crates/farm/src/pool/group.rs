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

/// How the watch over one browser ended.
enum Ended {
    Died,
    Recycled,
    Stopped,
}

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);
/// A browser that lived this long did come up: its end is an accident, and starts the pauses anew.
const HEALTHY_AGE: Duration = Duration::from_secs(3);

pub(crate) async fn run(shared: Arc<Shared>, index: usize, mut wishes: mpsc::UnboundedReceiver<Wish>) {
    let stop = shared.tasks.stopping().clone();
    let mut pause = FIRST_PAUSE;
    let mut first = true;
    while !stop.is_cancelled() {
        let launched = tokio::select! {
            () = stop.cancelled() => return,
            launched = shared.launch() => launched,
        };
        let started = Instant::now();
        match launched {
            Ok(host) => {
                shared.revive(index);
                if !std::mem::take(&mut first) {
                    shared.metrics.browser_restarts.inc();
                }
                // What was wished for of the last browser is wished for again below.
                while wishes.try_recv().is_ok() {}
                match shared.tend(index, host, &mut wishes).await {
                    Ended::Stopped => return,
                    Ended::Recycled => continue,
                    Ended::Died => {}
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
    /// Starts a browser, a few at a time: a hundred at once would all be too slow to answer in time.
    async fn launch(&self) -> Result<Host, LaunchError> {
        let _turn = self.making.acquire().await;
        Host::launch(&self.options.launch).await
    }

    /// The slots of a browser that is up at last are being made.
    fn revive(&self, index: usize) {
        let mut state = self.state();
        for port in state.ports_of(index) {
            state.set(port, SlotState::Starting);
        }
        drop(state);
        self.note_change();
    }

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

    /// Looks after one browser until it is over.
    async fn tend(
        self: &Arc<Self>,
        index: usize,
        host: Host,
        wishes: &mut mpsc::UnboundedReceiver<Wish>,
    ) -> Ended {
        let pid = host.process_group();
        self.metrics.browser_started(index, pid);
        let mut keeper = Keeper::new(Arc::clone(self), index, host);
        let over = keeper.run(wishes).await;
        self.metrics.browser_ended(index);
        let host = keeper.give_back().await;
        let (ended, why) = match over {
            Over::Died(why) => {
                tracing::warn!(browser = index, pid, why, "a browser died; starting another");
                (Ended::Died, why)
            }
            Over::Recycle(why) => {
                tracing::info!(browser = index, pid, why, "recycling an idle browser");
                (Ended::Recycled, "its browser was recycled".to_owned())
            }
            Over::Stopped => (Ended::Stopped, "the farm is shutting down".to_owned()),
        };
        self.clear(index, &why);
        match (&ended, host) {
            (Ended::Died, Some(host)) => host.kill().await,
            (_, Some(host)) => host.close().await,
            (_, None) => {}
        }
        ended
    }

    /// Takes every slot of a browser that is over: leases are lost, the rest is to be made again.
    fn clear(&self, index: usize, why: &str) {
        let leased = self.state().leases_of(index);
        for id in leased {
            self.lose(&id, why);
        }
        self.revive(index);
    }
}
