//! One tenancy: the instance that belongs to exactly one lease, from `/get` to its end. A stale client can only
//! ever reach its own old tenancy, never the next tenant's.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Arc, Mutex as StdMutex, PoisonError},
    time::{Duration, Instant},
};

use browser::{BrowserError, Instance, Observation, ObserveRequest, Screenshot, Settled, StepResult};
use proto::{Command, InstanceId};
use serde_json::Value;
use tokio::sync::{Mutex, oneshot};
use tokio_util::sync::CancellationToken;

use crate::{error::FarmError, tasks::Tasks};

/// What a client may ask of its instance.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    Execute(Command),
    Observe(ObserveRequest),
    Step {
        command: Command,
        observe: ObserveRequest,
    },
    /// A step whose command may not be carried out: look, and say why not.
    Refused {
        why: BrowserError,
        observe: ObserveRequest,
    },
    Size,
    Probe,
}

impl Operation {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Execute(command) => command.name(),
            Self::Observe(request) if request.screenshot && !request.metadata => "screenshot",
            Self::Observe(_) => "observe",
            Self::Step { .. } | Self::Refused { .. } => "step",
            Self::Size => "metadata",
            Self::Probe => "probe",
        }
    }
}

/// What came of it.
#[derive(Debug)]
pub(crate) enum Outcome {
    Answer(Value),
    Size(u32, u32),
    Alive,
    Seen(Box<Seen>),
}

/// An observation, and for a step what the command did.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) result: Option<Result<Value, BrowserError>>,
    pub(crate) settled: Option<Settled>,
    pub(crate) observation: Observation,
    /// The picture has the same bytes as the last one this lease was given.
    pub(crate) unchanged: bool,
}

pub(crate) struct Tenancy {
    id: InstanceId,
    lifetime: Duration,
    last_used: StdMutex<Instant>,
    since: Instant,
    ended: CancellationToken,
    inside: Arc<Mutex<Inside>>,
}

struct Inside {
    instance: Option<Instance>,
    last_picture: Option<u64>,
}

const DISPOSE_LIMIT: Duration = Duration::from_secs(10);

impl Tenancy {
    pub(crate) fn new(id: InstanceId, instance: Instance, lifetime: Duration) -> Self {
        let now = Instant::now();
        Self {
            id,
            lifetime,
            last_used: StdMutex::new(now),
            since: now,
            ended: CancellationToken::new(),
            inside: Arc::new(Mutex::new(Inside { instance: Some(instance), last_picture: None })),
        }
    }

    pub(crate) fn id(&self) -> &InstanceId {
        &self.id
    }

    pub(crate) fn age(&self) -> Duration {
        self.since.elapsed()
    }

    fn touch(&self) {
        *self.last_used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Nobody has asked anything of it for its lifetime. Something still running counts as asking.
    pub(crate) fn expired(&self, now: Instant) -> bool {
        let last = *self.last_used.lock().unwrap_or_else(PoisonError::into_inner);
        now.saturating_duration_since(last) > self.lifetime && self.inside.try_lock().is_ok()
    }

    /// Why its page is gone, when that can be told without waiting.
    pub(crate) fn lost(&self) -> Option<String> {
        let inside = self.inside.try_lock().ok()?;
        inside.instance.as_ref()?.lost_reason().map(|reason| reason.to_string())
    }

    /// One operation at a time, in the order they came; all end at once when the lease does. Once begun, an
    /// operation is finished also when its client hangs up: half a click or a key held down would meet the client
    /// again in its next request. One that has not begun by then never does.
    pub(crate) async fn perform(
        self: &Arc<Self>,
        operation: Operation,
        tasks: &Tasks,
    ) -> Result<Outcome, FarmError> {
        self.touch();
        let mut inside = tokio::select! {
            biased;
            () = self.ended.cancelled() => return Err(FarmError::InvalidInstance),
            inside = Arc::clone(&self.inside).lock_owned() => inside,
        };
        let tenancy = Arc::clone(self);
        let (tell, told) = oneshot::channel();
        tasks.spawn("operation", async move {
            let outcome = tokio::select! {
                biased;
                () = tenancy.ended.cancelled() => Err(FarmError::InvalidInstance),
                outcome = inside.perform(operation) => outcome,
            };
            tenancy.touch();
            drop(inside);
            let _ = tell.send(outcome);
        });
        told.await.unwrap_or_else(|_| Err(FarmError::Internal("a bug in webgym ended this operation".into())))
    }

    /// Ends the tenancy: whatever runs is cut off, and the instance goes with all it held.
    pub(crate) async fn end(&self) {
        self.ended.cancel();
        let Some(instance) = self.inside.lock().await.instance.take() else { return };
        if let Ok(Err(error)) = tokio::time::timeout(DISPOSE_LIMIT, instance.dispose()).await {
            tracing::debug!(%error, "an instance could not be disposed of; its browser is gone");
        }
    }
}

impl Inside {
    async fn perform(&mut self, operation: Operation) -> Result<Outcome, FarmError> {
        let instance = self.instance.as_mut().ok_or(FarmError::InvalidInstance)?;
        Ok(match operation {
            Operation::Execute(command) => Outcome::Answer(instance.execute(&command).await?),
            Operation::Size => {
                let (width, height) = instance.size().await?;
                Outcome::Size(width, height)
            }
            Operation::Probe => {
                instance.probe().await?;
                Outcome::Alive
            }
            Operation::Observe(request) => self.look(&request, None).await?,
            Operation::Refused { why, observe } => self.look(&observe, Some(Err(why))).await?,
            Operation::Step { command, observe } => {
                let StepResult { result, settled, observation } = instance.step(&command, &observe).await?;
                self.seen(observation, Some(result), settled)
            }
        })
    }

    async fn look(
        &mut self,
        request: &ObserveRequest,
        result: Option<Result<Value, BrowserError>>,
    ) -> Result<Outcome, FarmError> {
        let instance = self.instance.as_mut().ok_or(FarmError::InvalidInstance)?;
        let observation = instance.observe(request).await?;
        Ok(self.seen(observation, result, None))
    }

    fn seen(
        &mut self,
        observation: Observation,
        result: Option<Result<Value, BrowserError>>,
        settled: Option<Settled>,
    ) -> Outcome {
        let unchanged = self.compare(observation.screenshot.as_ref());
        Outcome::Seen(Box::new(Seen { result, settled, observation, unchanged }))
    }

    fn compare(&mut self, screenshot: Option<&Screenshot>) -> bool {
        let Some(screenshot) = screenshot else { return false };
        let mut hasher = DefaultHasher::new();
        screenshot.bytes.hash(&mut hasher);
        let hash = Some(hasher.finish());
        std::mem::replace(&mut self.last_picture, hash) == hash
    }
}
