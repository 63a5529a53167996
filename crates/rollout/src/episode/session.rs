//! The agent's session and eyes: one leased instance, used through the pools, in one round trip where the farm
//! offers it and by the plain calls where it does not.

use std::sync::Arc;

use bytes::Bytes;
use proto::{Command, InteractionMode, page::ScreenshotInfo};
use serde_json::Value;
use tokio::{sync::SemaphorePermit, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{Ending, EpisodeContext};
use crate::run::{
    event::{Event, Stage},
    permits::Operation,
};
use client::{
    farm::{ClientError, Lease, Observation, ObserveOptions, read_screenshot_info},
    http::Deadline,
};

/// What there is to see.
pub(crate) struct Seen {
    pub(crate) picture: Bytes,
    pub(crate) title: String,
    pub(crate) url: String,
    pub(crate) ac_tree: Option<String>,
    pub(crate) text: Option<String>,
}

pub(crate) struct BrowserSession {
    context: Arc<EpisodeContext>,
    index: usize,
    lease: Lease,
    one_trip: bool,
}

/// How long one request stands in the farm's own line before we ask again.
const LINE_SECS: u32 = 30;

/// Why the command, not the farm, failed; `None` when it did not.
type Failure = Option<String>;

impl BrowserSession {
    /// Leases an instance, however long that takes within the task's time.
    pub(crate) async fn allocate(
        context: &Arc<EpisodeContext>,
        index: usize,
        until: Instant,
        cancelled: &CancellationToken,
    ) -> Result<Self, Ending> {
        let deadline = Deadline::at(until);
        let leasing = async {
            let _place = enter(context, Operation::Allocate).await?;
            let key = uuid::Uuid::new_v4().to_string();
            let lifetime = context.settings.lifetime_mins;
            let since = std::time::Instant::now();
            let lease = context.farm.acquire(lifetime, Some(LINE_SECS), &key, deadline).await;
            context
                .announcer
                .announce(&Event::StageTimed { stage: Stage::Allocate, duration: since.elapsed() });
            lease.map_err(|error| {
                context.announcer.announce(&Event::StageFailed {
                    index,
                    stage: Stage::Allocate,
                    reason: error.to_string(),
                });
                match error {
                    ClientError::Full(why) => Ending::NoBrowser(why),
                    other => Ending::Lost(other.to_string()),
                }
            })
        };
        let lease = tokio::select! {
            biased;
            () = cancelled.cancelled() => return Err(Ending::Cancelled),
            () = tokio::time::sleep_until(until) => return Err(Ending::NoBrowser("the task's time was over".into())),
            lease = leasing => lease?,
        };
        if let Some(log) = &context.leases {
            log.record_acquired(&lease);
        }
        let mut session = Self { context: Arc::clone(context), index, lease, one_trip: false };
        match session.context.farm.supports_step(session.deadline()).await {
            Ok(offered) => session.one_trip = offered,
            Err(error) => {
                session.release().await;
                return Err(Ending::Lost(error.to_string()));
            }
        }
        Ok(session)
    }

    fn deadline(&self) -> Deadline {
        // All attempts at an operation and their pauses; one attempt alone is bounded by the client.
        Deadline::after(self.context.settings.operation_timeout * 4)
    }

    fn at(&self, step: usize, stage: Stage) {
        self.context.announcer.announce(&Event::Stage { index: self.index, step, stage });
    }

    /// The viewport, for turning the model's grid into pixels.
    pub(crate) async fn size(&self) -> Result<(u32, u32), Ending> {
        let _place = enter(&self.context, Operation::Metadata).await?;
        let viewport = self.context.farm.metadata(&self.lease, self.deadline()).await.map_err(lost)?;
        Ok((viewport.width, viewport.height))
    }

    /// Opens a page. The inner error is the page's, not the farm's.
    pub(crate) async fn visit(&self, url: &str) -> Result<Result<(), String>, Ending> {
        let _place = enter(&self.context, Operation::Navigate).await?;
        let command = Command::VisitPage { url: url.to_owned() };
        match self.context.farm.execute(&self.lease, &command, self.deadline()).await {
            Ok(_) => Ok(Ok(())),
            Err(error) if is_the_end(&error) => Err(lost(error)),
            // Nothing of the page will ever be seen: an episode on a blank one would blame the agent.
            Err(ClientError::UrlRefused(why)) => Err(Ending::Refused(why)),
            Err(error) => Ok(Err(error.to_string())),
        }
    }

    /// Looks at the page.
    pub(crate) async fn look(&self, step: usize) -> Result<Seen, Ending> {
        if !self.one_trip {
            return self.read(self.look_plainly(step).await?).await;
        }
        let place = enter(&self.context, Operation::Screenshot).await?;
        let observed = self.context.farm.observe(&self.lease, &self.what(), self.deadline()).await;
        drop(place);
        self.read(seen(observed.map_err(lost)?)?).await
    }

    /// Adds the page's text where the model is to get it. A page that cannot be read has none.
    async fn read(&self, mut seen: Seen) -> Result<Seen, Ending> {
        let n_lines = self.context.settings.page_text_lines;
        if n_lines == 0 {
            return Ok(seen);
        }
        let _place = enter(&self.context, Operation::PageMetadata).await?;
        let command = Command::GetWebpageText { n_lines };
        seen.text = match self.context.farm.execute(&self.lease, &command, self.deadline()).await {
            Ok(answer) => answer.get("text").and_then(Value::as_str).map(str::to_owned),
            Err(error) if is_the_end(&error) => return Err(lost(error)),
            Err(_) => None,
        };
        Ok(seen)
    }

    /// Carries out a command, then looks. A command that failed leaves a page to look at all the same.
    pub(crate) async fn act(&self, step: usize, command: &Command) -> Result<(Failure, Seen), Ending> {
        let place = enter(&self.context, Operation::Execute).await?;
        if self.one_trip {
            let observed = self.context.farm.step(&self.lease, command, &self.what(), self.deadline()).await;
            return match observed {
                Ok(observed) => {
                    drop(place);
                    let failure = observed.failure.as_ref().map(ToString::to_string);
                    Ok((failure, self.read(seen(observed)?).await?))
                }
                Err(error) if is_the_end(&error) => Err(lost(error)),
                Err(error) => {
                    drop(place);
                    Ok((Some(error.to_string()), self.look(step).await?))
                }
            };
        }
        let failure = match self.context.farm.execute(&self.lease, command, self.deadline()).await {
            Ok(_) => None,
            Err(error) if is_the_end(&error) => return Err(lost(error)),
            Err(error) => Some(error.to_string()),
        };
        drop(place);
        Ok((failure, self.read(self.look_plainly(step).await?).await?))
    }

    fn what(&self) -> ObserveOptions {
        let mode = self.context.settings.prompting.mode;
        ObserveOptions {
            ac_tree: mode == InteractionMode::SetOfMarks,
            rects: false,
            ..ObserveOptions::whole(mode)
        }
    }

    /// By the plain calls, each through the pool of its kind.
    async fn look_plainly(&self, step: usize) -> Result<Seen, Ending> {
        let (farm, mode) = (&self.context.farm, self.context.settings.prompting.mode);
        self.at(step, Stage::Screenshot);
        let place = enter(&self.context, Operation::Screenshot).await?;
        let picture = farm.screenshot(&self.lease, mode, self.deadline()).await.map_err(lost)?;
        drop(place);
        let mut ac_tree = None;
        if mode == InteractionMode::SetOfMarks {
            self.at(step, Stage::AcTree);
            let _place = enter(&self.context, Operation::AcTree).await?;
            let info = farm
                .execute(&self.lease, &Command::GetScreenshotInfo, self.deadline())
                .await
                .map_err(lost)?;
            ac_tree = read_screenshot_info(&info).as_ref().map(ScreenshotInfo::ac_tree);
        }
        self.at(step, Stage::Metadata);
        let _place = enter(&self.context, Operation::PageMetadata).await?;
        let metadata = farm.page_metadata(&self.lease, self.deadline()).await.map_err(lost)?;
        Ok(Seen { picture, title: metadata.title, url: metadata.url, ac_tree, text: None })
    }

    /// Gives the instance back. What cannot be given back runs out by itself.
    pub(crate) async fn release(self) {
        let _place = self.context.permits.acquire(Operation::Release).await;
        let since = std::time::Instant::now();
        let given = self.context.farm.release(&self.lease, self.deadline()).await;
        self.context
            .announcer
            .announce(&Event::StageTimed { stage: Stage::Release, duration: since.elapsed() });
        // An instance that the farm does not know any more is as good as given back.
        let ours_no_more = match &given {
            Ok(()) => true,
            Err(error) => matches!(error, ClientError::InvalidInstance(_) | ClientError::InstanceLost(_)),
        };
        if let Err(error) = given {
            tracing::debug!(%error, lease = self.lease.instance_id, "an instance could not be given back");
        }
        if let Some(log) = self.context.leases.as_ref().filter(|_| ours_no_more) {
            log.record_released(&self.lease);
        }
    }
}

fn seen(observed: Observation) -> Result<Seen, Ending> {
    let picture = observed.screenshot.ok_or_else(|| Ending::Lost("the farm sent no picture".into()))?;
    let metadata = observed.metadata.ok_or_else(|| Ending::Lost("the farm sent no metadata".into()))?;
    Ok(Seen {
        picture: picture.data,
        title: metadata.title,
        url: metadata.url,
        ac_tree: observed.ac_tree,
        text: None,
    })
}

/// A lost answer is no lost browser: whether the command was carried out shows on the page.
fn is_the_end(error: &ClientError) -> bool {
    error.is_infrastructure() && !matches!(error, ClientError::AnswerLost(_))
}

fn lost(error: ClientError) -> Ending {
    Ending::Lost(error.to_string())
}

async fn enter(context: &EpisodeContext, operation: Operation) -> Result<SemaphorePermit<'_>, Ending> {
    let place = context.permits.acquire(operation).await;
    place.ok_or_else(|| Ending::Lost(format!("no place in the {operation:?} pool came free in time")))
}
