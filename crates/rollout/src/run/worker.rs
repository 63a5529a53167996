//! A worker runs one task after another: acquires a browser, runs the episode and releases the browser. An attempt that is
//! lost to infrastructure is repeated.

use std::{sync::Arc, time::Duration};

use client::{farm::ClientError, http::Deadline};
use proto::trajectory::Task;

use super::{
    RunError, TaskDeadline,
    collector::Collector,
    event::{Event, Stage},
};
use crate::{
    episode::{BrowserSession, Ending, Episode, screenshots::ScreenshotStore},
    judge::Judge,
};

const FIRST_RETRY_PAUSE: Duration = Duration::from_millis(300);
const MAX_RETRY_PAUSE: Duration = Duration::from_secs(10);
/// How long a server that failed has to answer a probe.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for releasing browsers after a hard stop; the next run releases what remains.
const LAST_RELEASE_TIMEOUT: Duration = Duration::from_secs(3);

pub(super) async fn work(collector: Arc<Collector>) {
    while let Some(task) = collector.next_task().await {
        let Some((ending, attempt, episode)) = collector.run_task(task).await else { return };
        match &ending {
            Ending::Stopped => return,
            Ending::Disk(reason) => return collector.fail(RunError::Disk(reason.clone())),
            Ending::PromptFailed(reason) => return collector.fail(RunError::PromptFailed(reason.clone())),
            Ending::PolicyRefuses(reason) => {
                return collector.fail(RunError::PolicyRefuses(reason.clone()));
            }
            _ => collector.submit(ending, attempt, episode).await,
        }
    }
}

impl Collector {
    /// Runs attempts at a task until one is final or the task's time is over. Returns `None` when the run stops first.
    async fn run_task(self: &Arc<Self>, task: Task) -> Option<(Ending, u32, Episode)> {
        let index = usize::try_from(task.trajectory_index).unwrap_or(0);
        let groups = self.context.group_prefixes.as_ref();
        let _member = groups.map(|groups| groups.enter(task.trajectory_index));
        if let Some(groups) = groups {
            tokio::select! {
                biased;
                () = self.stop.hard.cancelled() => return None,
                () = self.stop.soft.cancelled() => return None,
                () = self.grace_over.cancelled() => {}
                () = groups.wait(task.trajectory_index) => {}
            }
        }
        let deadline = TaskDeadline::after(self.limits.task_timeout, &self.context.pause);
        let mut attempt = 0;
        let mut pause = FIRST_RETRY_PAUSE;
        loop {
            let (ending, episode) = self.run_attempt(&task, attempt, &deadline).await?;
            let may_retry = attempt < self.limits.max_infra_retries && !deadline.has_passed();
            if !ending.is_infrastructure() || !may_retry {
                return Some((ending, attempt, episode));
            }
            attempt += 1;
            let reason = ending.reason();
            tracing::debug!(task = index, attempt, reason, "an episode starts again");
            self.context.announcer.announce(&Event::Retried { index, attempt, reason });
            let (_, _, _, screenshots) = episode.into_parts();
            screenshots.discard().await;
            tokio::select! {
                () = self.stop.soft.cancelled() => return None,
                () = self.stop.hard.cancelled() => return None,
                () = self.grace_over.cancelled() => {}
                () = self.wait_for_recovery(index, &ending, pause, &deadline) => {}
            }
            pause *= 2;
        }
    }

    /// Pauses, then waits until the lost server answers again, so that a server restart does not use up the attempts of
    /// every task.
    async fn wait_for_recovery(
        &self,
        index: usize,
        ending: &Ending,
        mut pause: Duration,
        deadline: &TaskDeadline,
    ) {
        let stage = if matches!(ending, Ending::PolicyLost(_)) { Stage::Policy } else { Stage::Allocate };
        self.context.announcer.announce(&Event::Stage { index, step: 0, stage });
        loop {
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = deadline.reached() => {}
            }
            if deadline.has_passed() || self.is_recovered(ending).await {
                return;
            }
            pause = (pause * 2).min(MAX_RETRY_PAUSE);
        }
    }

    async fn is_recovered(&self, ending: &Ending) -> bool {
        if matches!(ending, Ending::PolicyLost(_)) {
            return self.context.policy.is_reachable(PROBE_TIMEOUT).await;
        }
        let info = self.context.farm.info(Deadline::after(PROBE_TIMEOUT)).await;
        !matches!(
            info,
            Err(ClientError::Unreachable(_) | ClientError::Timeout(_) | ClientError::ResponseLost(_))
        )
    }

    async fn run_attempt(
        self: &Arc<Self>,
        task: &Task,
        attempt: u32,
        deadline: &TaskDeadline,
    ) -> Option<(Ending, Episode)> {
        let index = usize::try_from(task.trajectory_index).unwrap_or(0);
        let context = &self.context;
        let screenshots = ScreenshotStore::new(&context.settings.images, index);
        if let Err(error) = self.begin_attempt(task, attempt, &screenshots).await {
            self.fail(RunError::Disk(error.to_string()));
            return None;
        }
        let mut episode =
            Episode::new(Arc::clone(context), task.clone(), attempt, screenshots, deadline.clone());
        context.announcer.announce(&Event::Stage { index, step: 0, stage: Stage::Allocate });
        let replayed = episode.replayed_attempt();
        let session = tokio::select! {
            biased;
            () = self.stop.hard.cancelled() => return Some((Ending::Stopped, episode)),
            // The episode has not started, so nothing is lost by leaving it to a resumed run.
            () = self.stop.soft.cancelled() => return Some((Ending::Stopped, episode)),
            session = BrowserSession::acquire(context, task, replayed, deadline.deadline().instant(), &self.grace_over) => session,
        };
        let session = match session {
            Ok(session) => session,
            Err(ending) => return Some((ending, episode)),
        };
        let ending = tokio::select! {
            biased;
            () = self.stop.hard.cancelled() => Ending::Stopped,
            () = self.grace_over.cancelled() => Ending::Cancelled,
            () = deadline.reached() => Ending::TimedOut,
            ending = episode.run(&session) => ending,
        };
        let ending = self.judge_page(ending, &mut episode, &session).await;
        context.announcer.announce(&Event::Stage { index, step: episode.steps.len(), stage: Stage::Release });
        if !matches!(ending, Ending::Stopped | Ending::Lost(_)) {
            let folder = episode.screenshots().folder();
            session.save_recording(folder, &episode.screenshot_times).await;
            episode.network = Box::pin(session.network_summary()).await;
        }
        let ending = match &episode.network {
            Some(network) if session.fails_on_miss() => ending.after_replay(network),
            _ => ending,
        };
        self.release(session).await;
        Some((ending, episode))
    }

    /// Lets a judge that needs the page judge the episode before its browser is released.
    async fn judge_page(&self, ending: Ending, episode: &mut Episode, session: &BrowserSession) -> Ending {
        let Judge::Program(judge) = &self.judge else { return ending };
        if !ending.is_by_agent() {
            return ending;
        }
        episode.enter_stage(Stage::Reward);
        tokio::select! {
            biased;
            () = self.stop.hard.cancelled() => Ending::Stopped,
            () = Box::pin(episode.judge(judge, session)) => ending,
        }
    }

    /// Records the attempt in the journal before its folder exists, so that a resumed run can remove the folder.
    async fn begin_attempt(
        &self,
        task: &Task,
        attempt: u32,
        screenshots: &ScreenshotStore,
    ) -> std::io::Result<()> {
        let recorded = self.context.journal.append_episode(task, attempt, screenshots.name()).await;
        recorded.map_err(std::io::Error::other)?;
        screenshots.create().await
    }

    /// Releases a browser; after a hard stop, within a short timeout.
    async fn release(&self, session: BrowserSession) {
        let release_timeout = async {
            self.stop.hard.cancelled().await;
            tokio::time::sleep(LAST_RELEASE_TIMEOUT).await;
        };
        tokio::select! {
            () = session.release() => {}
            () = release_timeout => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Thousands of workers exist at once.
    #[test]
    fn worker_future_is_small() {
        fn size<F: Future>(_: impl Fn(Arc<Collector>) -> F) -> usize {
            std::mem::size_of::<F>()
        }
        assert!(size(work) < 16 << 10, "{} bytes", size(work));
    }
}
