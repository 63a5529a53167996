//! The workers of a page with a virtual clock. Each gets a script before its own (`determinism/worker.js`) that stops its
//! clock, seeds its random numbers and holds back its timers and messages until [`Page::advance_workers`] moves the clock.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use cdp::{CallError, EventHandler, Session, SessionEnd, protocol as p};
use serde::Deserialize;
use serde_json::json;

use super::{Page, tracker::Tracker};
use crate::context::Context;

/// The longest wait for the script of a worker, and for its timers.
const WORKER_TIMEOUT: Duration = Duration::from_secs(5);
/// Bounds the memory of a page that starts workers without end; further ones run unchanged.
const MAX_WORKERS: usize = 200;

#[derive(Default)]
pub(crate) struct Workers(Mutex<Vec<Worker>>);

struct Worker {
    session: Session,
    has_loaded: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AttachedToTarget {
    session_id: String,
    target_info: TargetInfo,
}

#[derive(Deserialize)]
struct TargetInfo {
    #[serde(default)]
    url: String,
}

impl Workers {
    fn list(&self) -> MutexGuard<'_, Vec<Worker>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Attaches to the workers that `session` starts from now on, before their scripts run.
    pub(crate) fn watch(session: &Session) -> cdp::PendingCall {
        let types = ["worker", "service_worker"].map(|kind| json!({"type": kind}));
        let params =
            json!({"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true, "filter": types});
        session.send(p::TARGET_SET_AUTO_ATTACH, &params)
    }

    /// Prepares a new worker and lets it run.
    pub(crate) fn attach(
        self: &Arc<Self>,
        parent: &Session,
        params: &[u8],
        context: &Arc<Context>,
        tracker: &Arc<Tracker>,
    ) {
        let Ok(AttachedToTarget { session_id, target_info }) = cdp::parse_params(params) else { return };
        let events = WorkerEvents {
            workers: Arc::downgrade(self),
            context: Arc::downgrade(context),
            tracker: Arc::clone(tracker),
        };
        let session = parent.connection().attach(&session_id, Arc::new(events));
        if let Some(clock) = context.clock().filter(|_| self.list().len() < MAX_WORKERS) {
            self.list().push(Worker { session: session.clone(), has_loaded: false });
            // A worker may start workers, too.
            drop(Self::watch(&session));
            session.send_no_reply(p::INSPECTOR_ENABLE, &json!({}));
            session.send_no_reply(
                p::RUNTIME_EVALUATE,
                &json!({"expression": clock.worker_script(&target_info.url)}),
            );
        }
        session.send_no_reply(p::RUNTIME_RUN_IF_WAITING_FOR_DEBUGGER, &json!({}));
        tracker.notify();
    }

    fn mark_loaded(&self, session: &Session) {
        for worker in self.list().iter_mut().filter(|worker| worker.session.id() == session.id()) {
            worker.has_loaded = true;
        }
    }

    fn remove_ended(&self, ended: &str) {
        self.list().retain(|worker| worker.session.id() != Some(ended));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list().is_empty()
    }

    fn is_loading(&self) -> bool {
        self.list().iter().any(|worker| !worker.has_loaded)
    }
}

impl Page {
    /// Lets the workers handle what they were sent, runs their timers up to `now_ms` and delivers their messages.
    pub(super) async fn advance_workers(&self, now_ms: f64) {
        let loaded = self.tracker.wait_until(|state| state.ended.is_some() || !self.workers.is_loading());
        if tokio::time::timeout(WORKER_TIMEOUT, loaded).await.is_err() {
            tracing::debug!("the script of a worker did not load; its clock is moved without it");
            self.workers.list().iter_mut().for_each(|worker| worker.has_loaded = true);
        }
        let sessions: Vec<Session> =
            self.workers.list().iter().map(|worker| worker.session.clone()).collect();
        for session in sessions {
            let params = json!({"expression": format!("globalThis.__webgymAdvance?.({now_ms})")});
            match session.send(p::RUNTIME_EVALUATE, &params).within(WORKER_TIMEOUT).await {
                Err(CallError::SessionEnded { .. }) => {
                    self.workers.remove_ended(session.id().unwrap_or_default());
                }
                Err(error) => tracing::debug!(%error, "cannot move the clock of a worker"),
                Ok(_) => {}
            }
        }
    }
}

/// Handles the events of a worker's session.
struct WorkerEvents {
    workers: Weak<Workers>,
    context: Weak<Context>,
    tracker: Arc<Tracker>,
}

impl EventHandler for WorkerEvents {
    fn on_event(&self, session: &Session, method: &str, params: &[u8]) {
        let Some(workers) = self.workers.upgrade() else { return };
        match method {
            p::INSPECTOR_WORKER_SCRIPT_LOADED => {
                workers.mark_loaded(session);
                self.tracker.notify();
            }
            p::TARGET_ATTACHED_TO_TARGET => {
                if let Some(context) = self.context.upgrade() {
                    workers.attach(session, params, &context, &self.tracker);
                }
            }
            _ => {}
        }
    }

    fn on_session_end(&self, _: &SessionEnd) {
        // The handler does not know its own session; the next round of `advance_workers` removes it.
        self.tracker.notify();
    }
}
