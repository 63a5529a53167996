//! The end of an episode: it is judged and made durable while collection goes on, and counted only then.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Instant,
};

use proto::trajectory::{
    Evaluation, Observation, Outcome, Response, Reward, Step, StepExtras, Trajectory, TrajectoryMetadata,
};
use serde_json::{Map, Value};
use store::Prompts;

use super::{
    RunError,
    collector::Collector,
    event::{Event, Stage},
    losses::LossDecision,
};
use crate::{
    episode::{Ending, Episode, screenshots::ScreenshotStore},
    judge::{Verdict, blocked_site},
    plan::blocklist::{self, BlockedSite},
};

/// An episode that ended, before it is saved.
pub(super) struct EndedEpisode {
    trajectory: Trajectory,
    /// The prompts of the steps, which do not contain them.
    prompts: Prompts,
    screenshots: ScreenshotStore,
}

impl Collector {
    /// Passes a finished episode on to judge and disk. Blocks only when too many episodes wait for the judge.
    pub(super) async fn submit(self: &Arc<Self>, ending: Ending, attempt: u32, mut episode: Episode) {
        let Ok(permit) = Arc::clone(&self.unjudged).acquire_owned().await else { return };
        let collector = Arc::clone(self);
        self.finishing.spawn(async move {
            let _permit = permit;
            let verdict = episode.verdict.take();
            collector.finish(&ending, end_episode(&ending, attempt, episode), verdict).await;
        });
    }

    async fn finish(self: Arc<Self>, ending: &Ending, mut episode: EndedEpisode, verdict: Option<Verdict>) {
        if self.is_finished_elsewhere(trajectory_index(&episode.trajectory)).await {
            return episode.screenshots.discard().await;
        }
        if ending.outcome() == Outcome::InfraLost {
            let index = episode.trajectory.task.trajectory_index;
            return match self.losses.record_loss(&ending.reason(), episode) {
                LossDecision::Count(episode) => self.save(episode).await,
                LossDecision::Hold => self.limits.starts.add_held(index),
                LossDecision::StopRun => self.fail_all_lost(),
            };
        }
        if ending.is_by_agent() {
            for lost in self.losses.record_success() {
                self.save(lost).await;
            }
            self.limits.starts.clear_held();
            if !self.judge(&mut episode.trajectory, verdict).await {
                return;
            }
        }
        self.save(episode).await;
    }

    /// Judges a trajectory, unless it has a verdict already. Returns `false` when the run was stopped meanwhile.
    async fn judge(&self, trajectory: &mut Trajectory, verdict: Option<Verdict>) -> bool {
        let index = trajectory_index(trajectory);
        let (step, announcer) = (trajectory.steps.len(), &self.context.announcer);
        announcer.announce(&Event::Stage { index, step, stage: Stage::Reward });
        let since = Instant::now();
        let verdict = if let Some(verdict) = verdict {
            verdict
        } else {
            tokio::select! {
                biased;
                () = self.stop.hard.cancelled() => return false,
                verdict = self.judge.judge(trajectory) => verdict,
            }
        };
        if let Some(site) = blocked_site(&verdict, trajectory) {
            self.add_to_blocklist(&site);
        }
        verdict.apply(trajectory);
        announcer.announce(&Event::StageTimed { stage: Stage::Reward, duration: since.elapsed() });
        true
    }

    /// Makes a trajectory durable, then counts it.
    async fn save(self: &Arc<Self>, episode: EndedEpisode) {
        let EndedEpisode { mut trajectory, prompts, screenshots } = episode;
        let index = trajectory_index(&trajectory);
        let (steps, announcer) = (trajectory.steps.len(), &self.context.announcer);
        announcer.announce(&Event::Stage { index, step: steps, stage: Stage::Save });
        for step in &mut trajectory.steps {
            // Nothing follows the last screenshot, so it is not equal to the next one.
            step.same_as_next_screenshot.get_or_insert(false);
        }
        if self.queue.is_some() {
            // Two collectors may have run the same task: the merge keeps the one that finished first.
            let now = Value::from(jiff::Timestamp::now().to_string());
            trajectory.metadata.extra.insert(store::aggregate::FINISHED_AT.to_owned(), now);
        }
        let saved = async {
            screenshots.sync().await.map_err(|error| error.to_string())?;
            let journal = &self.context.journal;
            journal.append_finished_with(&trajectory, &prompts).await.map_err(|error| error.to_string())
        };
        if let Err(reason) = saved.await {
            return self.fail(RunError::Disk(reason));
        }
        if let Some(queue) = &self.queue {
            queue.mark_finished(index);
        }
        let outcome = trajectory.metadata.outcome.unwrap_or(Outcome::Failure);
        self.finished.fetch_add(1, Ordering::Relaxed);
        if let Some(summary) = trajectory.metadata.network.take() {
            announcer.announce(&Event::NetworkReported { index, summary: Box::new(summary) });
        }
        announcer.announce(&Event::Finished { index, outcome, steps });
        self.add_done(1);
    }

    /// Decides about held losses when all tasks are done: a few are saved as results, many stop the run with an error.
    pub(super) async fn settle_losses(self: &Arc<Self>) {
        // A run that was stopped on request might have succeeded later, so its losses stay undecided.
        if self.stop.soft.is_cancelled() {
            return;
        }
        let Some(losses) = self.losses.take_if_few() else { return self.fail_all_lost() };
        for lost in losses {
            self.save(lost).await;
        }
    }

    fn fail_all_lost(&self) {
        let (count, reason) = self.losses.summary().unwrap_or_default();
        self.fail(RunError::AllEpisodesLost { count, reason });
    }

    /// Returns whether another collector has taken this task over and finished it, so that this episode is not needed.
    async fn is_finished_elsewhere(self: &Arc<Self>, index: usize) -> bool {
        let Some(queue) = &self.queue else { return false };
        let is_finished = queue.is_finished_elsewhere(index).await;
        if is_finished {
            queue.mark_redundant(index);
            self.context.announcer.announce(&Event::FinishedElsewhere { index });
        }
        is_finished
    }

    fn add_to_blocklist(&self, site: &BlockedSite) {
        if let Err(error) = blocklist::append(&self.context.settings.save_path, site) {
            tracing::warn!(%error, domain = site.domain, "cannot add a site to the blocklist");
        }
    }
}

fn trajectory_index(trajectory: &Trajectory) -> usize {
    usize::try_from(trajectory.task.trajectory_index).unwrap_or(0)
}

fn end_episode(ending: &Ending, attempt: u32, mut episode: Episode) -> EndedEpisode {
    let group_id = episode.group_id();
    let network = episode.network.take();
    let forked_at_step = episode.forked_at_step;
    let (task, mut steps, prompts, screenshots) = episode.into_parts();
    let mut policy_versions: Vec<String> = Vec::new();
    for version in steps.iter().filter_map(|step| step.extras.policy_version.as_ref()) {
        if !policy_versions.contains(version) {
            policy_versions.push(version.clone());
        }
    }
    if ending.has_invalid_step() {
        steps.push(invalid_step(steps.last(), &ending.reason()));
    }
    let extra = Map::from_iter([
        ("ending".to_owned(), Value::from(ending.reason())),
        ("attempt".to_owned(), Value::from(attempt)),
    ]);
    let outcome = Some(ending.outcome());
    let keypoint_step_ids = Vec::new();
    let metadata = TrajectoryMetadata {
        keypoint_step_ids,
        outcome,
        group_id,
        policy_versions,
        forked_at_step,
        network,
        extra,
    };
    EndedEpisode { trajectory: Trajectory { task, steps, metadata }, prompts, screenshots }
}

/// Builds the last step of an episode that was cut short: it holds the reason and the last observation, without a reward.
fn invalid_step(last: Option<&Step>, reason: &str) -> Step {
    let observation = last.map_or_else(Observation::default, |step| step.observation.clone());
    Step {
        observation,
        action: Some(Episode::invalid_action()),
        response: Response::default(),
        reward: Reward { evaluation: Evaluation::Text(reason.to_owned()), ..Reward::default() },
        same_as_next_screenshot: None,
        extras: StepExtras::default(),
    }
}
