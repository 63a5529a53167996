//! The virtual clock of a page, and settling with it. The clock stands still except while a command settles. Then the page
//! gets a fixed amount of virtual time, in which timers run as fast as they can and the clock waits for the network.

use std::time::{Duration, Instant};

use cdp::{PendingCall, protocol as p};
use serde_json::{Value, json};

use super::{
    ActionStart, Page,
    page_state::PageState,
    settle::{Settled, wait_for_change},
    workers::Workers,
};
use crate::{determinism::SessionClock, error::BrowserError, options::LOCATE_TIMEOUT};

/// Virtual time in which the effects of a command begin.
const FIRST_SLICE_MS: f64 = 20.0;
/// Virtual time between the two frames at the end of settling. What the first one causes, such as events of scrolling and
/// observers, happens within it.
const FRAME_SLICE_MS: f64 = 100.0;
/// Virtual time between two exchanges of messages with workers.
const WORKER_SLICE_MS: f64 = 50.0;
/// Virtual time between two looks at the open requests, on a page with an endless request.
const STREAM_SLICE_MS: f64 = 20.0;
/// If nothing happens for this long, the open requests count as endless.
const STALL_TIMEOUT: Duration = Duration::from_secs(3);
/// How often to look whether channels still wait.
const CHANNEL_INTERVAL: Duration = Duration::from_millis(25);
/// How many documents one command may load.
const MAX_DOCUMENTS: usize = 4;

/// How the clock runs while requests are open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Policy {
    /// It waits for them.
    WaitForRequests,
    /// It does not.
    Advance,
}

impl Policy {
    const fn as_str(self) -> &'static str {
        match self {
            Self::WaitForRequests => "pauseIfNetworkFetchesPending",
            Self::Advance => "advance",
        }
    }
}

/// Why a wait for the clock has ended.
enum Woken {
    /// The time that was given has run out, or the clock was stopped before.
    Stopped,
    /// Endless requests are open, for which the clock would wait for ever.
    OnlyStreams,
    Stalled,
}

impl Page {
    /// Stops the clock of a new page and attaches to its workers.
    pub(super) fn set_up_clock(&self, clock: &SessionClock) -> [PendingCall; 2] {
        [self.stop_clock(clock.now_ms()), Workers::watch(&self.session)]
    }

    /// Stops the clock. If the page moves to another process, its clock starts there with `now_ms`.
    fn stop_clock(&self, now_ms: f64) -> PendingCall {
        let params = json!({"policy": "pause", "initialVirtualTime": now_ms / 1000.0});
        self.session.send(p::EMULATION_SET_VIRTUAL_TIME_POLICY, &params)
    }

    /// Gives the page the virtual time of a command, and more if it loads another document.
    pub(super) async fn settle_on_clock(
        &self,
        clock: &SessionClock,
        start: ActionStart,
    ) -> Result<Settled, BrowserError> {
        let mut document = start.document;
        let mut is_complete = true;
        // Moves of the mouse and turns of its wheel reach a page with its next frame. A new document had none.
        let mut shown = None;
        if self.document() == document {
            shown = self.draw_stopped_frame(false).await?;
        }
        for _ in 0..MAX_DOCUMENTS {
            // A navigation that the command causes starts within the first moments; its document gets more time.
            if self.document() == document {
                shown = Some(self.run_clock(shown, clock.now_ms() + FIRST_SLICE_MS).await?);
            }
            is_complete &= self.wait_navigated(start).await?;
            let is_new_document = self.document() != document;
            document = self.document();
            let target = clock.advance(is_new_document);
            shown = shown.filter(|_| !is_new_document);
            self.run_clock(shown.take(), target - FRAME_SLICE_MS).await?;
            self.wait_for_channels(start).await?;
            let shown = self.draw_stopped_frame(false).await?;
            self.run_clock(shown, target).await?;
            self.draw_stopped_frame(true).await?;
            self.stop_clock(target).within(self.options.operation_timeout).await?;
            is_complete &= self.wait_navigated(start).await?;
            if self.document() == document {
                break;
            }
        }
        Ok(start.settled(is_complete))
    }

    /// Waits until no navigation is in progress. Returns whether that was so in time.
    async fn wait_navigated(&self, start: ActionStart) -> Result<bool, BrowserError> {
        let deadline = start.time + self.options.settle.navigation_budget;
        loop {
            let mut changes = self.tracker.changes();
            if !self.check_state(PageState::is_navigating)? {
                return Ok(true);
            }
            if Instant::now() >= deadline {
                return Ok(false);
            }
            wait_for_change(&mut changes, deadline).await;
        }
    }

    /// Waits for the answers on WebSockets that the page has used: the clock does not wait for them.
    async fn wait_for_channels(&self, start: ActionStart) -> Result<(), BrowserError> {
        let deadline = start.time + self.options.settle.navigation_budget;
        while Instant::now() < deadline {
            let mut changes = self.tracker.changes();
            if !self.check_state(|state| state.has_waiting_channels(start.time))? {
                return Ok(());
            }
            // A channel stops to wait without an event, too.
            let _ = tokio::time::timeout(CHANNEL_INTERVAL, changes.changed()).await;
        }
        Ok(())
    }

    /// Runs the clock until it shows `target_ms`, and returns what it shows then. `shown` is what it shows now, if that is known.
    async fn run_clock(&self, mut shown: Option<f64>, target_ms: f64) -> Result<f64, BrowserError> {
        let deadline = Instant::now() + self.options.operation_timeout;
        loop {
            let now: f64 = match shown.take() {
                Some(now) => now,
                None => self.call_script("clockTime", &json!([])).await?,
            };
            if !self.workers.is_empty() {
                self.advance_workers(now).await;
            }
            let remaining = target_ms - now;
            if remaining < 1.0 {
                return Ok(now);
            }
            if Instant::now() >= deadline {
                return Err(BrowserError::Timeout {
                    operation: format!(
                        "{remaining} ms of virtual time remain; it loads or computes without end"
                    ),
                    after: self.options.operation_timeout,
                });
            }
            let has_streams = self.check_state(PageState::has_streams)?;
            let (policy, longest) = match (has_streams, self.workers.is_empty()) {
                (true, _) => (Policy::Advance, STREAM_SLICE_MS),
                (false, false) => (Policy::WaitForRequests, WORKER_SLICE_MS),
                (false, true) => (Policy::WaitForRequests, remaining),
            };
            if has_streams {
                self.wait_for_requests().await?;
            }
            let (document, budget) = (self.document(), remaining.min(longest));
            match self.grant(policy, budget, now).await? {
                // All of it is used up, unless another document has taken the place of this one.
                Woken::Stopped
                    if budget >= remaining && self.document() == document && self.workers.is_empty() =>
                {
                    return Ok(target_ms);
                }
                Woken::Stopped => {}
                // From here on the clock advances in small steps.
                Woken::OnlyStreams => {
                    self.stop_clock(now).within(self.options.operation_timeout).await.map(drop)?;
                }
                Woken::Stalled => self.tracker.state().give_up_requests(),
            }
        }
    }

    /// Gives the page virtual time and waits until it is used up.
    async fn grant(&self, policy: Policy, budget_ms: f64, now_ms: f64) -> Result<Woken, BrowserError> {
        let stops = self.check_state(|state| state.clock_stops)?;
        let params = json!({
            "policy": policy.as_str(), "budget": budget_ms, "initialVirtualTime": now_ms / 1000.0,
        });
        self.session
            .send(p::EMULATION_SET_VIRTUAL_TIME_POLICY, &params)
            .within(self.options.operation_timeout)
            .await?;
        loop {
            let mut changes = self.tracker.changes();
            let (stopped, only_streams) = self.check_state(|state| {
                (state.clock_stops != stops, state.has_streams() && !state.has_requests())
            })?;
            if stopped {
                return Ok(Woken::Stopped);
            }
            if only_streams && policy == Policy::WaitForRequests {
                return Ok(Woken::OnlyStreams);
            }
            if tokio::time::timeout(STALL_TIMEOUT, changes.changed()).await.is_err() {
                return Ok(Woken::Stalled);
            }
        }
    }

    /// Waits for the open requests that have an end.
    async fn wait_for_requests(&self) -> Result<(), BrowserError> {
        loop {
            let mut changes = self.tracker.changes();
            if !self.check_state(PageState::has_requests)? {
                return Ok(());
            }
            if tokio::time::timeout(STALL_TIMEOUT, changes.changed()).await.is_err() {
                self.tracker.state().give_up_requests();
            }
        }
    }

    /// Ends the animations of all frames that have reached their end, and draws the page. Returns what its clock shows.
    async fn draw_stopped_frame(&self, is_last: bool) -> Result<Option<f64>, BrowserError> {
        self.connect_frames().await?;
        let deadline = Instant::now() + LOCATE_TIMEOUT;
        let arguments = json!([is_last]);
        for frame in self.frames_with_worlds().iter().filter(|frame| **frame != self.target) {
            let call = self.call_script_in_frame::<Value>(frame, deadline, "finishAnimations", &arguments);
            match call.await {
                Err(error) if error.session_end().is_some() => return Err(error.into()),
                Err(error) => tracing::debug!(%error, "cannot end the animations of a frame"),
                Ok(_) => {}
            }
        }
        match self.call_script_within::<f64>(LOCATE_TIMEOUT, "drawStoppedFrame", &arguments).await {
            // The page draws no frame, so the observation does not wait for one.
            Err(BrowserError::Timeout { operation, .. }) => {
                tracing::debug!(operation, "the page draws no frames");
                Ok(None)
            }
            drawn => drawn.map(Some),
        }
    }

    /// Reads the state of the page; fails if the page has ended.
    fn check_state<T>(&self, read: impl FnOnce(&PageState) -> T) -> Result<T, BrowserError> {
        let state = self.tracker.state();
        match &state.ended {
            Some(end) => Err(BrowserError::Lost(end.clone())),
            None => Ok(read(&state)),
        }
    }
}
