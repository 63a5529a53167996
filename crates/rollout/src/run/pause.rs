//! Stops and restarts the policy calls of a run, for example while a trainer sends new weights to the policy server. Episodes
//! keep their browsers, and the time of their tasks does not run. Every pause has a deadline, after which the run goes on by itself.

use std::{sync::Arc, time::Duration};

use client::{chat::ModelClient, http::Deadline};
use tokio::{sync::watch, time::Instant};

use super::event::{Announcer, Event};

/// A handle that pauses a run. Clones control the same run.
#[derive(Clone)]
pub struct Pause(Arc<PauseInner>);

struct PauseInner {
    policy: ModelClient,
    announcer: Announcer,
    state: watch::Sender<PauseState>,
}

#[derive(Clone, Copy, Default)]
struct PauseState {
    current: Option<CurrentPause>,
    /// The duration of all earlier pauses.
    earlier: Duration,
    /// The number of pauses so far.
    count: u64,
}

#[derive(Clone, Copy)]
struct CurrentPause {
    since: Instant,
    until: Instant,
}

/// What a run does at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PauseStatus {
    /// The time until a pause ends by itself; unset while the run goes on.
    pub remaining: Option<Duration>,
    /// Policy calls in progress. A pause does not interrupt them.
    pub in_flight: usize,
}

impl Pause {
    pub fn new(policy: ModelClient, announcer: Announcer) -> Self {
        Self(Arc::new(PauseInner { policy, announcer, state: watch::Sender::default() }))
    }

    /// Stops policy calls for at most `limit`. If the run is paused already, the pause ends at the new time.
    pub fn pause(&self, limit: Duration) -> PauseStatus {
        let (now, mut is_new) = (Instant::now(), false);
        let until = now + limit;
        self.0.state.send_modify(|state| {
            is_new = state.current.is_none();
            state.count += u64::from(is_new);
            let since = state.current.map_or(now, |current| current.since);
            state.current = Some(CurrentPause { since, until });
            // Closed and opened under the lock of the state, so that they always agree.
            self.0.policy.gate().close();
            self.0.announcer.announce(&Event::Paused { until });
        });
        if is_new {
            tracing::info!("policy calls are paused for at most {} s", limit.as_secs());
            tokio::spawn(self.clone().resume_when_due());
        }
        self.status()
    }

    /// Restarts policy calls. Returns whether the run was paused.
    pub fn resume(&self) -> bool {
        let Some(duration) = self.end(|_| true) else { return false };
        tracing::info!("policy calls go on after a pause of {:.1} s", duration.as_secs_f64());
        true
    }

    /// Ends the pause if it `may_end`. Returns its duration.
    fn end(&self, may_end: impl Fn(&CurrentPause) -> bool) -> Option<Duration> {
        let mut ended = None;
        self.0.state.send_if_modified(|state| {
            ended = state.current.filter(may_end).map(|current| current.since.elapsed());
            if let Some(duration) = ended {
                state.earlier += duration;
                state.current = None;
                self.0.policy.gate().open();
                self.0.announcer.announce(&Event::Resumed);
            }
            ended.is_some()
        });
        ended
    }

    /// Ends the current pause at its time, unless it is ended before.
    async fn resume_when_due(self) {
        let mut changes = self.0.state.subscribe();
        loop {
            let Some(current) = changes.borrow_and_update().current else { return };
            tokio::select! {
                _ = changes.changed() => {}
                () = tokio::time::sleep_until(current.until) => {
                    if let Some(duration) = self.end(|current| current.until <= Instant::now()) {
                        tracing::warn!(
                            "there was no POST /resume within {:.0} s of the pause, so policy calls go on; \
                             to pause longer, send POST /pause again or with a longer deadline",
                            duration.as_secs_f64()
                        );
                        return;
                    }
                }
            }
        }
    }

    pub fn status(&self) -> PauseStatus {
        let current = self.0.state.borrow().current;
        PauseStatus {
            remaining: current.map(|current| current.until.saturating_duration_since(Instant::now())),
            in_flight: self.0.policy.sessions_in_use().0,
        }
    }

    /// Waits until no policy call is in progress, or the pause ends.
    pub async fn wait_until_idle(&self) {
        tokio::select! {
            () = self.0.policy.wait_until_idle() => {}
            () = self.wait_until_running() => {}
        }
    }

    /// Waits while the run is paused.
    pub async fn wait_until_running(&self) {
        let _ = self.0.state.subscribe().wait_for(|state| state.current.is_none()).await;
    }

    /// Returns how many pauses there were so far.
    pub(crate) fn count(&self) -> u64 {
        self.0.state.borrow().count
    }

    /// Returns how long the run has been paused so far.
    fn paused_time(&self) -> Duration {
        let state = *self.0.state.borrow();
        state.earlier + state.current.map_or(Duration::ZERO, |current| current.since.elapsed())
    }

    /// Waits until the run is paused or resumed.
    async fn changed(&self) {
        let _ = self.0.state.subscribe().changed().await;
    }

    /// Sleeps for `duration`, not counting pauses.
    pub(crate) async fn sleep(&self, duration: Duration) {
        TaskDeadline::after(duration, self).reached().await;
    }
}

/// The end of a task's time, which does not run during pauses.
#[derive(Clone)]
pub struct TaskDeadline {
    pause: Pause,
    /// The end if there are no further pauses.
    end: Instant,
    paused_before: Duration,
}

impl TaskDeadline {
    pub fn after(duration: Duration, pause: &Pause) -> Self {
        let end = Deadline::after(duration).instant();
        Self { pause: pause.clone(), end, paused_before: pause.paused_time() }
    }

    /// Returns the end as it would be without further pauses.
    pub fn deadline(&self) -> Deadline {
        Deadline::at(self.end + self.pause.paused_time().saturating_sub(self.paused_before))
    }

    pub fn has_passed(&self) -> bool {
        self.deadline().has_passed()
    }

    /// Waits until the time is over.
    pub async fn reached(&self) {
        while !self.has_passed() {
            self.pause.wait_until_running().await;
            tokio::select! {
                () = tokio::time::sleep_until(self.deadline().instant()) => {}
                () = self.pause.changed() => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use client::chat::ModelOptions;

    use super::*;

    fn pause() -> Pause {
        let policy = ModelClient::vllm("http://127.0.0.1:9", ModelOptions::default()).unwrap();
        Pause::new(policy, Announcer::default())
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn pause_and_resume_are_idempotent() {
        let pause = pause();
        assert!(!pause.resume());
        assert_eq!(pause.pause(SECOND * 10).remaining, Some(SECOND * 10));
        tokio::time::advance(SECOND * 4).await;
        assert_eq!(pause.pause(SECOND * 20).remaining, Some(SECOND * 20), "the later call sets the end");
        assert_eq!(pause.count(), 1);
        assert!(pause.resume());
        assert!(!pause.resume());
        assert_eq!(pause.status().remaining, None);
        assert!(!pause.0.policy.gate().is_closed());
    }

    #[tokio::test(start_paused = true)]
    async fn pause_ends_at_its_deadline() {
        let pause = pause();
        let since = Instant::now();
        pause.pause(SECOND * 5);
        pause.pause(SECOND * 30);
        pause.wait_until_running().await;
        assert_eq!(since.elapsed(), SECOND * 30);
        pause.pause(SECOND * 30);
        pause.pause(SECOND * 2);
        pause.wait_until_running().await;
        assert_eq!(since.elapsed().as_secs(), 32, "the end can be moved forward");
    }

    #[tokio::test(start_paused = true)]
    async fn time_of_task_does_not_run_during_pause() {
        let pause = pause();
        let (since, deadline) = (Instant::now(), TaskDeadline::after(SECOND * 10, &pause));
        tokio::time::sleep(SECOND * 4).await;
        pause.pause(SECOND * 100);
        tokio::time::sleep(SECOND * 50).await;
        assert!(!deadline.has_passed());
        let other = TaskDeadline::after(SECOND, &pause);
        pause.resume();
        other.reached().await;
        assert_eq!(since.elapsed().as_secs(), 55);
        deadline.reached().await;
        assert_eq!(since.elapsed().as_secs(), 60);
    }
}
