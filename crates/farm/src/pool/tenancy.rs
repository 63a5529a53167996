//! A tenancy: the instance that belongs to exactly one lease, from `/get` to its end. A client with a stale id can
//! only reach its own ended tenancy, never that of the next tenant.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::{
        Arc, Mutex as StdMutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use browser::{
    BrowserError, Instance, Observation, ObserveRequest, Screenshot, Settled, StepResult, TenantBrowser,
};
use proto::{InstanceId, SessionOptions};
use serde_json::{Value, json};
use tokio::sync::{Mutex, oneshot};
use tokio_util::sync::CancellationToken;

use super::{
    computer,
    history::{Begun, History},
    network::LeaseNetwork,
    operation::{ObserveResult, Operation, OperationResult, Replaced},
    operation_gate::OperationGate,
    viewers::Viewers,
};
use crate::{access::LeaseSecrets, error::ApiError, recording::Recorder, tasks::Tasks, traffic::Traffic};

/// The use of a lease at a moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeaseUsage {
    pub(crate) age: Duration,
    pub(crate) unused: Duration,
    pub(crate) lifetime: Duration,
    /// An operation runs.
    pub(crate) is_acting: bool,
    pub(crate) cdp_connections: usize,
    pub(crate) viewers: usize,
    pub(crate) controllers: usize,
}

pub(crate) struct Tenancy {
    id: InstanceId,
    group: usize,
    lifetime: Duration,
    last_used: StdMutex<Instant>,
    started: Instant,
    ended: CancellationToken,
    session: Arc<Mutex<Session>>,
    secrets: LeaseSecrets,
    /// What CDP clients and viewers use of the browser, and whether they have.
    browser: StdMutex<TenantBrowser>,
    is_shared: AtomicBool,
    /// Open CDP connections.
    sockets: AtomicUsize,
    viewers: Viewers,
    recorder: StdMutex<Option<Arc<Recorder>>>,
    traffic: StdMutex<Option<Arc<Traffic>>>,
    /// The options of a lease that has some.
    options: OnceLock<SessionOptions>,
    /// What a replayed lease did.
    history: StdMutex<History>,
}

/// What the running operation has exclusive use of.
struct Session {
    /// `None` once the tenancy has ended.
    instance: Option<Instance>,
    last_screenshot_hash: Option<u64>,
    /// A client has used the instance.
    is_used: bool,
    /// The network of a lease that has one of its own.
    network: Option<LeaseNetwork>,
}

const DISPOSE_TIMEOUT: Duration = Duration::from_secs(10);

impl Tenancy {
    /// `group` is the number of the browser in its pool.
    pub(crate) fn new(
        id: InstanceId,
        group: usize,
        instance: Instance,
        lifetime: Duration,
        secrets: LeaseSecrets,
    ) -> Self {
        let now = Instant::now();
        let browser = StdMutex::new(instance.tenant_browser());
        let session =
            Session { instance: Some(instance), last_screenshot_hash: None, is_used: false, network: None };
        Self {
            id,
            group,
            lifetime,
            last_used: StdMutex::new(now),
            started: now,
            ended: CancellationToken::new(),
            session: Arc::new(Mutex::new(session)),
            secrets,
            browser,
            is_shared: AtomicBool::new(false),
            sockets: AtomicUsize::new(0),
            viewers: Viewers::default(),
            recorder: StdMutex::default(),
            traffic: StdMutex::default(),
            options: OnceLock::new(),
            history: StdMutex::default(),
        }
    }

    pub(crate) fn secrets(&self) -> &LeaseSecrets {
        &self.secrets
    }

    pub(crate) fn tenant_browser(&self) -> TenantBrowser {
        self.is_shared.store(true, Ordering::Relaxed);
        self.browser.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn sockets(&self) -> &AtomicUsize {
        &self.sockets
    }

    pub(super) fn viewers(&self) -> &Viewers {
        &self.viewers
    }

    /// Records the session from now on.
    pub(super) async fn start_recording(&self, tasks: &Tasks) -> Result<(), BrowserError> {
        let recorder = Recorder::start(&self.tenant_browser(), tasks).await?;
        *self.recorder.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(recorder));
        Ok(())
    }

    pub(super) fn recorder(&self) -> Option<Arc<Recorder>> {
        self.recorder.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What is recorded or replayed.
    pub(super) fn traffic(&self) -> Option<Arc<Traffic>> {
        self.traffic.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether a CDP client or a viewer has used the browser of the lease.
    pub(super) fn is_shared(&self) -> bool {
        self.is_shared.load(Ordering::Relaxed)
    }

    pub(super) fn options(&self) -> Option<SessionOptions> {
        self.options.get().cloned()
    }

    fn is_replay(&self) -> bool {
        let network = self.options.get().and_then(|options| options.network.as_ref());
        network.is_some_and(|network| network.replay.is_some())
    }

    pub(super) fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the use of the lease at this moment.
    pub(crate) fn usage(&self) -> LeaseUsage {
        let last_used = *self.last_used.lock().unwrap_or_else(PoisonError::into_inner);
        LeaseUsage {
            age: self.started.elapsed(),
            unused: last_used.elapsed(),
            lifetime: self.lifetime,
            is_acting: self.session.try_lock().is_err(),
            cdp_connections: self.sockets.load(Ordering::Relaxed),
            viewers: self.viewers.count(),
            controllers: self.viewers.controllers(),
        }
    }

    /// Completes when the lease ends.
    pub(super) fn ended(&self) -> &CancellationToken {
        &self.ended
    }

    pub(crate) fn id(&self) -> &InstanceId {
        &self.id
    }

    pub(crate) fn age(&self) -> Duration {
        self.started.elapsed()
    }

    pub(super) fn touch(&self) {
        *self.last_used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// True if the lease was not used for its lifetime. A running operation, an open CDP connection and a person in
    /// control count as use; a person who only watches does not.
    pub(crate) fn is_expired(&self, now: Instant) -> bool {
        let last_used = *self.last_used.lock().unwrap_or_else(PoisonError::into_inner);
        now.saturating_duration_since(last_used) > self.lifetime
            && self.sockets.load(Ordering::Relaxed) == 0
            && self.viewers.controllers() == 0
            && self.session.try_lock().is_ok()
    }

    /// Returns why the page is gone. `None` while an operation runs: that operation reports it.
    pub(crate) fn lost_reason(&self) -> Option<String> {
        let session = self.session.try_lock().ok()?;
        session.instance.as_ref()?.lost_reason().map(|reason| reason.to_string())
    }

    /// Performs one operation at a time, in order of arrival; all fail when the lease ends. An operation that has
    /// started is finished even if its client disconnects: a half-done click or a key that stays pressed would affect
    /// the client's next request. One that has not started by then is dropped.
    pub(super) async fn perform(
        self: &Arc<Self>,
        operation: Operation,
        gate: &Arc<OperationGate>,
        tasks: &Tasks,
    ) -> Result<OperationResult, ApiError> {
        self.touch();
        let turn = async {
            let session = Arc::clone(&self.session).lock_owned().await;
            let running = if operation.is_work() { Some(gate.enter(self.group).await) } else { None };
            (session, running)
        };
        let (mut session, running) = tokio::select! {
            biased;
            () = self.ended.cancelled() => return Err(ApiError::InvalidInstance),
            turn = turn => turn,
        };
        let tenancy = Arc::clone(self);
        let begun = self.is_replay().then(|| Begun::of(&operation));
        if let Operation::Configure { options, .. } = &operation {
            let _ = self.options.set((**options).clone());
        }
        let (sender, receiver) = oneshot::channel();
        tasks.spawn("operation", async move {
            let result = tokio::select! {
                biased;
                () = tenancy.ended.cancelled() => Err(ApiError::InvalidInstance),
                result = session.perform(operation) => result,
            };
            drop(running);
            tenancy.renew_browser(&session);
            tenancy.touch();
            if let Some(begun) = begun {
                tenancy.history().add(begun, &result);
            }
            drop(session);
            let _ = sender.send(result);
        });
        let aborted = || ApiError::Internal("this operation was aborted by a bug in webgym".into());
        receiver.await.unwrap_or_else(|_| Err(aborted()))
    }

    /// Session options replace the instance, and with it what CDP clients use.
    fn renew_browser(&self, session: &Session) {
        if let Some(network) = &session.network {
            self.traffic.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&network.traffic);
        }
        if let Some(instance) = &session.instance {
            *self.browser.lock().unwrap_or_else(PoisonError::into_inner) = instance.tenant_browser();
        }
    }

    /// Ends the tenancy: cancels what runs and disposes of the instance with all its data.
    pub(crate) async fn end(&self) {
        self.ended.cancel();
        self.recorder.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut session = self.session.lock().await;
        if let Some(instance) = session.instance.take()
            && let Ok(Err(error)) = tokio::time::timeout(DISPOSE_TIMEOUT, instance.dispose()).await
        {
            tracing::debug!(%error, "cannot dispose of an instance; its browser is gone");
        }
        if let Some(traffic) = session.network.take().and_then(|network| network.traffic) {
            traffic.end().await;
        }
    }
}

impl Session {
    async fn perform(&mut self, operation: Operation) -> Result<OperationResult, ApiError> {
        let instance = self.instance.as_mut().ok_or(ApiError::InvalidInstance)?;
        if !matches!(operation, Operation::Configure { .. }) {
            self.is_used = true;
        }
        Ok(match operation {
            Operation::Execute(command) => OperationResult::Answer(instance.execute(&command).await?),
            Operation::Size => {
                let (width, height) = instance.viewport_size().await?;
                OperationResult::Size(width, height)
            }
            Operation::Probe => {
                instance.probe().await?;
                OperationResult::Alive
            }
            Operation::Configure { options, network } => {
                let server = network.as_ref().map(|network| network.proxy.server());
                let determinism = network.as_ref().and_then(LeaseNetwork::determinism);
                let configured = instance.create_sibling(*options, server, determinism).await?;
                let replaced = std::mem::replace(instance, configured);
                self.network = network;
                OperationResult::Configured(Box::new(Replaced { instance: replaced, is_used: self.is_used }))
            }
            Operation::StorageState => {
                let state = instance.storage_state().await?;
                let answer = serde_json::to_value(state);
                OperationResult::Answer(answer.map_err(|error| ApiError::Internal(error.to_string()))?)
            }
            Operation::SetStorageState(state) => {
                instance.set_storage_state(&state).await?;
                OperationResult::Answer(json!({"status": "success"}))
            }
            Operation::Computer(call) => {
                OperationResult::Computer(Box::new(computer::perform(instance, &call).await?))
            }
            Operation::ListFiles => OperationResult::Answer(json!({"files": instance.list_files()})),
            Operation::ReadFile(name) => OperationResult::File(instance.read_file(&name).await?),
            Operation::WriteFile { name, content } => {
                let size = content.len();
                instance.write_file(&name, content).await?;
                OperationResult::Answer(json!({"status": "success", "name": name, "size": size}))
            }
            Operation::DeleteFile(name) => {
                instance.delete_file(&name).await?;
                OperationResult::Answer(json!({"status": "success"}))
            }
            Operation::FollowWindows => {
                instance.follow_windows().await?;
                OperationResult::Alive
            }
            Operation::Observe(request) => self.observe(&request, None).await?,
            Operation::Refused { error, observe } => self.observe(&observe, Some(Err(error))).await?,
            Operation::Step { command, observe } => {
                let StepResult { result, settled, observation } = instance.step(&command, &observe).await?;
                self.observed(observation, Some(result), settled)
            }
        })
    }

    async fn observe(
        &mut self,
        request: &ObserveRequest,
        result: Option<Result<Value, BrowserError>>,
    ) -> Result<OperationResult, ApiError> {
        let instance = self.instance.as_mut().ok_or(ApiError::InvalidInstance)?;
        let observation = instance.observe(request).await?;
        Ok(self.observed(observation, result, None))
    }

    fn observed(
        &mut self,
        observation: Observation,
        result: Option<Result<Value, BrowserError>>,
        settled: Option<Settled>,
    ) -> OperationResult {
        let unchanged = self.replace_screenshot_hash(observation.screenshot.as_ref());
        OperationResult::Observed(Box::new(ObserveResult { result, settled, observation, unchanged }))
    }

    /// Remembers the hash of a screenshot and returns whether it is the same as before.
    fn replace_screenshot_hash(&mut self, screenshot: Option<&Screenshot>) -> bool {
        let Some(screenshot) = screenshot else { return false };
        let mut hasher = DefaultHasher::new();
        screenshot.bytes.hash(&mut hasher);
        let hash = Some(hasher.finish());
        std::mem::replace(&mut self.last_screenshot_hash, hash) == hash
    }
}
