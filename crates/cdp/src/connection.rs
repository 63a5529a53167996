//! Routes replies to their callers and events to their sessions. Owns the table of pending calls and attached
//! sessions; when a session or the browser ends, everything that waits on it fails at once with the reason.

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
    error::{CallError, Gone},
    protocol::{BROWSER_GET_VERSION, INSPECTOR_TARGET_CRASHED, NoParams, TARGET_DETACHED_FROM_TARGET},
    session::Session,
    transport,
};

/// Listens to one session. Called in the order the browser sent things, on the reading task: look, note, send
/// if need be, and return; never wait.
pub trait Events: Send + Sync + 'static {
    fn event(&self, session: &Session, method: &str, params: &[u8]);
    /// The session is over; no event follows.
    fn gone(&self, _gone: &Gone) {}
}

/// For sessions nobody listens to.
struct Deaf;

impl Events for Deaf {
    fn event(&self, _: &Session, _: &str, _: &[u8]) {}
}

/// The reply's bytes and where its payload lies: `Ok` a result, `Err` the browser's error object.
pub(crate) type Answer = Result<(Bytes, Result<std::ops::Range<usize>, std::ops::Range<usize>>), Gone>;

pub(crate) type SessionId = Option<Arc<str>>;

struct Waiter {
    session: SessionId,
    answer: oneshot::Sender<Answer>,
}

struct Listener {
    events: Arc<dyn Events>,
    ended: Option<Gone>,
}

struct State {
    pending: HashMap<u64, Waiter>,
    sessions: HashMap<SessionId, Listener>,
    dead: Option<Gone>,
}

struct Inner {
    outbox: mpsc::Sender<Bytes>,
    state: Mutex<State>,
    next_id: AtomicU64,
    death: watch::Sender<Option<Gone>>,
}

/// A handle to one browser's pipe. Cloning is cheap.
#[derive(Clone)]
pub struct Connection(Arc<Inner>);

#[derive(Deserialize)]
struct Detached {
    #[serde(rename = "sessionId")]
    session: String,
}

impl Connection {
    /// Starts reading and writing. `root` hears the events that belong to no session; `last_words` is asked,
    /// once the pipe has ended, what the browser logged; everything pending waits for it, so it must be quick.
    pub(crate) fn start(
        to: pipe::Sender,
        from: pipe::Receiver,
        root: Arc<dyn Events>,
        last_words: impl Future<Output = Arc<str>> + Send + 'static,
    ) -> Self {
        let state = State {
            pending: HashMap::new(),
            sessions: HashMap::from([(None, Listener { events: root, ended: None })]),
            dead: None,
        };
        let inner = Arc::new(Inner {
            outbox: transport::writer(to),
            state: Mutex::new(state),
            next_id: AtomicU64::new(1),
            death: watch::Sender::new(None),
        });
        let connection = Self(inner);
        let reader = connection.clone();
        tokio::spawn(async move {
            transport::read_all(from, |message| reader.receive(message)).await;
            reader.die(&Gone::Browser(last_words.await));
        });
        connection
    }

    /// The browser's own session, for calls that concern no page.
    pub fn root(&self) -> Session {
        Session::new(self.clone(), None)
    }

    /// Takes over a session that the browser has announced. From now on `events` hears it.
    pub fn attach(&self, session: &str, events: Arc<dyn Events>) -> Session {
        let id: SessionId = Some(session.into());
        let mut state = self.state();
        let ended = state.dead.clone();
        state.sessions.insert(id.clone(), Listener { events, ended });
        drop(state);
        Session::new(self.clone(), id)
    }

    /// A further handle to a session that is attached already.
    pub fn session(&self, session: &str) -> Session {
        Session::new(self.clone(), Some(session.into()))
    }

    /// Asks the browser something trivial, to see that it still answers.
    pub async fn ping(&self, limit: Duration) -> Result<(), CallError> {
        self.root().send(BROWSER_GET_VERSION, &NoParams {}).within(limit).await.map(drop)
    }

    /// Why the browser is gone, once it is.
    pub fn dead(&self) -> Option<Gone> {
        self.0.death.borrow().clone()
    }

    /// Waits until the browser is gone.
    pub async fn died(&self) -> Gone {
        let mut death = self.0.death.subscribe();
        match death.wait_for(Option::is_some).await {
            Ok(gone) => gone.clone().unwrap_or(Gone::Detached),
            Err(_) => Gone::Detached,
        }
    }

    /// How many calls wait for their answer.
    pub fn pending(&self) -> usize {
        self.state().pending.len()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while holding the lock; if it ever did, the table is still sound.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.0.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Registers a call before it is written. Fails at once when nobody is there to answer.
    pub(crate) fn expect(&self, id: u64, session: &SessionId) -> Result<oneshot::Receiver<Answer>, Gone> {
        let mut state = self.state();
        if let Some(gone) = &state.dead {
            return Err(gone.clone());
        }
        match state.sessions.get(session) {
            None => return Err(Gone::Detached),
            Some(Listener { ended: Some(gone), .. }) => return Err(gone.clone()),
            Some(_) => {}
        }
        let (answer, receiver) = oneshot::channel();
        state.pending.insert(id, Waiter { session: session.clone(), answer });
        Ok(receiver)
    }

    /// A caller lost interest.
    pub(crate) fn forget(&self, id: u64) {
        self.state().pending.remove(&id);
    }

    /// False when the browser has not read for a very long time.
    pub(crate) fn write(&self, message: Bytes) -> bool {
        !matches!(self.0.outbox.try_send(message), Err(mpsc::error::TrySendError::Full(_)))
    }

    fn receive(&self, mut message: Bytes) {
        match open(&mut message) {
            Ok(Envelope::Reply { id, outcome }) => {
                if let Some(waiter) = self.state().pending.remove(&id) {
                    let _ = waiter.answer.send(Ok((message, outcome)));
                }
            }
            Ok(Envelope::Event { session, method, params }) => {
                self.dispatch(&session.map(Into::into), &method, &message[params]);
            }
            Err(why) => {
                tracing::warn!(%why, bytes = message.len(), "the browser sent something that is not a message");
            }
        }
    }

    fn dispatch(&self, session: &SessionId, method: &str, params: &[u8]) {
        let events = match self.state().sessions.get(session) {
            Some(listener) => Arc::clone(&listener.events),
            None => return,
        };
        events.event(&Session::new(self.clone(), session.clone()), method, params);
        match method {
            TARGET_DETACHED_FROM_TARGET => {
                if let Ok(Detached { session }) = decode(params) {
                    self.end(&Some(session.into()), &Gone::Detached);
                }
            }
            INSPECTOR_TARGET_CRASHED => self.end(session, &Gone::Crashed),
            _ => {}
        }
    }

    /// Ends one session: its listener and its callers learn why. The listener first, so that whoever hears of it from a
    /// failed call finds it noted. Only called while reading, so no other end comes between.
    fn end(&self, session: &SessionId, gone: &Gone) {
        let (events, ended) = match self.state().sessions.get(session) {
            Some(listener) => (Arc::clone(&listener.events), listener.ended.clone()),
            None => return,
        };
        if ended.is_none() {
            events.gone(gone);
        }
        let why = ended.unwrap_or_else(|| gone.clone());
        let mut state = self.state();
        if *gone == Gone::Detached {
            state.sessions.remove(session);
        } else if let Some(listener) = state.sessions.get_mut(session) {
            listener.ended = Some(why.clone());
        }
        let ids: Vec<u64> = state
            .pending
            .iter()
            .filter(|(_, waiter)| waiter.session == *session)
            .map(|(id, _)| *id)
            .collect();
        let waiters: Vec<Waiter> = ids.iter().filter_map(|id| state.pending.remove(id)).collect();
        drop(state);
        for waiter in waiters {
            let _ = waiter.answer.send(Err(why.clone()));
        }
    }

    fn die(&self, gone: &Gone) {
        let mut state = self.state();
        state.dead = Some(gone.clone());
        let waiters: Vec<Waiter> = state.pending.drain().map(|(_, waiter)| waiter).collect();
        let listeners: Vec<Listener> = state.sessions.drain().map(|(_, listener)| listener).collect();
        // Calls on a session that the browser took with it should say so, not that they were detached.
        state.sessions.insert(None, Listener { events: Arc::new(Deaf), ended: Some(gone.clone()) });
        drop(state);
        // Whoever hears of the end from here on finds the browser dead when they look.
        self.0.death.send_replace(Some(gone.clone()));
        for waiter in waiters {
            let _ = waiter.answer.send(Err(gone.clone()));
        }
        for listener in listeners.into_iter().filter(|listener| listener.ended.is_none()) {
            listener.events.gone(gone);
        }
    }
}
