//! The client-side handle of a leased browser. Observes and acts in one request where the farm supports it, otherwise with
//! one request per part, each under the permits of its operation.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use client::{
    farm::{CdpUrl, ClientError, GrantedLease, Lease, Observation, ObserveOptions, read_screenshot_info},
    http::Deadline,
};
use proto::{
    Command, InteractionMode, SessionOptions,
    network::{NetworkOptions, NetworkSummary, OnMiss},
    page::ScreenshotInfo,
    trajectory::Task,
};
use serde_json::Value;
use tokio::{sync::SemaphorePermit, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{Ending, EpisodeContext, recording};
use crate::{
    judge::program::FarmPage,
    run::{
        event::{Event, Stage},
        permits::Operation,
    },
};

/// How long one request may wait in the farm's queue before it is sent again.
const QUEUE_WAIT_SECS: u32 = 30;

/// Leases are renewed at most this often.
const MIN_RENEWAL_INTERVAL: Duration = Duration::from_secs(5);

/// How long fetching and writing a recording may take.
const RECORDING_TIMEOUT: Duration = Duration::from_secs(60);

/// How long reading the network report may take.
const REPORT_TIMEOUT: Duration = Duration::from_secs(30);

/// The page as the agent gets it.
pub(super) struct PageObservation {
    pub(super) screenshot: Bytes,
    pub(super) title: String,
    pub(super) url: String,
    pub(super) ac_tree: Option<String>,
    pub(super) text: Option<String>,
}

pub(crate) struct BrowserSession {
    context: Arc<EpisodeContext>,
    index: usize,
    lease: Lease,
    cdp_url: Option<CdpUrl>,
    /// The farm records the session.
    is_recorded: bool,
    /// How the farm records or replays the session's network traffic.
    network: Option<NetworkOptions>,
    /// The lease's node supports `/step` and `/observe`, as far as is known.
    supports_step: bool,
}

/// Why a command failed although the farm works; `None` when it succeeded.
type CommandFailure = Option<String>;

impl BrowserSession {
    /// Acquires a lease, waiting until `until` at most. A replay has the session name and the seed of the attempt with the
    /// trajectory index `replayed`.
    pub(crate) async fn acquire(
        context: &Arc<EpisodeContext>,
        task: &Task,
        replayed: i64,
        until: Instant,
        cancelled: &CancellationToken,
    ) -> Result<Self, Ending> {
        let index = usize::try_from(task.trajectory_index).unwrap_or(0);
        let lease = tokio::select! {
            biased;
            () = cancelled.cancelled() => return Err(Ending::Cancelled),
            () = tokio::time::sleep_until(until) => return Err(Ending::NoBrowser("the task's time was over".into())),
            lease = acquire_lease(context, task, replayed, Deadline::at(until)) => lease?,
        };
        let (GrantedLease { lease, live_url, cdp_url }, options) = lease;
        context.announcer.announce(&Event::BrowserChanged { index, live_url });
        if let Some(log) = &context.leases {
            log.record_acquired(&lease);
        }
        let mut session = Self {
            context: Arc::clone(context),
            index,
            lease,
            cdp_url,
            is_recorded: options.record == Some(true),
            network: options.network,
            supports_step: false,
        };
        match session.context.farm.supports_step(session.deadline()).await {
            Ok(is_supported) => session.supports_step = is_supported && context.farm.has_step(&session.lease),
            Err(error) => {
                session.release().await;
                return Err(Ending::Lost(error.to_string()));
            }
        }
        Ok(session)
    }

    /// Limits all attempts of an operation together; the client limits each attempt.
    pub(super) fn deadline(&self) -> Deadline {
        Deadline::after(self.context.settings.operation_timeout * 4)
    }

    /// Returns the page for scripts and checks.
    pub(super) fn judged_page(&self, deadline: Deadline) -> FarmPage<'_> {
        FarmPage { farm: &self.context.farm, lease: &self.lease, cdp_url: self.cdp_url.as_ref(), deadline }
    }

    /// Waits for `work`, which does not use the browser and may take long, and keeps the lease alive meanwhile.
    pub(super) async fn keep_alive<T>(&self, work: impl Future<Output = T>) -> T {
        let lifetime = Duration::from_secs(u64::from(self.context.settings.lifetime_mins) * 60);
        // If this fails, so does the next action, which reports the reason.
        let renew = || async { drop(self.context.farm.metadata(&self.lease, self.deadline()).await) };
        with_renewals(work, lifetime / 3, renew).await
    }

    fn announce_stage(&self, step: usize, stage: Stage) {
        self.context.announcer.announce(&Event::Stage { index: self.index, step, stage });
    }

    async fn permit(&self, operation: Operation) -> Result<SemaphorePermit<'_>, Ending> {
        permit(&self.context, operation).await
    }

    async fn execute(&self, command: &Command) -> Result<Value, ClientError> {
        self.context.farm.execute(&self.lease, command, self.deadline()).await
    }

    /// Returns width and height of the viewport, which convert the model's coordinates to pixels.
    pub(crate) async fn viewport(&self) -> Result<(u32, u32), Ending> {
        let _permit = self.permit(Operation::Metadata).await?;
        let viewport = self.context.farm.metadata(&self.lease, self.deadline()).await.map_err(lost)?;
        Ok((viewport.width, viewport.height))
    }

    /// Opens a page. The inner error means that the page did not load.
    pub(crate) async fn visit(&self, url: &str) -> Result<Result<(), String>, Ending> {
        let _permit = self.permit(Operation::Navigate).await?;
        match self.execute(&Command::VisitPage { url: url.to_owned() }).await {
            Ok(_) => Ok(Ok(())),
            Err(error) if is_session_lost(&error) => Err(lost(error)),
            // The page can never be shown; an episode on a blank page would count against the agent.
            Err(ClientError::UrlRefused(reason)) => Err(Ending::Refused(reason)),
            Err(error) => Ok(Err(error.to_string())),
        }
    }

    pub(super) async fn observe(&self, step: usize) -> Result<PageObservation, Ending> {
        if !self.supports_step {
            return self.add_page_text(self.observe_in_parts(step).await?).await;
        }
        let permit = self.permit(Operation::Screenshot).await?;
        let farm = &self.context.farm;
        let observation = farm.observe(&self.lease, &self.observe_options(), self.deadline()).await;
        drop(permit);
        self.add_page_text(page_of(observation.map_err(lost)?)?).await
    }

    /// Runs a command, then observes the page, even when the command failed.
    pub(super) async fn act(
        &self,
        step: usize,
        command: &Command,
    ) -> Result<(CommandFailure, PageObservation), Ending> {
        let permit = self.permit(Operation::Execute).await?;
        if !self.supports_step {
            let failure = match self.execute(command).await {
                Ok(_) => None,
                Err(error) if is_session_lost(&error) => return Err(lost(error)),
                Err(error) => Some(error.to_string()),
            };
            drop(permit);
            let page = self.observe_in_parts(step).await?;
            return Ok((failure, self.add_page_text(page).await?));
        }
        let farm = &self.context.farm;
        match farm.step(&self.lease, command, &self.observe_options(), self.deadline()).await {
            Ok(Observation { failure: Some(error @ ClientError::ReplayMiss(_)), .. }) => Err(lost(error)),
            Ok(observation) => {
                drop(permit);
                let failure = observation.failure.as_ref().map(ToString::to_string);
                Ok((failure, self.add_page_text(page_of(observation)?).await?))
            }
            Err(error) if is_session_lost(&error) => Err(lost(error)),
            Err(error) => {
                drop(permit);
                Ok((Some(error.to_string()), self.observe(step).await?))
            }
        }
    }

    /// Runs a command without observing the page.
    pub(super) async fn try_execute(&self, command: &Command) -> Result<CommandFailure, Ending> {
        let _permit = self.permit(Operation::Execute).await?;
        match self.execute(command).await {
            Ok(_) => Ok(None),
            Err(error) if is_session_lost(&error) => Err(lost(error)),
            Err(error) => Ok(Some(error.to_string())),
        }
    }

    fn observe_options(&self) -> ObserveOptions {
        let settings = &self.context.settings;
        ObserveOptions {
            format: settings.screenshot_format,
            ..ObserveOptions::for_step(settings.prompting.mode)
        }
    }

    /// Adds the page's text if the model gets it. A page whose text cannot be read has none.
    async fn add_page_text(&self, mut page: PageObservation) -> Result<PageObservation, Ending> {
        let n_lines = self.context.settings.page_text_lines;
        if n_lines == 0 {
            return Ok(page);
        }
        let _permit = self.permit(Operation::PageMetadata).await?;
        page.text = match self.execute(&Command::GetWebpageText { n_lines }).await {
            Ok(body) => body.get("text").and_then(Value::as_str).map(str::to_owned),
            Err(error) if is_session_lost(&error) => return Err(lost(error)),
            Err(_) => None,
        };
        Ok(page)
    }

    /// Observes the page with one request per part.
    async fn observe_in_parts(&self, step: usize) -> Result<PageObservation, Ending> {
        let (farm, mode) = (&self.context.farm, self.context.settings.prompting.mode);
        self.announce_stage(step, Stage::Screenshot);
        let permit = self.permit(Operation::Screenshot).await?;
        let screenshot = farm.screenshot(&self.lease, mode, self.deadline()).await.map_err(lost)?;
        drop(permit);
        let mut ac_tree = None;
        if mode == InteractionMode::SetOfMarks {
            self.announce_stage(step, Stage::AcTree);
            let _permit = self.permit(Operation::AcTree).await?;
            let info = self.execute(&Command::GetScreenshotInfo).await.map_err(lost)?;
            ac_tree = read_screenshot_info(&info).as_ref().map(ScreenshotInfo::ac_tree);
        }
        self.announce_stage(step, Stage::Metadata);
        let _permit = self.permit(Operation::PageMetadata).await?;
        let metadata = farm.page_metadata(&self.lease, self.deadline()).await.map_err(lost)?;
        Ok(PageObservation { screenshot, title: metadata.title, url: metadata.url, ac_tree, text: None })
    }

    /// Saves the recording of the session, if there is one, beside the screenshots. The episode does not depend on it.
    pub(crate) async fn save_recording(&self, folder: &Path, screenshot_times: &[SystemTime]) {
        if !self.is_recorded {
            return;
        }
        let deadline = Deadline::after(RECORDING_TIMEOUT);
        if let Err(reason) =
            recording::save(&self.context.farm, &self.lease, folder, screenshot_times, deadline).await
        {
            tracing::warn!(index = self.index, reason, "cannot save the recording of an episode");
        }
    }

    /// Returns whether a request that the archive lacks ends the session.
    pub(crate) fn fails_on_miss(&self) -> bool {
        let replay = self.network.as_ref().filter(|network| network.replay.is_some());
        replay.is_some_and(|network| network.on_miss.unwrap_or_default() == OnMiss::Fail)
    }

    /// Asks what was recorded or replayed. The episode does not depend on it.
    pub(crate) async fn network_summary(&self) -> Option<NetworkSummary> {
        self.network.as_ref()?;
        match self.context.farm.network(&self.lease, Deadline::after(REPORT_TIMEOUT)).await {
            Ok(report) => Some(NetworkSummary::of(report)),
            Err(error) => {
                tracing::warn!(index = self.index, %error, "cannot read the network report of an episode");
                None
            }
        }
    }

    /// Releases the lease. If that fails, the lease expires on the farm.
    pub(crate) async fn release(self) {
        self.context.announcer.announce(&Event::BrowserChanged { index: self.index, live_url: None });
        let _permit = self.context.permits.acquire(Operation::Release).await;
        let since = std::time::Instant::now();
        let released = self.context.farm.release(&self.lease, self.deadline()).await;
        let event = Event::StageTimed { stage: Stage::Release, duration: since.elapsed() };
        self.context.announcer.announce(&event);
        // A lease that the farm no longer knows counts as released.
        let is_gone = match &released {
            Ok(()) => true,
            Err(error) => matches!(error, ClientError::InvalidInstance(_) | ClientError::InstanceLost(_)),
        };
        if let Err(error) = released {
            tracing::debug!(%error, lease = self.lease.instance_id, "cannot release a lease");
        }
        if let Some(log) = self.context.leases.as_ref().filter(|_| is_gone) {
            log.record_released(&self.lease);
        }
    }
}

/// Waits for `work` and calls `renew` at this interval until it is done.
async fn with_renewals<T, R: Future<Output = ()>>(
    work: impl Future<Output = T>,
    interval: Duration,
    renew: impl Fn() -> R,
) -> T {
    let renewals = async {
        loop {
            tokio::time::sleep(interval.max(MIN_RENEWAL_INTERVAL)).await;
            renew().await;
        }
    };
    tokio::select! {
        biased;
        done = work => done,
        () = renewals => unreachable!("renewals never end"),
    }
}

async fn acquire_lease(
    context: &EpisodeContext,
    task: &Task,
    replayed: i64,
    deadline: Deadline,
) -> Result<(GrantedLease, SessionOptions), Ending> {
    let index = usize::try_from(task.trajectory_index).unwrap_or(0);
    let options = context.sessions.options_as(task, replayed).map_err(Ending::Lost)?;
    let _permit = permit(context, Operation::Allocate).await?;
    let key = uuid::Uuid::new_v4().to_string();
    let lifetime = context.settings.lifetime_mins;
    let since = std::time::Instant::now();
    let lease = context.farm.acquire(lifetime, Some(QUEUE_WAIT_SECS), &key, &options, deadline).await;
    context.announcer.announce(&Event::StageTimed { stage: Stage::Allocate, duration: since.elapsed() });
    lease.map(|lease| (lease, options)).map_err(|error| {
        let reason = error.to_string();
        context.announcer.announce(&Event::StageFailed { index, stage: Stage::Allocate, reason });
        match error {
            ClientError::Full(reason) => Ending::NoBrowser(reason),
            other => Ending::Lost(other.to_string()),
        }
    })
}

fn page_of(observation: Observation) -> Result<PageObservation, Ending> {
    let missing = |part: &str| Ending::Lost(format!("the farm sent no {part}"));
    let screenshot = observation.screenshot.ok_or_else(|| missing("screenshot"))?;
    let metadata = observation.metadata.ok_or_else(|| missing("metadata"))?;
    Ok(PageObservation {
        screenshot: screenshot.data,
        title: metadata.title,
        url: metadata.url,
        ac_tree: observation.ac_tree,
        text: None,
    })
}

/// Returns whether an error ends the session. A lost response does not: the page shows whether the command ran.
fn is_session_lost(error: &ClientError) -> bool {
    match error {
        ClientError::ReplayMiss(_) => true,
        ClientError::ResponseLost(_) => false,
        other => other.is_infrastructure(),
    }
}

// By value, so that it can be passed to `map_err`.
#[allow(clippy::needless_pass_by_value)]
fn lost(error: ClientError) -> Ending {
    match error {
        ClientError::PageTimeout(reason) => Ending::Unresponsive(reason),
        ClientError::ReplayMiss(reason) => Ending::ReplayMiss(reason),
        other => Ending::Lost(other.to_string()),
    }
}

async fn permit(context: &EpisodeContext, operation: Operation) -> Result<SemaphorePermit<'_>, Ending> {
    let permit = context.permits.acquire(operation).await;
    permit.ok_or_else(|| Ending::Lost(format!("no {operation:?} permit became free in time")))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn lease_is_renewed_while_nothing_uses_the_browser() {
        let renewed = AtomicUsize::new(0);
        let renew = || {
            renewed.fetch_add(1, Ordering::Relaxed);
            std::future::ready(())
        };
        let wait = |seconds| tokio::time::sleep(Duration::from_secs(seconds));
        with_renewals(wait(19), Duration::from_secs(20), renew).await;
        assert_eq!(renewed.load(Ordering::Relaxed), 0);
        with_renewals(wait(65), Duration::from_secs(20), renew).await;
        assert_eq!(renewed.load(Ordering::Relaxed), 3);
    }
}
