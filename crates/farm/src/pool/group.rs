//! One Chromium process and the slots in it. Starts the browser, supervises it, and starts the next one when it dies
//! or is recycled. Retries for ever, with growing pauses.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use browser::{Host, Instance, LaunchError};
use tokio::sync::mpsc;

use super::{
    PoolInner,
    slots::SlotState,
    supervisor::{BrowserExit, Supervisor},
};

/// What the pool asks of a browser.
pub(crate) enum GroupRequest {
    /// A clean instance for a slot.
    Fill { slot: u16 },
    /// To keep a clean instance that its lease does not need.
    TakeBack(Box<Instance>),
}

const MIN_RESTART_PAUSE: Duration = Duration::from_millis(100);
const MAX_RESTART_PAUSE: Duration = Duration::from_secs(15);
/// A browser that lived this long did start properly: the next pause is short again.
const HEALTHY_AGE: Duration = Duration::from_secs(3);

pub(crate) async fn run(
    pool: Arc<PoolInner>,
    index: usize,
    mut requests: mpsc::UnboundedReceiver<GroupRequest>,
) {
    let stop = pool.tasks.stopping().clone();
    let mut pause = MIN_RESTART_PAUSE;
    let mut first = true;
    while !stop.is_cancelled() {
        let launched = tokio::select! {
            () = stop.cancelled() => return,
            launched = pool.launch() => launched,
        };
        let started = Instant::now();
        match launched {
            Ok(host) => {
                pool.mark_starting(index);
                if !std::mem::take(&mut first) {
                    pool.metrics.browser_restarts.inc();
                }
                // Drop stale requests: the supervisor creates an instance for every slot.
                while requests.try_recv().is_ok() {}
                match pool.supervise(index, host, &mut requests).await {
                    BrowserExit::Stopped => return,
                    BrowserExit::Recycled { .. } => continue,
                    BrowserExit::Died { .. } => {}
                }
            }
            Err(error) => {
                tracing::error!(browser = index, %error, "cannot start a browser; trying again");
                pool.mark_dead(index, &error.to_string());
            }
        }
        if !pool.options.recovery {
            pool.mark_dead(index, "its browser ended and recovery is disabled");
            return;
        }
        if started.elapsed() > HEALTHY_AGE {
            pause = MIN_RESTART_PAUSE;
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(pause) => pause = (pause * 2).min(MAX_RESTART_PAUSE),
        }
    }
}

impl PoolInner {
    /// Starts a browser. Only a few start at a time: a hundred at once would all exceed their start timeout.
    async fn launch(&self) -> Result<Host, LaunchError> {
        let _permit = self.start_permits.acquire().await;
        Host::launch(&self.options.launch).await
    }

    /// Marks the slots of a browser, except leased ones, as starting.
    pub(super) fn mark_starting(&self, index: usize) {
        let mut state = self.state();
        for port in state.ports_of(index) {
            state.set(port, SlotState::Starting);
        }
        drop(state);
        self.publish_change();
    }

    fn mark_dead(&self, index: usize, reason: &str) {
        let mut state = self.state();
        for port in state.ports_of(index) {
            state.set(port, SlotState::Dead { reason: reason.to_owned() });
        }
        drop(state);
        self.publish_change();
    }

    /// Supervises one browser until it ends, and cleans up after it.
    async fn supervise(
        self: &Arc<Self>,
        index: usize,
        host: Host,
        requests: &mut mpsc::UnboundedReceiver<GroupRequest>,
    ) -> BrowserExit {
        let pid = host.process_group();
        self.metrics.record_browser_start(index, pid);
        let mut supervisor = Supervisor::new(Arc::clone(self), index, host);
        let exit = supervisor.run(requests).await;
        self.metrics.record_browser_end(index);
        let host = supervisor.into_host().await;
        let lost_reason = match &exit {
            BrowserExit::Died { reason } => {
                tracing::warn!(browser = index, pid, reason, "browser died; starting another");
                reason.as_str()
            }
            BrowserExit::Recycled { reason } => {
                tracing::info!(browser = index, pid, reason, "recycling an idle browser");
                "its browser was recycled"
            }
            BrowserExit::Stopped => "the farm is shutting down",
        };
        self.lose_all(index, lost_reason);
        match (&exit, host) {
            (BrowserExit::Died { .. }, Some(host)) => host.kill().await,
            (_, Some(host)) => host.close().await,
            (_, None) => {}
        }
        exit
    }

    /// Ends the leases of a browser that has ended, and marks its slots as starting.
    fn lose_all(&self, index: usize, reason: &str) {
        let leased = self.state().leases_of(index);
        for id in leased {
            self.lose(&id, reason);
        }
        self.mark_starting(index);
    }
}
