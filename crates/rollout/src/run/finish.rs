//! The end of an episode: judged beside the collection, made durable, and only then counted.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Instant,
};

use proto::trajectory::{
    Evaluation, Observation, Outcome, Response, Reward, Step, StepExtras, Trajectory, TrajectoryMetadata,
};
use serde_json::{Map, Value};

use super::{RunError, Shared, losses::Told};
use crate::{
    episode::{Ending, Episode, prompts, screenshots::ScreenshotStore},
    judge::blocked_site,
    plan::blocklist::{self, BlockedSite},
    run::event::{Event, Stage},
};

impl Shared {
    /// Passes a finished episode on. Waits only when too many wait for their judge already.
    pub(super) async fn hand_in(self: &Arc<Self>, ending: Ending, attempt: u32, episode: Episode) {
        let Ok(place) = Arc::clone(&self.unjudged).acquire_owned().await else { return };
        let shared = Arc::clone(self);
        self.finishing.spawn(async move {
            let _place = place;
            let (trajectory, screenshots) = compose(&ending, attempt, episode);
            shared.finish(ending, trajectory, screenshots).await;
        });
    }

    async fn finish(
        self: Arc<Self>,
        ending: Ending,
        mut trajectory: Trajectory,
        screenshots: ScreenshotStore,
    ) {
        let index = usize::try_from(trajectory.task.trajectory_index).unwrap_or(0);
        if self.is_late(index).await {
            return screenshots.discard().await;
        }
        if ending.outcome() == Outcome::InfraLost {
            return match self.losses.lost(&ending.why(), (trajectory, screenshots)) {
                Told::Counts((trajectory, screenshots)) => self.save(trajectory, screenshots).await,
                Told::Held => {}
                Told::NothingWorks => self.nothing_works(),
            };
        }
        if ending.is_the_agents() {
            for (trajectory, screenshots) in self.losses.worked() {
                self.save(trajectory, screenshots).await;
            }
            let (steps, announcer) = (trajectory.steps.len(), &self.context.announcer);
            announcer.announce(&Event::Stage { index, step: steps, stage: Stage::Reward });
            let since = Instant::now();
            let verdict = tokio::select! {
                biased;
                () = self.stop.hard.cancelled() => return,
                verdict = self.judge.judge(&trajectory) => verdict,
            };
            if let Some(site) = blocked_site(&verdict, &trajectory) {
                self.block(&site);
            }
            verdict.apply(&mut trajectory);
            announcer.announce(&Event::StageTimed { stage: Stage::Reward, duration: since.elapsed() });
        }
        self.save(trajectory, screenshots).await;
    }

    /// Makes a trajectory durable, then counts it.
    async fn save(self: &Arc<Self>, mut trajectory: Trajectory, screenshots: ScreenshotStore) {
        let index = usize::try_from(trajectory.task.trajectory_index).unwrap_or(0);
        let (steps, announcer) = (trajectory.steps.len(), &self.context.announcer);
        announcer.announce(&Event::Stage { index, step: steps, stage: Stage::Save });
        prompts(self.context.settings.prompting, &mut trajectory);
        if self.queue.is_some() {
            // Two collectors may have had it: the merge takes the first.
            let now = Value::from(jiff::Timestamp::now().to_string());
            trajectory.metadata.extra.insert(store::aggregate::FINISHED_AT.to_owned(), now);
        }
        let saved = async {
            screenshots.sync().await.map_err(|error| error.to_string())?;
            self.context.journal.append_finished(&trajectory).await.map_err(|error| error.to_string())
        };
        if let Err(why) = saved.await {
            return self.fail(RunError::Disk(why));
        }
        if let Some(queue) = &self.queue {
            queue.finished(index);
        }
        let outcome = trajectory.metadata.outcome.unwrap_or(Outcome::Failure);
        self.finished.fetch_add(1, Ordering::Relaxed);
        announcer.announce(&Event::Finished { index, outcome, steps });
        self.note_done(1);
    }
}

impl Shared {
    /// When all tasks are through: losses that nothing spoke against are results only if they are few.
    pub(super) async fn settle_losses(self: &Arc<Self>) {
        // Stopped on purpose, it may have worked in the end.
        let stopped = self.stop.soft.is_cancelled();
        match self.losses.at_the_end() {
            Some(few) if !stopped => {
                for (trajectory, screenshots) in few {
                    self.save(trajectory, screenshots).await;
                }
            }
            None if !stopped => self.nothing_works(),
            _ => {}
        }
    }

    fn nothing_works(&self) {
        let (count, why) = self.losses.summary().unwrap_or_default();
        self.fail(RunError::NothingWorks { count, why });
    }

    /// Another collector took this task over and has finished it: judging and keeping ours would be for nothing.
    async fn is_late(self: &Arc<Self>, index: usize) -> bool {
        let Some(queue) = &self.queue else { return false };
        let late = queue.is_done_elsewhere(index).await;
        if late {
            queue.drop_late(index);
            self.context.announcer.announce(&Event::FinishedElsewhere { index });
        }
        late
    }

    fn block(&self, site: &BlockedSite) {
        if let Err(error) = blocklist::append(&self.context.settings.save_path, site) {
            tracing::warn!(%error, domain = site.domain, "cannot note a blocked site");
        }
    }
}

fn compose(ending: &Ending, attempt: u32, episode: Episode) -> (Trajectory, ScreenshotStore) {
    let (task, mut steps, screenshots) = episode.into_parts();
    if ending.leaves_invalid_step() {
        steps.push(invalid_step(steps.last(), &ending.why()));
    }
    let extra = Map::from_iter([
        ("ending".to_owned(), Value::from(ending.why())),
        ("attempt".to_owned(), Value::from(attempt)),
    ]);
    let metadata =
        TrajectoryMetadata { keypoint_step_ids: Vec::new(), outcome: Some(ending.outcome()), extra };
    (Trajectory { task, steps, metadata }, screenshots)
}

/// The last step of an episode that was cut short: says why, earns nothing, shows what was seen last.
fn invalid_step(last: Option<&Step>, why: &str) -> Step {
    let observation = last.map_or_else(Observation::default, |step| step.observation.clone());
    Step {
        observation,
        action: Some(Episode::invalid_action()),
        response: Response::default(),
        reward: Reward { evaluation: Evaluation::Text(why.to_owned()), ..Reward::default() },
        same_as_next_screenshot: None,
        extras: StepExtras::default(),
    }
}
