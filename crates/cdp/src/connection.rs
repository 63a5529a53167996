//! Routes replies to their callers and events to the handlers of their sessions. Owns the table of pending calls and
//! attached sessions; when a session or the browser ends, every call pending on it fails at once with the reason.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use serde::Deserialize;
use tokio::{
    net::unix::pipe,
    sync::{mpsc, oneshot, watch},
};

use crate::{
    envelope::{Envelope, decode, open},
    error::{CallError, SessionEnd},
    protocol::{BROWSER_GET_VERSION, INSPECTOR_TARGET_CRASHED, NoParams, TARGET_DETACHED_FROM_TARGET},
    session::Session,
    transport,
};

/// Receives the events of one session. Called on the reading task, in the order the browser sent the events.
/// Implementations must not block or wait; they may record state and send calls.
pub trait EventHandler: Send + Sync + 'static {
    fn on_event(&self, session: &Session, method: &str, params: &[u8]);
    /// The session has ended; no further event follows.
    fn on_session_end(&self, _end: &SessionEnd) {}
}

/// An [`EventHandler`] that ignores all events.
pub struct IgnoreEvents;

impl EventHandler for IgnoreEvents {
    fn on_event(&self, _: &Session, _: &str, _: &[u8]) {}
}

/// The bytes of a reply and the range of its payload: `Ok` for a result, `Err` for the browser's error object.
pub(crate) type RawReply =
    Result<(Bytes, Result<std::ops::Range<usize>, std::ops::Range<usize>>), SessionEnd>;

/// `None` is the browser's root session.
pub(crate) type SessionId = Option<Arc<str>>;

struct PendingReply {
    session: SessionId,
    recipient: ReplyRecipient,
}

/// Who gets the reply to a call. Callbacks run on the reading task, in the order of the browser's messages.
pub(crate) enum ReplyRecipient {
    Caller(oneshot::Sender<RawReply>),
    Callback(Box<dyn FnOnce(RawReply) + Send>),
}

impl ReplyRecipient {
    /// Delivers the reply. Must not be called while the routing table is locked: a callback may send calls.
    fn deliver(self, reply: RawReply) {
        match self {
            Self::Caller(sender) => drop(sender.send(reply)),
            Self::Callback(callback) => callback(reply),
        }
    }
}

struct AttachedSession {
    events: Arc<dyn EventHandler>,
    ended: Option<SessionEnd>,
}

struct RoutingTable {
    pending: HashMap<u64, PendingReply>,
    sessions: HashMap<SessionId, AttachedSession>,
    closed: Option<SessionEnd>,
}

struct ConnectionInner {
    outbox: mpsc::Sender<Bytes>,
    table: Mutex<RoutingTable>,
    next_id: AtomicU64,
    closed: watch::Sender<Option<SessionEnd>>,
}

/// A handle to the pipe of one browser. Cloning is cheap.
#[derive(Clone)]
pub struct Connection(Arc<ConnectionInner>);

#[derive(Deserialize)]
struct Detached {
    #[serde(rename = "sessionId")]
    session: String,
}

impl Connection {
    /// Starts reading and writing. `root` receives the events that belong to no session. `recent_log` is awaited
    /// after the pipe has ended and returns the browser's last log lines; it must be quick, because every pending
    /// call waits for it.
    pub(crate) fn start(
        to: pipe::Sender,
        from: pipe::Receiver,
        root: Arc<dyn EventHandler>,
        recent_log: impl Future<Output = Arc<str>> + Send + 'static,
    ) -> Self {
        let table = RoutingTable {
            pending: HashMap::new(),
            sessions: HashMap::from([(None, AttachedSession { events: root, ended: None })]),
            closed: None,
        };
        let inner = Arc::new(ConnectionInner {
            outbox: transport::writer(to),
            table: Mutex::new(table),
            next_id: AtomicU64::new(1),
            closed: watch::Sender::new(None),
        });
        let connection = Self(inner);
        let reader = connection.clone();
        tokio::spawn(async move {
            transport::read_all(from, |message| reader.receive(message)).await;
            reader.close(&SessionEnd::BrowserExited(recent_log.await));
        });
        connection
    }

    /// The browser's root session, for calls that concern no page.
    pub fn root(&self) -> Session {
        Session::new(self.clone(), None)
    }

    /// Registers a session that the browser has announced. From now on `events` receives its events.
    pub fn attach(&self, session: &str, events: Arc<dyn EventHandler>) -> Session {
        let id: SessionId = Some(session.into());
        let mut table = self.table();
        let ended = table.closed.clone();
        table.sessions.insert(id.clone(), AttachedSession { events, ended });
        drop(table);
        Session::new(self.clone(), id)
    }

    /// Returns another handle to a session that is attached already.
    pub fn session(&self, session: &str) -> Session {
        Session::new(self.clone(), Some(session.into()))
    }

    /// Checks that the browser answers.
    pub async fn ping(&self, timeout: Duration) -> Result<(), CallError> {
        self.root().send(BROWSER_GET_VERSION, &NoParams {}).within(timeout).await.map(drop)
    }

    /// Why the connection closed; `None` while it is open.
    pub fn close_reason(&self) -> Option<SessionEnd> {
        self.0.closed.borrow().clone()
    }

    /// Waits until the connection closes, and returns why.
    pub async fn wait_closed(&self) -> SessionEnd {
        let mut closed = self.0.closed.subscribe();
        match closed.wait_for(Option::is_some).await {
            Ok(end) => end.clone().unwrap_or(SessionEnd::Detached),
            Err(_) => SessionEnd::Detached,
        }
    }

    /// The number of calls that wait for a reply.
    pub fn pending_calls(&self) -> usize {
        self.table().pending.len()
    }

    fn table(&self) -> MutexGuard<'_, RoutingTable> {
        // No code panics while holding the lock; if it did, the table would still be consistent.
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.0.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Registers a call before it is written. Fails at once if its session has ended.
    pub(crate) fn register_call(
        &self,
        id: u64,
        session: &SessionId,
        recipient: ReplyRecipient,
    ) -> Result<(), SessionEnd> {
        let mut table = self.table();
        if let Some(end) = &table.closed {
            return Err(end.clone());
        }
        match table.sessions.get(session) {
            None => return Err(SessionEnd::Detached),
            Some(AttachedSession { ended: Some(end), .. }) => return Err(end.clone()),
            Some(_) => {}
        }
        table.pending.insert(id, PendingReply { session: session.clone(), recipient });
        Ok(())
    }

    /// Removes a call whose caller no longer waits.
    pub(crate) fn remove_call(&self, id: u64) {
        self.table().pending.remove(&id);
    }

    /// Removes a session that has ended without an event of its own, such as the child of a detached one.
    pub(crate) fn forget_session(&self, session: &SessionId) {
        let mut table = self.table();
        table.sessions.remove(session);
        let failed: Vec<PendingReply> = table
            .pending
            .extract_if(|_, pending| pending.session == *session)
            .map(|(_, reply)| reply)
            .collect();
        drop(table);
        for pending in failed {
            pending.recipient.deliver(Err(SessionEnd::Detached));
        }
    }

    /// Queues a message. Returns false if the queue is full because the browser does not read.
    pub(crate) fn write(&self, message: Bytes) -> bool {
        !matches!(self.0.outbox.try_send(message), Err(mpsc::error::TrySendError::Full(_)))
    }

    fn receive(&self, mut message: Bytes) {
        match open(&mut message) {
            Ok(Envelope::Reply { id, outcome }) => {
                let pending = self.table().pending.remove(&id);
                if let Some(pending) = pending {
                    pending.recipient.deliver(Ok((message, outcome)));
                }
            }
            Ok(Envelope::Event { session, method, params }) => {
                self.dispatch(&session.map(Into::into), &method, &message[params]);
            }
            Err(reason) => {
                tracing::warn!(%reason, bytes = message.len(), "ignored an invalid message from the browser");
            }
        }
    }

    fn dispatch(&self, session: &SessionId, method: &str, params: &[u8]) {
        let events = match self.table().sessions.get(session) {
            Some(attached) => Arc::clone(&attached.events),
            None => return,
        };
        events.on_event(&Session::new(self.clone(), session.clone()), method, params);
        match method {
            TARGET_DETACHED_FROM_TARGET => {
                if let Ok(Detached { session }) = decode(params) {
                    self.end_session(&Some(session.into()), &SessionEnd::Detached);
                }
            }
            INSPECTOR_TARGET_CRASHED => self.end_session(session, &SessionEnd::Crashed),
            _ => {}
        }
    }

    /// Ends one session. The handler is notified before the callers, so that a caller whose call failed finds the end
    /// recorded by the handler. Only the reading task calls this, so two ends never interleave.
    fn end_session(&self, session: &SessionId, end: &SessionEnd) {
        let (events, ended) = match self.table().sessions.get(session) {
            Some(attached) => (Arc::clone(&attached.events), attached.ended.clone()),
            None => return,
        };
        if ended.is_none() {
            events.on_session_end(end);
        }
        let first_end = ended.unwrap_or_else(|| end.clone());
        let mut table = self.table();
        if *end == SessionEnd::Detached {
            table.sessions.remove(session);
        } else if let Some(attached) = table.sessions.get_mut(session) {
            attached.ended = Some(first_end.clone());
        }
        let ids: Vec<u64> = table
            .pending
            .iter()
            .filter(|(_, pending)| pending.session == *session)
            .map(|(id, _)| *id)
            .collect();
        let failed: Vec<PendingReply> = ids.iter().filter_map(|id| table.pending.remove(id)).collect();
        drop(table);
        for pending in failed {
            pending.recipient.deliver(Err(first_end.clone()));
        }
    }

    /// Ends all sessions: the browser has exited.
    fn close(&self, end: &SessionEnd) {
        let mut table = self.table();
        table.closed = Some(end.clone());
        let failed: Vec<PendingReply> = table.pending.drain().map(|(_, pending)| pending).collect();
        let sessions: Vec<AttachedSession> = table.sessions.drain().map(|(_, attached)| attached).collect();
        // Later calls must report that the browser exited, not that their session is unknown.
        table
            .sessions
            .insert(None, AttachedSession { events: Arc::new(IgnoreEvents), ended: Some(end.clone()) });
        drop(table);
        // Set before callers and handlers are notified, so that they find the connection closed.
        self.0.closed.send_replace(Some(end.clone()));
        for pending in failed {
            pending.recipient.deliver(Err(end.clone()));
        }
        for attached in sessions.into_iter().filter(|attached| attached.ended.is_none()) {
            attached.events.on_session_end(end);
        }
    }
}
