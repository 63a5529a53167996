//! Waiting until an action's effect is on the page, and no longer: no navigation pending, the document loaded,
//! the network and the DOM at rest, the next frames drawn. Every wait is on an event and has a bound.

use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::json;
use tokio::sync::watch;

use super::{Mark, Page};
use crate::error::BrowserError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// The page came to rest. Otherwise the budget ran out first.
    pub quiet: bool,
    pub elapsed: Duration,
}

#[derive(Deserialize)]
struct Quiet {
    quiet: bool,
}

/// Why the page is not at rest, as far as the browser tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Busy {
    Navigating,
    Loading,
    Requests,
}

impl Page {
    /// Waits until what began at `mark` has had its effect.
    pub(crate) async fn settle(&self, mark: Mark) -> Result<Settled, BrowserError> {
        let options = &self.options.settle;
        let mut document = mark.document;
        let mut rest_from = mark.at;
        loop {
            let mut changes = self.tracker.changes();
            let (busy, now_document, restless) = self.activity(mark.at)?;
            if now_document != document {
                // A new page has its own budget, and its own first chance to be calm.
                (document, rest_from) = (now_document, Instant::now());
            }
            let budget = if restless { options.busy_page_budget } else { options.budget };
            let end = match busy {
                Some(Busy::Navigating) => mark.at + options.navigation_budget,
                _ => rest_from + budget,
            };
            if Instant::now() >= end {
                self.tracker.state().mark_restless();
                return Ok(settled(false, mark));
            }
            if busy.is_some() {
                wait(&mut changes, end).await;
                continue;
            }
            match self.quiet(mark, end).await? {
                Some(true) if self.activity(mark.at)?.0.is_none() && self.document() == document => {
                    return Ok(settled(true, mark));
                }
                Some(false) => {
                    self.tracker.state().mark_restless();
                    return Ok(settled(false, mark));
                }
                _ => {}
            }
        }
    }

    /// Whether anything has begun since the page was found quiet, in the document it was found quiet in.
    pub(crate) async fn stirred(&self, mark: Mark, document: u64) -> Result<bool, BrowserError> {
        let (busy, now_document, _) = self.activity(mark.at)?;
        if busy.is_some() || now_document != document {
            return Ok(true);
        }
        match self.ask_within::<bool>(self.options.settle.budget, "stirred", &json!([])).await {
            Ok(stirred) => Ok(stirred),
            Err(BrowserError::Lost(gone)) => Err(BrowserError::Lost(gone)),
            Err(_) => Ok(true),
        }
    }

    /// Waits for the load event of the document on show, for at most `limit`.
    pub(crate) async fn loaded(&self, limit: Duration) -> Result<(), BrowserError> {
        let end = Instant::now() + limit;
        loop {
            let mut changes = self.tracker.changes();
            let (loading, gone) = {
                let state = self.tracker.state();
                (state.loading, state.gone.clone())
            };
            if let Some(gone) = gone {
                return Err(BrowserError::Lost(gone));
            }
            if !loading || Instant::now() >= end {
                return Ok(());
            }
            wait(&mut changes, end).await;
        }
    }

    fn activity(&self, since: Instant) -> Result<(Option<Busy>, u64, bool), BrowserError> {
        let state = self.tracker.state();
        if let Some(gone) = &state.gone {
            return Err(BrowserError::Lost(gone.clone()));
        }
        let busy = if state.navigating() {
            Some(Busy::Navigating)
        } else if state.loading {
            Some(Busy::Loading)
        } else if state.requests_since(since) > 0 {
            Some(Busy::Requests)
        } else {
            None
        };
        Ok((busy, state.document, state.restless()))
    }

    /// Asks the document itself; `None` when it went away or was too busy to say.
    async fn quiet(&self, mark: Mark, end: Instant) -> Result<Option<bool>, BrowserError> {
        let left = end.saturating_duration_since(Instant::now());
        let still = millis(self.options.settle.quiet_period);
        let arguments = json!([millis(mark.at.elapsed()), still, millis(left), mark.frames]);
        // The document gets a little longer than it gives itself, so that a hung one is told from a restless one.
        match self.ask_within::<Quiet>(left + Duration::from_millis(250), "quiet", &arguments).await {
            Ok(Quiet { quiet }) => Ok(Some(quiet)),
            Err(BrowserError::Lost(gone)) => Err(BrowserError::Lost(gone)),
            Err(_) => Ok(None),
        }
    }
}

fn settled(quiet: bool, mark: Mark) -> Settled {
    Settled { quiet, elapsed: mark.at.elapsed() }
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// Until something changes, or for a moment: a navigation that was only asked for lapses without an event.
async fn wait(changes: &mut watch::Receiver<u64>, end: Instant) {
    const MOMENT: Duration = Duration::from_millis(100);
    let until = end.min(Instant::now() + MOMENT);
    let _ = tokio::time::timeout_at(until.into(), changes.changed()).await;
}
