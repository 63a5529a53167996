//! A worker takes one task after the other: leases a browser, runs the episode, gives the browser back, and
//! starts afresh when the attempt was lost to infrastructure.

use std::{sync::Arc, time::Duration};

use proto::trajectory::Task;
use tokio::time::Instant;

use super::{RunError, Shared};
use crate::{
    episode::{Ending, Episode, Hands},
    event::{Event, Stage},
    gallery::Gallery,
};

const FIRST_PAUSE: Duration = Duration::from_millis(300);

pub(super) async fn work(shared: Arc<Shared>) {
    while let Some(task) = shared.next_task() {
        let hard = shared.stop.hard.clone();
        let over = tokio::select! {
            biased;
            () = hard.cancelled() => return,
            over = shared.see_through(task) => over,
        };
        let Some((ending, attempt, episode)) = over else { return };
        match &ending {
            Ending::Disk(why) => return shared.fail(RunError::Disk(why.clone())),
            Ending::PolicyRefuses(why) => return shared.fail(RunError::PolicyRefuses(why.clone())),
            _ => shared.hand_in(ending, attempt, episode).await,
        }
    }
}

impl Shared {
    /// Attempts at one task until one of them counts. `None` when there is nowhere to write.
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
            self.around.announcer.say(&Event::Retried { index, attempt, why });
            let (_, _, gallery) = episode.into_parts();
            gallery.discard().await;
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
    }

    async fn attempt(self: &Arc<Self>, task: &Task, attempt: u32) -> Option<(Ending, Episode)> {
        let index = usize::try_from(task.trajectory_index).unwrap_or(0);
        let deadline = Instant::now() + self.limits.task_timeout;
        let around = Arc::clone(&self.around);
        let begun = async {
            let gallery = Gallery::create(&around.settings.images, index).await?;
            around.journal.append_episode(task, attempt).await.map_err(std::io::Error::other)?;
            std::io::Result::Ok(gallery)
        };
        let gallery = match begun.await {
            Ok(gallery) => gallery,
            Err(error) => {
                self.fail(RunError::Disk(error.to_string()));
                return None;
            }
        };
        let mut episode = Episode::new(Arc::clone(&around), task.clone(), attempt, gallery);
        around.announcer.say(&Event::Stage { index, step: 0, stage: Stage::Allocate });
        let hands = match Hands::allocate(&around, index, deadline, &self.grace_over).await {
            Ok(hands) => hands,
            Err(ending) => return Some((ending, episode)),
        };
        let ending = tokio::select! {
            biased;
            () = self.grace_over.cancelled() => Ending::Cancelled,
            () = tokio::time::sleep_until(deadline) => Ending::TimedOut,
            ending = episode.run(&hands) => ending,
        };
        around.announcer.say(&Event::Stage { index, step: episode.steps.len(), stage: Stage::Release });
        hands.release().await;
        Some((ending, episode))
    }
}
