//! A worker takes one task after the other: leases a browser, runs the episode, gives the browser back, and
//! starts afresh when the attempt was lost to infrastructure.

use std::{sync::Arc, time::Duration};

use proto::trajectory::Task;
use tokio::time::Instant;

use super::{RunError, Shared};
use crate::{
    episode::{BrowserSession, Ending, Episode, screenshots::ScreenshotStore},
    run::event::{Event, Stage},
};
use client::{farm::ClientError, http::Deadline};

const FIRST_PAUSE: Duration = Duration::from_millis(300);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// How long a server gets to show that it is there.
const PROBE: Duration = Duration::from_secs(5);
/// How long giving a browser back may hold up a run that stops at once; the next run gives back what is left.
const LAST_RELEASE: Duration = Duration::from_secs(3);

pub(super) async fn work(shared: Arc<Shared>) {
    while let Some(task) = shared.next_task().await {
        let Some((ending, attempt, episode)) = shared.see_through(task).await else { return };
        match &ending {
            Ending::Stopped => return,
            Ending::Disk(why) => return shared.fail(RunError::Disk(why.clone())),
            Ending::PolicyRefuses(why) => return shared.fail(RunError::PolicyRefuses(why.clone())),
            _ => shared.hand_in(ending, attempt, episode).await,
        }
    }
}

impl Shared {
    /// Attempts at one task until one of them counts. `None` when the run is over before.
    async fn see_through(self: &Arc<Self>, task: Task) -> Option<(Ending, u32, Episode)> {
        let index = usize::try_from(task.trajectory_index).unwrap_or(0);
        let mut attempt = 0;
        let mut pause = FIRST_PAUSE;
        loop {
            let (ending, episode) = self.attempt(&task, attempt).await?;
            if !ending.is_infrastructure() || attempt >= self.limits.max_infra_retries {
                return Some((ending, attempt, episode));
            }
            attempt += 1;
            let why = ending.why();
            tracing::debug!(task = index, attempt, why, "an episode is started afresh");
            self.context.announcer.announce(&Event::Retried { index, attempt, reason: why });
            let (_, _, screenshots) = episode.into_parts();
            screenshots.discard().await;
            tokio::select! {
                () = self.stop.soft.cancelled() => return None,
                () = self.stop.hard.cancelled() => return None,
                () = self.grace_over.cancelled() => {}
                () = self.recovery(index, &ending, pause) => {}
            }
            pause *= 2;
        }
    }

    /// A short pause, then until whoever was lost answers again: a server that is started anew must not cost every
    /// task its attempts.
    async fn recovery(&self, index: usize, ending: &Ending, mut pause: Duration) {
        let end = Instant::now() + self.limits.task_timeout;
        let stage = if matches!(ending, Ending::PolicyLost(_)) { Stage::Policy } else { Stage::Allocate };
        self.context.announcer.announce(&Event::Stage { index, step: 0, stage });
        loop {
            tokio::time::sleep(pause).await;
            if self.answers(ending).await || Instant::now() >= end {
                return;
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn answers(&self, lost: &Ending) -> bool {
        if matches!(lost, Ending::PolicyLost(_)) {
            return self.context.policy.is_reachable(PROBE).await;
        }
        let asked = self.context.farm.info(Deadline::after(PROBE)).await;
        !matches!(
            asked,
            Err(ClientError::Unreachable(_) | ClientError::Timeout(_) | ClientError::AnswerLost(_))
        )
    }

    async fn attempt(self: &Arc<Self>, task: &Task, attempt: u32) -> Option<(Ending, Episode)> {
        let index = usize::try_from(task.trajectory_index).unwrap_or(0);
        let deadline = Instant::now() + self.limits.task_timeout;
        let context = Arc::clone(&self.context);
        let screenshots = ScreenshotStore::new(&context.settings.images, index);
        let begun = async {
            let noted = context.journal.append_episode(task, attempt, screenshots.name()).await;
            noted.map_err(std::io::Error::other)?;
            screenshots.make().await
        };
        if let Err(error) = begun.await {
            self.fail(RunError::Disk(error.to_string()));
            return None;
        }
        let mut episode =
            Episode::new(Arc::clone(&context), task.clone(), attempt, screenshots, Deadline::at(deadline));
        context.announcer.announce(&Event::Stage { index, step: 0, stage: Stage::Allocate });
        let session = tokio::select! {
            biased;
            () = self.stop.hard.cancelled() => return Some((Ending::Stopped, episode)),
            // It has not begun: nothing is lost by leaving it to a resumed run.
            () = self.stop.soft.cancelled() => return Some((Ending::Stopped, episode)),
            session = BrowserSession::allocate(&context, index, deadline, &self.grace_over) => session,
        };
        let session = match session {
            Ok(session) => session,
            Err(ending) => return Some((ending, episode)),
        };
        let ending = tokio::select! {
            biased;
            () = self.stop.hard.cancelled() => Ending::Stopped,
            () = self.grace_over.cancelled() => Ending::Cancelled,
            () = tokio::time::sleep_until(deadline) => Ending::TimedOut,
            ending = episode.run(&session) => ending,
        };
        context.announcer.announce(&Event::Stage { index, step: episode.steps.len(), stage: Stage::Release });
        self.give_back(session).await;
        Some((ending, episode))
    }

    /// Gives a browser back; when the run must stop now, only as long as that takes no time to speak of.
    async fn give_back(&self, session: BrowserSession) {
        let hurry = async {
            self.stop.hard.cancelled().await;
            tokio::time::sleep(LAST_RELEASE).await;
        };
        tokio::select! {
            () = session.release() => {}
            () = hurry => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Thousands of them live at once.
    #[test]
    fn a_worker_is_small() {
        fn size<F: Future>(_: impl Fn(Arc<Shared>) -> F) -> usize {
            std::mem::size_of::<F>()
        }
        assert!(size(work) < 16 << 10, "{} bytes", size(work));
    }
}
