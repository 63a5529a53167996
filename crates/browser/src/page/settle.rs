//! Waits until an action has had its effect: no navigation in progress, the document loaded, network and DOM at rest, the
//! next frames drawn. Every wait ends with an event and has a bound.

use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::json;
use tokio::sync::watch;

use super::{ActionStart, Page, SETTLE_DRAWN_FRAMES};
use crate::error::BrowserError;

/// How a page settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// Whether the page became quiet. Otherwise the budget ran out first.
    pub quiet: bool,
    pub elapsed: Duration,
}

#[derive(Deserialize)]
struct QuietReply {
    quiet: bool,
}

/// What the page is still doing, according to the browser's events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Activity {
    Navigating,
    Loading,
    Requests,
}

struct Status {
    activity: Option<Activity>,
    document: u64,
    /// Whether the document has used up its settle budget before.
    is_busy_page: bool,
}

impl Page {
    /// Waits until the action that began at `start` has had its effect.
    pub(crate) async fn settle(&self, start: ActionStart) -> Result<Settled, BrowserError> {
        let options = &self.options.settle;
        let mut document = start.document;
        let mut budget_start = start.time;
        loop {
            let mut changes = self.tracker.changes();
            let status = self.status(start.time)?;
            if status.document != document {
                // A new document has its own budget.
                (document, budget_start) = (status.document, Instant::now());
            }
            let budget = if status.is_busy_page { options.busy_page_budget } else { options.budget };
            let deadline = match status.activity {
                Some(Activity::Navigating) => start.time + options.navigation_budget,
                _ => budget_start + budget,
            };
            if Instant::now() >= deadline {
                self.tracker.state().mark_busy_page();
                return Ok(start.settled(false));
            }
            if status.activity.is_some() {
                wait_for_change(&mut changes, deadline).await;
                continue;
            }
            match self.wait_until_quiet(start, deadline).await? {
                Some(true) if self.status(start.time)?.activity.is_none() && self.document() == document => {
                    return Ok(start.settled(true));
                }
                Some(false) => {
                    self.tracker.state().mark_busy_page();
                    return Ok(start.settled(false));
                }
                _ => {}
            }
        }
    }

    /// Whether anything has happened since `document` was found quiet. Before it answers, the page has drawn all the
    /// frames that it must draw after an action.
    pub(crate) async fn changed_since_quiet(
        &self,
        start: ActionStart,
        document: u64,
    ) -> Result<bool, BrowserError> {
        let status = self.status(start.time)?;
        if status.activity.is_some() || status.document != document {
            return Ok(true);
        }
        let budget = self.options.settle.budget;
        match self.call_script_within::<bool>(budget, "changedSinceQuiet", &json!([millis(budget)])).await {
            Err(BrowserError::Lost(end)) => Err(BrowserError::Lost(end)),
            changed => Ok(changed.unwrap_or(true)),
        }
    }

    /// Waits for the load event of the current document, for at most `timeout`.
    pub(crate) async fn wait_loaded(&self, timeout: Duration) -> Result<(), BrowserError> {
        let deadline = Instant::now() + timeout;
        loop {
            let mut changes = self.tracker.changes();
            let (loading, ended) = {
                let state = self.tracker.state();
                (state.loading, state.ended.clone())
            };
            if let Some(end) = ended {
                return Err(BrowserError::Lost(end));
            }
            if !loading || Instant::now() >= deadline {
                return Ok(());
            }
            wait_for_change(&mut changes, deadline).await;
        }
    }

    fn status(&self, action_time: Instant) -> Result<Status, BrowserError> {
        let state = self.tracker.state();
        if let Some(end) = &state.ended {
            return Err(BrowserError::Lost(end.clone()));
        }
        let activity = if state.is_navigating() {
            Some(Activity::Navigating)
        } else if state.loading {
            Some(Activity::Loading)
        } else if state.requests_since(action_time) > 0 {
            Some(Activity::Requests)
        } else {
            None
        };
        Ok(Status { activity, document: state.document, is_busy_page: state.is_busy_page() })
    }

    /// Lets the page script wait until the document is quiet. Returns `None` if the document went away or did not answer.
    async fn wait_until_quiet(
        &self,
        start: ActionStart,
        deadline: Instant,
    ) -> Result<Option<bool>, BrowserError> {
        // The script is given a little longer than its own limit, so that a hung page differs from one that never rests.
        const REPLY_MARGIN: Duration = Duration::from_millis(250);
        let remaining = deadline.saturating_duration_since(Instant::now());
        let quiet_period = millis(self.options.settle.quiet_period);
        let later_frames = SETTLE_DRAWN_FRAMES - start.min_drawn_frames;
        let arguments = json!([
            millis(start.time.elapsed()),
            quiet_period,
            millis(remaining),
            start.min_drawn_frames,
            later_frames
        ]);
        match self.call_script_within(remaining + REPLY_MARGIN, "waitUntilQuiet", &arguments).await {
            Ok(QuietReply { quiet }) => Ok(Some(quiet)),
            Err(BrowserError::Lost(end)) => Err(BrowserError::Lost(end)),
            Err(_) => Ok(None),
        }
    }
}

impl ActionStart {
    pub(crate) fn settled(&self, quiet: bool) -> Settled {
        Settled { quiet, elapsed: self.time.elapsed() }
    }
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// Waits for the next change of the tracker. Returns after the poll interval at the latest: a requested navigation that
/// never starts expires without an event.
async fn wait_for_change(changes: &mut watch::Receiver<u64>, deadline: Instant) {
    const POLL_INTERVAL: Duration = Duration::from_millis(100);
    let until = deadline.min(Instant::now() + POLL_INTERVAL);
    let _ = tokio::time::timeout_at(until.into(), changes.changed()).await;
}
