//! The sessions of MCP clients over HTTP. A session is known only by its random id, and ends when its client ends it or is idle.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{catalog::TaskChoice, episode::Episode};

/// How often idle sessions are looked for, as a share of the limit.
const CHECKS_PER_TIMEOUT: u32 = 4;

/// One session. Calls on it are made one after another.
pub(crate) struct McpSession {
    pub(super) task: TaskChoice,
    pub(super) episode: tokio::sync::Mutex<Option<Episode>>,
    /// Ends running calls.
    pub(super) ended: CancellationToken,
    last_used: Mutex<Instant>,
}

impl McpSession {
    pub(super) fn new(task: TaskChoice) -> Self {
        Self {
            task,
            episode: tokio::sync::Mutex::default(),
            ended: CancellationToken::new(),
            last_used: Mutex::new(Instant::now()),
        }
    }

    fn is_idle(&self, limit: Duration) -> bool {
        let last_used = *self.last_used.lock().unwrap_or_else(PoisonError::into_inner);
        // A session in use is never idle.
        self.episode.try_lock().is_ok() && last_used.elapsed() >= limit
    }

    pub(super) fn mark_used(&self) {
        *self.last_used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}

/// The sessions by their ids.
pub(crate) struct McpSessions {
    sessions: Mutex<HashMap<String, Arc<McpSession>>>,
    max: usize,
}

impl McpSessions {
    pub(crate) fn new(max: usize) -> Self {
        Self { sessions: Mutex::default(), max }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<McpSession>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates a session and returns its id; `None` when there are too many.
    pub(super) fn create(&self, task: TaskChoice) -> Option<(String, Arc<McpSession>)> {
        let mut sessions = self.lock();
        if sessions.len() >= self.max {
            return None;
        }
        let (id, session) = (uuid::Uuid::new_v4().to_string(), Arc::new(McpSession::new(task)));
        sessions.insert(id.clone(), Arc::clone(&session));
        Some((id, session))
    }

    pub(super) fn get(&self, id: &str) -> Option<Arc<McpSession>> {
        let session = self.lock().get(id).cloned();
        if let Some(session) = &session {
            session.mark_used();
        }
        session
    }

    /// Ends a session; its browser is released once a running call has noticed. Returns whether there was one.
    pub(super) fn remove(&self, id: &str) -> bool {
        let removed = self.lock().remove(id);
        if let Some(session) = &removed {
            session.ended.cancel();
        }
        removed.is_some()
    }

    /// Ends all sessions.
    pub(crate) fn clear(&self) {
        for (_, session) in self.lock().drain() {
            session.ended.cancel();
        }
    }

    /// Ends sessions without a call for longer than the limit. Never returns.
    pub(crate) async fn end_idle(&self, limit: Duration) {
        loop {
            tokio::time::sleep(limit / CHECKS_PER_TIMEOUT).await;
            self.lock().retain(|_, session| !session.is_idle(limit));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn idle_sessions_end_and_used_ones_stay() {
        let sessions = McpSessions::new(2);
        let (idle, _) = sessions.create(TaskChoice::default()).unwrap();
        let (busy, session) = sessions.create(TaskChoice::default()).unwrap();
        assert!(sessions.create(TaskChoice::default()).is_none(), "the limit holds");
        let _call = session.episode.lock().await;
        let limit = Duration::from_secs(60);
        let _ = tokio::time::timeout(limit * 2, sessions.end_idle(limit)).await;
        assert!(sessions.get(&idle).is_none() && sessions.get(&busy).is_some());
        assert!(sessions.remove(&busy) && session.ended.is_cancelled() && !sessions.remove(&busy));
    }
}
