//! Announces what happens in an episode to the listeners of the run, such as the monitor. An episode has a number of its own
//! there: one server has the episodes of all splits.

use std::{path::Path, time::Instant};

use client::farm::LiveUrl;
use proto::{
    network::NetworkSummary,
    trajectory::{Outcome, Task},
};
use rollout::run::{
    event::{Announcer, Event, Stage},
    state::TaskInfo,
};

use crate::error::EnvError;

/// Announces the stages of one episode. Without a call of [`Progress::finish`] the episode counts as cancelled.
#[must_use]
pub(crate) struct Progress {
    announcer: Announcer,
    index: usize,
    step: usize,
    stage: Stage,
    since: Instant,
    is_finished: bool,
}

impl Progress {
    /// Announces an episode that waits for a browser.
    pub(crate) fn begin(announcer: &Announcer, index: usize, task: &Task) -> Self {
        announcer.announce(&Event::TaskAdded { task: Box::new(TaskInfo::of(task, index)) });
        let progress = Self {
            announcer: announcer.clone(),
            index,
            step: 0,
            stage: Stage::Allocate,
            since: Instant::now(),
            is_finished: false,
        };
        progress.announce_stage();
        progress
    }

    /// Returns the number of the episode.
    pub(crate) const fn index(&self) -> usize {
        self.index
    }

    fn announce_stage(&self) {
        self.announcer.announce(&Event::Stage { index: self.index, step: self.step, stage: self.stage });
    }

    /// Announces the next stage, and how long the last one took.
    pub(crate) fn enter(&mut self, stage: Stage) {
        self.announcer.announce(&Event::StageTimed { stage: self.stage, duration: self.since.elapsed() });
        self.stage = stage;
        self.since = Instant::now();
        self.announce_stage();
    }

    /// Announces that the episode has a browser, and opens its start page.
    pub(crate) fn open_page(&mut self, live_url: Option<&LiveUrl>) {
        self.announcer.announce(&Event::BrowserChanged { index: self.index, live_url: live_url.cloned() });
        self.enter(Stage::Navigate);
    }

    /// Announces what the client saw and did.
    pub(crate) fn record_step(&mut self, url: &str, screenshot: &Path, action: &str) {
        let index = self.index;
        let (url, screenshot) = (url.to_owned(), screenshot.to_owned());
        self.announcer.announce(&Event::Observed { index, url, screenshot });
        self.announcer.announce(&Event::Decided { index, action: action.to_owned(), thought: String::new() });
        self.announcer.announce(&Event::StepDone { index });
        self.step += 1;
    }

    /// Announces a failure in the current stage, after which the episode starts again on another browser.
    pub(crate) fn retry(&mut self, attempt: u32, reason: &str) {
        let (index, stage, reason) = (self.index, self.stage, reason.to_owned());
        self.announcer.announce(&Event::StageFailed { index, stage, reason: reason.clone() });
        self.announcer.announce(&Event::BrowserChanged { index, live_url: None });
        self.announcer.announce(&Event::Retried { index, attempt, reason });
        self.enter(Stage::Allocate);
    }

    /// Announces that the episode cannot start.
    pub(crate) fn fail(self, error: &EnvError) {
        let (index, stage, reason) = (self.index, self.stage, error.to_string());
        self.announcer.announce(&Event::StageFailed { index, stage, reason });
        self.finish(match error {
            EnvError::Start(_) | EnvError::Disk(_) => Outcome::InfraLost,
            _ => Outcome::Cancelled,
        });
    }

    pub(crate) fn report_network(&self, summary: &NetworkSummary) {
        let summary = Box::new(summary.clone());
        self.announcer.announce(&Event::NetworkReported { index: self.index, summary });
    }

    pub(crate) fn finish(mut self, outcome: Outcome) {
        self.end(outcome);
    }

    fn end(&mut self, outcome: Outcome) {
        if std::mem::replace(&mut self.is_finished, true) {
            return;
        }
        self.announcer.announce(&Event::BrowserChanged { index: self.index, live_url: None });
        self.announcer.announce(&Event::Finished { index: self.index, outcome, steps: self.step });
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.end(Outcome::Cancelled);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rollout::run::state::RunState;

    use super::*;

    #[test]
    fn episode_is_shown_from_the_queue_to_its_end() {
        let run = Arc::new(RunState::open_ended());
        let announcer = Announcer::new(vec![Arc::clone(&run) as _]);
        let task = Task { task_name: "buy".into(), ..Task::default() };
        let mut progress = Progress::begin(&announcer, 0, &task);
        assert_eq!((run.cells()[0].stage, run.task(0).unwrap().name.as_str()), (Stage::Allocate, "buy"));
        progress.retry(1, "the node is gone");
        progress.open_page(None);
        progress.enter(Stage::Policy);
        progress.record_step("https://a.test/", Path::new("step_000.png"), "click('3')");
        progress.enter(Stage::Execute);
        assert_eq!((run.cells()[0].stage, run.cells()[0].step), (Stage::Execute, 1));
        let trace = run.task_detail(0).unwrap().1.unwrap();
        assert_eq!((trace.steps[0].action.as_str(), trace.screenshot_count), ("click('3')", 1));
        progress.finish(Outcome::Success);
        assert_eq!((run.cells()[0].outcome, run.totals().retried), (Some(Outcome::Success), 1));
    }

    #[test]
    fn abandoned_episode_counts_as_cancelled_and_failed_start_as_lost() {
        let run = Arc::new(RunState::open_ended());
        let announcer = Announcer::new(vec![Arc::clone(&run) as _]);
        drop(Progress::begin(&announcer, 0, &Task::default()));
        Progress::begin(&announcer, 1, &Task::default()).fail(&EnvError::Start("no farm".into()));
        Progress::begin(&announcer, 2, &Task::default()).fail(&EnvError::Draining);
        let outcomes: Vec<_> = run.cells().iter().map(|cell| cell.outcome.unwrap()).collect();
        assert_eq!(outcomes, [Outcome::Cancelled, Outcome::InfraLost, Outcome::Cancelled]);
        assert_eq!(run.done(), 3);
    }
}
