//! What all sessions of a server share: the farm, the tasks, the judge, and the limits. Starts episodes.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use client::{
    farm::{ClientError, FarmClient, ObserveOptions},
    http::Deadline,
};
use proto::{ImageFormat, InteractionMode};
use rollout::{
    judge::Judge,
    run::event::{Announcer, Stage},
    session_options::SessionSource,
};
use store::IterationId;
use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    browser_session::{BrowserSession, SessionError},
    catalog::{ChosenTask, TaskCatalog},
    episode::{Episode, EpisodeStart, StartedEpisode},
    error::EnvError,
    held_lease::{HeldLease, LeaseRequest},
    metrics::EnvMetrics,
    openenv::{RequestedScreenshot, ResetRequest},
    progress::Progress,
    recorder::{RecordError, Recorder, Recording},
    screenshot_files::ScreenshotFiles,
};

/// How often the start of an episode is tried again on another browser.
const MAX_START_RETRIES: u32 = 2;

/// The settings of an environment.
pub struct EnvOptions {
    pub farm: FarmClient,
    pub tasks: TaskCatalog,
    pub judge: Judge,
    pub sessions: SessionSource,
    pub mode: InteractionMode,
    /// The format of screenshots for clients that do not choose one; `None` sends no screenshots.
    pub screenshot: Option<ImageFormat>,
    /// Episodes at the same time.
    pub max_sessions: usize,
    /// How long a reset waits for a free session.
    pub queue_timeout: Duration,
    /// Ends a session whose client sends nothing for this long.
    pub idle_timeout: Duration,
    /// Limits one browser operation, with all its attempts.
    pub operation_timeout: Duration,
    pub lifetime_mins: u32,
    /// Where screenshots are kept for judges that look at them; `None` if the judge does not.
    pub screenshot_folder: Option<PathBuf>,
    /// Saves the episodes.
    pub recorder: Option<Recorder>,
    /// Hears what happens in the episodes.
    pub announcer: Announcer,
}

/// Starts episodes for the sessions of a server.
pub struct Environment {
    options: EnvOptions,
    permits: Arc<Semaphore>,
    /// Leases that are being acquired or released.
    leases: TaskTracker,
    draining: CancellationToken,
    /// Episodes so far.
    episodes: AtomicUsize,
    pub(crate) metrics: EnvMetrics,
}

impl Environment {
    pub fn new(options: EnvOptions) -> Self {
        let permits = Arc::new(Semaphore::new(options.max_sessions));
        Self {
            options,
            permits,
            leases: TaskTracker::new(),
            draining: CancellationToken::new(),
            episodes: AtomicUsize::new(0),
            metrics: EnvMetrics::default(),
        }
    }

    pub(crate) const fn judge(&self) -> &Judge {
        &self.options.judge
    }

    pub(crate) const fn tasks(&self) -> &TaskCatalog {
        &self.options.tasks
    }

    pub(crate) const fn idle_timeout(&self) -> Duration {
        self.options.idle_timeout
    }

    /// Returns how many episodes hold a browser.
    pub fn active_sessions(&self) -> usize {
        self.options.max_sessions.saturating_sub(self.permits.available_permits())
    }

    /// Starts no more episodes; running ones go on.
    pub(crate) fn set_draining(&self) {
        self.draining.cancel();
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.is_cancelled()
    }

    /// Waits until every episode has released its browser.
    pub(crate) async fn wait_until_idle(&self) {
        let max = u32::try_from(self.options.max_sessions).unwrap_or(u32::MAX);
        let _all = self.permits.acquire_many(max).await;
    }

    /// Waits until every lease is released. Call it after the last session has ended.
    pub(crate) async fn wait_for_releases(&self) {
        self.leases.close();
        self.leases.wait().await;
    }

    /// Returns whether the farm answers.
    pub(crate) async fn is_farm_reachable(&self, timeout: Duration) -> bool {
        self.options.farm.info(Deadline::after(timeout)).await.is_ok()
    }

    /// Starts the episode that a client asks for. Waits for a free session up to the limit.
    pub(crate) async fn start_episode(&self, request: ResetRequest) -> Result<Episode, EnvError> {
        let chosen = self.options.tasks.choose(&request.task)?;
        let index = self.episodes.fetch_add(1, Ordering::Relaxed);
        let mut progress = Progress::begin(&self.options.announcer, index, &chosen.task);
        match self.start_with_retries(&request, &chosen, &mut progress).await {
            Ok(start) => {
                self.metrics.record_reset();
                progress.enter(Stage::Policy);
                Ok(start.into_episode(progress))
            }
            Err(error) => {
                progress.fail(&error);
                Err(error)
            }
        }
    }

    async fn start_with_retries(
        &self,
        request: &ResetRequest,
        chosen: &ChosenTask,
        progress: &mut Progress,
    ) -> Result<StartedEpisode, EnvError> {
        let deadline = Deadline::after(self.options.queue_timeout);
        let mut retries = 0;
        loop {
            match self.try_start(request, chosen.clone(), deadline, progress).await {
                Err(StartError::Lost(reason)) if retries < MAX_START_RETRIES => {
                    retries += 1;
                    tracing::debug!(reason, "an episode is started again on another browser");
                    progress.retry(retries, &reason);
                }
                Err(StartError::Lost(reason)) => return Err(EnvError::Start(reason)),
                Err(StartError::Permanent(error)) => return Err(error),
                Ok(started) => return Ok(started),
            }
        }
    }

    async fn try_start(
        &self,
        request: &ResetRequest,
        mut chosen: ChosenTask,
        deadline: Deadline,
        progress: &mut Progress,
    ) -> Result<StartedEpisode, StartError> {
        let held = self.lease(&chosen, deadline).await?;
        progress.open_page(held.live_url());
        let mode = request.mode.unwrap_or(self.options.mode);
        let format = match request.screenshot {
            None => self.options.screenshot,
            Some(RequestedScreenshot::None) => None,
            Some(RequestedScreenshot::Format(format)) => Some(format),
        };
        let keeps_files = self.options.screenshot_folder.is_some() || self.options.recorder.is_some();
        let options = ObserveOptions {
            // Judges read the files of screenshots as PNG.
            format: format.filter(|_| !keeps_files).unwrap_or(ImageFormat::Png),
            screenshot: format.is_some() || keeps_files,
            ..ObserveOptions::for_step(mode)
        };
        let browser = BrowserSession::open(held, options, self.options.operation_timeout).await?;
        let id = request.episode_id.clone().unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
        let (screenshots, recording) =
            self.open_files(&mut chosen, progress.index()).await.map_err(StartError::Permanent)?;
        let (sends_screenshot, tasks) = (format.is_some(), self.leases.clone());
        let start = EpisodeStart { id, chosen, mode, screenshots, recording, sends_screenshot, tasks };
        Ok(start.open(browser).await?)
    }

    /// Opens the files of an episode, if it has any.
    async fn open_files(
        &self,
        chosen: &mut ChosenTask,
        index: usize,
    ) -> Result<(ScreenshotFiles, Option<Recording>), EnvError> {
        if let Some(recorder) = &self.options.recorder {
            let recording = recorder.begin(&chosen.split, &mut chosen.task).await;
            let recording = recording.map_err(|error| EnvError::Disk(error.to_string()))?;
            return Ok((ScreenshotFiles::recorded(recording.screenshots().clone()), Some(recording)));
        }
        let Some(folder) = &self.options.screenshot_folder else {
            return Ok((ScreenshotFiles::none(), None));
        };
        Ok((ScreenshotFiles::temporary(folder, index).await?, None))
    }

    /// Writes the files of saved episodes. Returns the iterations that have episodes.
    pub(crate) async fn finish_recording(&self) -> Result<Vec<IterationId>, RecordError> {
        match &self.options.recorder {
            Some(recorder) => recorder.finish().await,
            None => Ok(Vec::new()),
        }
    }

    /// Waits for a free session, then for a lease of the farm.
    async fn lease(&self, chosen: &ChosenTask, deadline: Deadline) -> Result<HeldLease, StartError> {
        if self.is_draining() {
            return Err(StartError::Permanent(EnvError::Draining));
        }
        let full = || {
            let max_sessions = self.options.max_sessions;
            StartError::Permanent(EnvError::Capacity {
                active_sessions: self.active_sessions(),
                max_sessions,
            })
        };
        let waiting = self.metrics.count_waiting();
        let permit = tokio::select! {
            permit = Arc::clone(&self.permits).acquire_owned() => permit.map_err(|_| full())?,
            () = tokio::time::sleep_until(deadline.instant()) => return Err(full()),
            () = self.draining.cancelled() => return Err(StartError::Permanent(EnvError::Draining)),
        };
        let options = self.options.sessions.options(&chosen.task);
        let options = options.map_err(|reason| StartError::Permanent(EnvError::Start(reason)))?;
        let request = LeaseRequest {
            farm: self.options.farm.clone(),
            lifetime_mins: self.options.lifetime_mins,
            options,
            releases: self.leases.clone(),
            permit,
            deadline,
        };
        let held = HeldLease::acquire(request).await;
        drop(waiting);
        held.map_err(|error| match error {
            ClientError::Full(_) => full(),
            ClientError::Auth(_) | ClientError::BadRequest(_) => {
                StartError::Permanent(EnvError::Start(error.to_string()))
            }
            other => StartError::Lost(other.to_string()),
        })
    }
}

/// Why an episode did not start.
enum StartError {
    /// Another browser may work.
    Lost(String),
    Permanent(EnvError),
}

impl From<SessionError> for StartError {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Lost(reason) => Self::Lost(reason),
            SessionError::Refused(reason) | SessionError::ReplayMiss(reason) => {
                Self::Permanent(EnvError::Start(reason))
            }
        }
    }
}
