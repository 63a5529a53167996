//! Waits until an action has had its effect: no navigation in progress, the document loaded, network and DOM at rest, the
//! next frames drawn. Every wait ends with an event and has a bound.
//!
//! A page that builds itself (it loads parts of its code, or gets its content over a WebSocket or an event stream) pauses
//! between its steps. It must be quiet for longer, and gets a larger budget as long as it shows that it is not complete
//! (`script/building.js`). All other pages are settled as if these rules did not exist.

use std::time::{Duration, Instant};

use proto::page::{PageMetadata, Rect};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::watch;

use super::{
    ActionStart, Page, SETTLE_DRAWN_FRAMES,
    elements::{OpenRow, RowText},
    read::checked_metadata,
};
use crate::{error::BrowserError, options::SettleOptions};

/// By how much the budget of a page that is still building itself grows at a time.
const BUDGET_EXTENSION: Duration = Duration::from_secs(1);

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

/// What belongs to a screenshot of a quiet page.
pub(crate) struct QuietPage {
    pub(crate) metadata: PageMetadata,
    /// The rows of the open drop-down, which the screenshot must show.
    pub(crate) rows: Vec<(Rect, RowText)>,
}

#[derive(Deserialize)]
struct QuietPageReply {
    metadata: PageMetadata,
    rows: Vec<OpenRow>,
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
    /// Whether the document used up its settle budget the last time.
    is_busy_page: bool,
    /// Whether the page has been building itself since the action.
    is_building: bool,
}

impl Status {
    /// How long the page must have been quiet if it is building itself; `None` if it is not. A page that is always
    /// busy is not waited for a second time.
    fn build_quiet_period(&self, options: &SettleOptions) -> Option<Duration> {
        (self.is_building && !self.is_busy_page).then_some(options.build_quiet_period)
    }
}

impl Page {
    /// Waits until the action that began at `start` has had its effect.
    pub(crate) async fn settle(&self, start: ActionStart) -> Result<Settled, BrowserError> {
        if let Some(clock) = self.context.clock() {
            return self.settle_on_clock(clock, start).await;
        }
        let options = &self.options.settle;
        let mut document = start.document;
        let mut budget_start = start.time;
        let mut extension = Duration::ZERO;
        loop {
            let mut changes = self.tracker.changes();
            let status = self.status(start.time)?;
            if status.document != document {
                // A new document has its own budget.
                (document, budget_start, extension) = (status.document, Instant::now(), Duration::ZERO);
            }
            let budget = if status.is_busy_page { options.busy_page_budget } else { options.budget };
            let deadline = match status.activity {
                Some(Activity::Navigating) => start.time + options.navigation_budget,
                _ => budget_start + budget + extension,
            };
            if Instant::now() >= deadline {
                let may_extend = budget + extension < options.build_budget;
                if may_extend && !status.is_busy_page && self.is_incomplete(start.time, &status).await? {
                    extension += BUDGET_EXTENSION;
                    continue;
                }
                self.tracker.state().set_busy_page(true);
                return Ok(start.settled(false));
            }
            if status.activity.is_some() {
                wait_for_change(&mut changes, deadline).await;
                continue;
            }
            let build_quiet_period = status.build_quiet_period(options);
            let quiet = self.wait_until_quiet(start, deadline, build_quiet_period).await?;
            if quiet != Some(true) {
                continue;
            }
            let status = self.status(start.time)?;
            let is_same_wait = status.document == document
                && status.build_quiet_period(options).is_some() == build_quiet_period.is_some();
            if status.activity.is_none() && is_same_wait {
                if status.is_busy_page && !self.is_incomplete(start.time, &status).await? {
                    // The page has calmed down: it gets its whole budget again.
                    self.tracker.state().set_busy_page(false);
                }
                return Ok(start.settled(true));
            }
        }
    }

    /// Whether the page waits for parts of itself, or shows that it is not complete.
    async fn is_incomplete(&self, since: Instant, status: &Status) -> Result<bool, BrowserError> {
        // A page that does not answer within this time is busy with its own code.
        const REPLY_TIMEOUT: Duration = Duration::from_millis(500);
        if status.is_building && self.tracker.state().awaits_parts_since(since) {
            return Ok(true);
        }
        match self.call_script_within(REPLY_TIMEOUT, "isIncomplete", &json!([])).await {
            Err(BrowserError::Lost(end)) => Err(BrowserError::Lost(end)),
            incomplete => Ok(incomplete.unwrap_or(true)),
        }
    }

    /// Describes `document` as it was when it was found quiet. Returns `None` if anything has happened since. Before it
    /// answers, the page has drawn all the frames that it must draw after an action.
    pub(crate) async fn describe_quiet(
        &self,
        start: ActionStart,
        document: u64,
    ) -> Result<Option<QuietPage>, BrowserError> {
        let status = self.status(start.time)?;
        if status.activity.is_some() || status.document != document {
            return Ok(None);
        }
        let budget = self.options.settle.budget;
        let arguments = json!([millis(budget)]);
        match self.call_script_within::<Option<QuietPageReply>>(budget, "describeQuiet", &arguments).await {
            Err(BrowserError::Lost(end)) => Err(BrowserError::Lost(end)),
            Ok(Some(QuietPageReply { metadata, rows })) => {
                let rows = rows.into_iter().map(OpenRow::into_row).collect();
                Ok(Some(QuietPage { metadata: checked_metadata(metadata), rows }))
            }
            Ok(None) | Err(_) => Ok(None),
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
        Ok(Status {
            activity,
            document: state.document,
            is_busy_page: state.is_busy_page(),
            is_building: state.is_building_since(action_time),
        })
    }

    /// Lets the page script wait until the document is quiet. Returns `None` if the document went away or did not answer.
    async fn wait_until_quiet(
        &self,
        start: ActionStart,
        deadline: Instant,
        build_quiet_period: Option<Duration>,
    ) -> Result<Option<bool>, BrowserError> {
        // The script is given a little longer than its own limit, so that a hung page differs from one that never rests.
        const REPLY_MARGIN: Duration = Duration::from_millis(250);
        let remaining = deadline.saturating_duration_since(Instant::now());
        let arguments = json!([{
            "elapsed": millis(start.time.elapsed()),
            "quietPeriod": millis(self.options.settle.quiet_period),
            "buildQuietPeriod": build_quiet_period.map(millis),
            "limit": millis(remaining),
            "frames": start.min_drawn_frames,
            "laterFrames": SETTLE_DRAWN_FRAMES - start.min_drawn_frames,
        }]);
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
pub(super) async fn wait_for_change(changes: &mut watch::Receiver<u64>, deadline: Instant) {
    const POLL_INTERVAL: Duration = Duration::from_millis(100);
    let until = deadline.min(Instant::now() + POLL_INTERVAL);
    let _ = tokio::time::timeout_at(until.into(), changes.changed()).await;
}
