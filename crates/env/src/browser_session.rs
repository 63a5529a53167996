//! The browser of an episode: carries out intents on its lease and observes the page.

use std::time::Duration;

use client::{
    farm::{ClientError, Observation, ObserveOptions, Viewport, read_screenshot_info},
    http::Deadline,
};
use proto::{
    Command, ImageFormat,
    command::Point,
    network::NetworkSummary,
    page::{InteractiveRegion, ScreenshotInfo, TabInfo},
};
use rollout::judge::program::FarmPage;
use serde_json::Value;

use crate::{
    action::{self, Intent},
    held_lease::HeldLease,
    page::Page,
};

/// Why a session cannot go on.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SessionError {
    /// The browser, its node or the farm failed; the agent did not cause it.
    #[error("{0}")]
    Lost(String),
    /// The farm's rules forbid the page, or the task's own script cannot prepare it.
    #[error("{0}")]
    Refused(String),
    /// The archive that is replayed lacks what the page needs.
    #[error("{0}")]
    ReplayMiss(String),
}

impl From<ClientError> for SessionError {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::UrlRefused(reason) => Self::Refused(reason),
            ClientError::ReplayMiss(_) => Self::ReplayMiss(error.to_string()),
            other => Self::Lost(other.to_string()),
        }
    }
}

/// The browser of one episode.
pub(crate) struct BrowserSession {
    held: HeldLease,
    options: ObserveOptions,
    viewport: Viewport,
    /// Limits one operation with all its attempts.
    timeout: Duration,
}

impl BrowserSession {
    /// Reads the size of the viewport.
    pub(crate) async fn open(
        held: HeldLease,
        options: ObserveOptions,
        timeout: Duration,
    ) -> Result<Self, SessionError> {
        let viewport = held.farm().metadata(held.lease(), Deadline::after(timeout)).await?;
        Ok(Self { held, options, viewport, timeout })
    }

    pub(crate) const fn viewport(&self) -> (u32, u32) {
        (self.viewport.width, self.viewport.height)
    }

    /// Returns the page for scripts and checks of the task.
    pub(crate) fn judged_page(&self) -> FarmPage<'_> {
        let (farm, lease, cdp_url) = (self.held.farm(), self.held.lease(), self.held.cdp_url());
        FarmPage { farm, lease, cdp_url, deadline: self.deadline() }
    }

    fn deadline(&self) -> Deadline {
        Deadline::after(self.timeout)
    }

    /// Opens the start page. A page that does not load is no error: the agent sees what the browser shows.
    pub(crate) async fn visit(&self, url: &str) -> Result<Page, SessionError> {
        self.act(&[Intent::Command(Command::VisitPage { url: url.to_owned() })]).await
    }

    /// Observes the page.
    pub(crate) async fn observe(&self) -> Result<Page, SessionError> {
        let observation = self.held.farm().observe(self.held.lease(), &self.options, self.deadline()).await?;
        Ok(Page::of(observation))
    }

    /// Takes a screenshot in this format. The numbers on it are those of the elements.
    pub(crate) async fn screenshot(&self, format: ImageFormat) -> Result<Page, SessionError> {
        let options = ObserveOptions { format, screenshot: true, ..self.options };
        Ok(Page::of(self.held.farm().observe(self.held.lease(), &options, self.deadline()).await?))
    }

    /// Carries out intents in order, up to the first that fails, and observes the page.
    pub(crate) async fn act(&self, intents: &[Intent]) -> Result<Page, SessionError> {
        let Some((last, earlier)) = intents.split_last() else { return self.observe().await };
        for intent in earlier {
            if let Err(reason) = self.perform(intent).await? {
                return self.observe_after(reason).await;
            }
        }
        let command = match self.command(last).await? {
            Ok(Some(command)) => command,
            Ok(None) => return self.observe().await,
            Err(reason) => return self.observe_after(reason).await,
        };
        let farm = self.held.farm();
        match farm.step(self.held.lease(), &command, &self.options, self.deadline()).await {
            Ok(Observation { failure: Some(error @ ClientError::ReplayMiss(_)), .. }) => Err(error.into()),
            Ok(observation) => Ok(Page::of(observation)),
            Err(error) if is_lost(&error) => Err(error.into()),
            Err(error) => self.observe_after(error.to_string()).await,
        }
    }

    async fn observe_after(&self, reason: String) -> Result<Page, SessionError> {
        Ok(Page { failure: Some(reason), ..self.observe().await? })
    }

    /// Carries out an intent without observing the page. The inner error is for the agent.
    async fn perform(&self, intent: &Intent) -> Result<Result<(), String>, SessionError> {
        match self.command(intent).await? {
            Ok(Some(command)) => Ok(self.execute(&command).await?.map(drop)),
            Ok(None) => Ok(Ok(())),
            Err(reason) => Ok(Err(reason)),
        }
    }

    /// Executes a command and returns its result. The inner error is for the agent.
    pub(crate) async fn execute(&self, command: &Command) -> Result<Result<Value, String>, SessionError> {
        match self.held.farm().execute(self.held.lease(), command, self.deadline()).await {
            Ok(result) => Ok(Ok(result)),
            Err(error) if is_lost(&error) => Err(error.into()),
            Err(error) => Ok(Err(error.to_string())),
        }
    }

    /// Returns the command of an intent; none for a wait, which is over when this returns.
    async fn command(&self, intent: &Intent) -> Result<Result<Option<Command>, String>, SessionError> {
        let command = match intent {
            Intent::Command(command) => command.clone(),
            Intent::Wait { seconds } => {
                tokio::time::sleep(Duration::try_from_secs_f64(*seconds).unwrap_or_default()).await;
                return Ok(Ok(None));
            }
            Intent::ScrollPage { dx, dy } => action::wheel_at_centre(self.viewport(), *dx, *dy),
            Intent::ClickElement { id, button, clicks, keys } => {
                let Some(point) = self.marks().await?.and_then(|marks| centre(&marks, id)) else {
                    return Ok(Err(no_such_element(id)));
                };
                action::click_at(point, *button, *clicks, keys.clone())
            }
            Intent::DragElement { from, to } => {
                let marks = self.marks().await?.unwrap_or_default();
                match (centre(&marks, from), centre(&marks, to)) {
                    (Some(from), Some(to)) => action::drag_between(from, to),
                    (None, _) => return Ok(Err(no_such_element(from))),
                    (_, None) => return Ok(Err(no_such_element(to))),
                }
            }
            Intent::FocusTab { number } => {
                let tabs = self.tabs().await?;
                match tabs.get(*number) {
                    Some(tab) => Command::SwitchTab { id: tab.id.clone() },
                    None => return Ok(Err(format!("there is no tab {number}; there are {}", tabs.len()))),
                }
            }
        };
        Ok(Ok(Some(command)))
    }

    /// Uploads a file for the file choosers of pages. The inner error is for the agent.
    pub(crate) async fn upload(
        &self,
        name: &str,
        content: Vec<u8>,
    ) -> Result<Result<(), String>, SessionError> {
        let uploaded =
            self.held.farm().upload(self.held.lease(), name, content.into(), self.deadline()).await;
        match uploaded {
            Err(error) if is_lost(&error) => Err(error.into()),
            other => Ok(other.map_err(|error| error.to_string())),
        }
    }

    /// Asks what was recorded or replayed. The episode does not depend on it.
    pub(crate) async fn network_summary(&self) -> Option<NetworkSummary> {
        if !self.held.has_network() {
            return None;
        }
        match self.held.farm().network(self.held.lease(), self.deadline()).await {
            Ok(report) => Some(NetworkSummary::of(report)),
            Err(error) => {
                tracing::warn!(%error, "cannot read the network report of an episode");
                None
            }
        }
    }

    /// Returns the marks of the last screenshot.
    async fn marks(&self) -> Result<Option<ScreenshotInfo>, SessionError> {
        Ok(self.execute(&Command::GetScreenshotInfo).await?.ok().as_ref().and_then(read_screenshot_info))
    }

    /// Returns the tabs of the session.
    pub(crate) async fn tabs(&self) -> Result<Vec<TabInfo>, SessionError> {
        let listed = self.execute(&Command::ListTabs).await?.unwrap_or_default();
        Ok(serde_json::from_value(listed.get("tabs").cloned().unwrap_or_default()).unwrap_or_default())
    }
}

/// Returns whether an error ends the session. A lost response does not: the page shows whether the command ran.
fn is_lost(error: &ClientError) -> bool {
    match error {
        ClientError::ReplayMiss(_) => true,
        ClientError::ResponseLost(_) => false,
        other => other.is_infrastructure(),
    }
}

fn no_such_element(id: &str) -> String {
    format!("there is no element {id} on the screenshot")
}

/// Returns the middle of the first rectangle of a mark.
fn centre(marks: &ScreenshotInfo, id: &str) -> Option<Point> {
    let region = marks.interactive_regions.get(marks.id_mapping.get(id)?.as_str()?)?;
    let region: InteractiveRegion = serde_json::from_value(region.clone()).ok()?;
    let (x, y) = region.rects.first()?.centre();
    Some(Point { x, y })
}
