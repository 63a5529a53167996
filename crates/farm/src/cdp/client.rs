//! One connected client and its virtual browser: decides about each call and passes the allowed ones to the browser.

use std::sync::{
    Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
    atomic::{AtomicUsize, Ordering},
};

use browser::{
    BrowserError, ClientSession, ForwardError, ForwardedReply, Session, TargetWatcher, TenantBrowser,
    WatchGuard, protocol as p,
};
use serde_json::{Value, json, value::RawValue};
use tokio::sync::watch;

use super::{
    DIALOG_TIMEOUT, MAX_PENDING_CALLS, START_TIMEOUT,
    events::BrowserEvents,
    message::{self, ClientCall, Outcome, ProtocolError, ReplyTo},
    outbox::Outbox,
    params,
    policy::{self, Decision},
    root,
    state::{ClientState, Parent, RootId},
};
use crate::tasks::Tasks;

pub(crate) struct Client {
    me: Weak<Self>,
    tenant: TenantBrowser,
    state: Mutex<ClientState>,
    outbox: Outbox,
    /// Changes whenever a target was attached, detached or destroyed.
    changes: watch::Sender<()>,
    pending_calls: AtomicUsize,
    tasks: Tasks,
    /// Ends the lease.
    end_lease: Box<dyn Fn() + Send + Sync>,
    session: OnceLock<ClientSession>,
    _watch: WatchGuard,
}

/// Where a call of a client goes.
pub(crate) enum Origin {
    /// The virtual browser.
    Root(RootId),
    /// A session with a target.
    Target { id: Arc<str>, session: Session, target: String },
}

impl Client {
    /// Opens the client's part of the browser. With `page`, the connection is a session with that page.
    pub(crate) async fn open(
        tenant: TenantBrowser,
        page: Option<&str>,
        outbox: Outbox,
        tasks: Tasks,
        end_lease: Box<dyn Fn() + Send + Sync>,
    ) -> Result<Arc<Self>, BrowserError> {
        let client = Arc::new_cyclic(|me: &Weak<Self>| {
            let watcher: Weak<dyn TargetWatcher> = me.clone();
            Self {
                me: me.clone(),
                _watch: tenant.context().watch(watcher),
                state: Mutex::new(ClientState::new(tenant.context().clone())),
                tenant,
                outbox,
                changes: watch::Sender::new(()),
                pending_calls: AtomicUsize::new(0),
                tasks,
                end_lease,
                session: OnceLock::new(),
            }
        });
        let session = client.tenant.open_session(Arc::new(BrowserEvents(client.me.clone()))).await?;
        let session = client.session.get_or_init(|| session).session().clone();
        let everything = json!({"discover": true, "filter": [{}]});
        session.run(p::TARGET_SET_DISCOVER_TARGETS, &everything).await?;
        if let Some(page) = page {
            client.attach(page, Parent::Connection, None);
            client.wait_until(|state| state.connection_session.is_some()).await;
        }
        Ok(client)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, ClientState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn tenant(&self) -> &TenantBrowser {
        &self.tenant
    }

    pub(super) fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    pub(super) fn watcher(&self) -> Weak<dyn TargetWatcher> {
        self.me.clone()
    }

    /// The client's session with the browser.
    pub(super) fn browser_session(&self) -> Option<&Session> {
        self.session.get().map(ClientSession::session)
    }

    pub(super) fn end_lease(&self) {
        (self.end_lease)();
    }

    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn_until_stopped("cdp call", work);
    }

    pub(super) fn record_change(&self) {
        self.changes.send_replace(());
    }

    /// Waits until the state is as wanted, at most [`super::ATTACH_TIMEOUT`].
    pub(super) async fn wait_until(&self, is_done: impl Fn(&ClientState) -> bool) {
        let mut changes = self.changes.subscribe();
        let wait = async {
            while !is_done(&self.state()) {
                if changes.changed().await.is_err() {
                    return;
                }
            }
        };
        let _ = tokio::time::timeout(super::ATTACH_TIMEOUT, wait).await;
    }

    /// Handles a message of the client.
    pub(crate) fn handle(self: &Arc<Self>, text: &str) {
        let call: ClientCall<'_> = match serde_json::from_str(text) {
            Ok(call) => call,
            Err(error) => return self.outbox.push(ProtocolError::invalid_message(&error.to_string())),
        };
        let to = ReplyTo { id: call.id, session: call.session.as_deref().map(str::to_owned) };
        if let Err(error) = self.dispatch(&call, &to) {
            self.reply_error(&to, &error);
        }
    }

    fn dispatch(self: &Arc<Self>, call: &ClientCall<'_>, to: &ReplyTo) -> Result<(), ProtocolError> {
        let origin = self.origin(call.session.as_deref())?;
        let method = &*call.method;
        match (policy::decide(method), origin) {
            (Decision::Refuse(reason), _) => Err(ProtocolError::refused(method, reason)),
            (Decision::Accept, _) => {
                self.reply_value(to, &json!({}));
                Ok(())
            }
            (Decision::Root, origin) => root::dispatch(self, &origin, call, to),
            (Decision::Context, Origin::Root(_)) => root::in_context(self, call, to),
            (_, Origin::Root(_)) => Err(ProtocolError::not_found(method)),
            (Decision::Files, _) => Err(ProtocolError::refused(
                method,
                "the files are on another machine; pass their contents (Playwright: set_input_files with a buffer), \
                 or upload them with PUT /files/NAME and use the command set_files",
            )),
            (decision, Origin::Target { id, session, target }) => {
                params::check(method, decision, call.params, &*self.state())?;
                self.forward(&session, method, call.params, to)?;
                self.after_forward(method, &id, &target);
                Ok(())
            }
        }
    }

    /// Finds out where a call goes.
    fn origin(&self, session: Option<&str>) -> Result<Origin, ProtocolError> {
        let state = self.state();
        let id = match session {
            Some(id) => Some(Arc::from(id)),
            None => state.connection_session.clone(),
        };
        if state.roots.contains_key(&id) {
            return Ok(Origin::Root(id));
        }
        let session = id.and_then(|id| state.sessions.get(&id)).ok_or_else(ProtocolError::no_session)?;
        Ok(Origin::Target {
            id: Arc::clone(&session.id),
            session: session.real.clone(),
            target: session.target.clone(),
        })
    }

    /// Does what a call of a page means for us, after it was passed on.
    fn after_forward(&self, method: &str, id: &str, target: &str) {
        let mut state = self.state();
        match method {
            "Runtime.runIfWaitingForDebugger" => drop(state.starts.remove(target)),
            "Page.enable" => {
                let context =
                    state.target(target).and_then(|target| state.context(target.context())).cloned();
                if let Some(session) = state.sessions.get_mut(id).filter(|session| session.claim.is_none()) {
                    session.claim = context.and_then(|context| context.claim(target));
                }
            }
            "Page.disable" => {
                if let Some(session) = state.sessions.get_mut(id) {
                    session.claim = None;
                }
            }
            _ => {}
        }
    }

    /// Passes a call on; the reply goes to the client unchanged.
    pub(super) fn forward(
        &self,
        session: &Session,
        method: &str,
        params: Option<&RawValue>,
        to: &ReplyTo,
    ) -> Result<(), ProtocolError> {
        let recipient = to.clone();
        self.forward_with(session, method, params, to, move |client, reply| client.reply(&recipient, reply))
    }

    /// Passes a call on and calls `on_reply` with the reply, unless the client is gone by then.
    pub(super) fn forward_with(
        &self,
        session: &Session,
        method: &str,
        params: Option<&RawValue>,
        to: &ReplyTo,
        on_reply: impl FnOnce(&Arc<Self>, ForwardedReply) + Send + 'static,
    ) -> Result<(), ProtocolError> {
        if self.pending_calls.fetch_add(1, Ordering::Relaxed) >= MAX_PENDING_CALLS {
            self.pending_calls.fetch_sub(1, Ordering::Relaxed);
            return Err(ProtocolError::failed(format!(
                "call {}: {MAX_PENDING_CALLS} calls wait for their reply; wait for some of them first",
                to.id
            )));
        }
        let me = self.me.clone();
        let sent = session.forward(method, params, move |reply| {
            if let Some(client) = me.upgrade() {
                client.pending_calls.fetch_sub(1, Ordering::Relaxed);
                on_reply(&client, reply);
            }
        });
        sent.map_err(|error| {
            self.pending_calls.fetch_sub(1, Ordering::Relaxed);
            match error {
                ForwardError::SessionEnded(_) => ProtocolError::no_session(),
                other => ProtocolError::failed(other.to_string()),
            }
        })
    }

    /// The same with parameters of ours.
    pub(super) fn forward_value(
        &self,
        session: &Session,
        method: &str,
        params: &Value,
        to: &ReplyTo,
    ) -> Result<(), ProtocolError> {
        self.forward(session, method, Some(&raw(params)?), to)
    }

    /// Asks for a session with a target. With `to`, its id is the reply to a call.
    pub(super) fn attach(&self, target: &str, parent: Parent, to: Option<ReplyTo>) {
        self.state().begin_attach(target, parent);
        self.send_attach(target, to);
    }

    /// Asks the browser for a session that the state waits for.
    pub(super) fn send_attach(&self, target: &str, to: Option<ReplyTo>) {
        let params = json!({"targetId": target, "flatten": true});
        let recipient = to.clone();
        let on_reply = {
            let target = target.to_owned();
            move |client: &Arc<Self>, reply| client.after_attach(&target, recipient.as_ref(), reply)
        };
        let nobody = ReplyTo { id: 0, session: None };
        let session = self.browser_session().ok_or_else(ProtocolError::no_session);
        let sent = session.and_then(|session| {
            let to = to.as_ref().unwrap_or(&nobody);
            self.forward_with(session, p::TARGET_ATTACH_TO_TARGET.name(), Some(&raw(&params)?), to, on_reply)
        });
        if let Err(error) = sent {
            self.fail_attach(target);
            if let Some(to) = to {
                self.reply_error(&to, &error);
            }
        }
    }

    fn after_attach(&self, target: &str, to: Option<&ReplyTo>, reply: ForwardedReply) {
        let ForwardedReply::Result(result) = &reply else {
            self.fail_attach(target);
            if let Some(to) = to {
                self.reply(to, reply);
            }
            return;
        };
        let result: Value = serde_json::from_slice(result).unwrap_or_default();
        let mut state = self.state();
        state.end_attaching(target);
        let id = result["sessionId"].as_str().and_then(|real| state.id_of(real));
        drop(state);
        self.record_change();
        match (to, id) {
            (Some(to), Some(id)) => self.reply_value(to, &json!({"sessionId": &*id})),
            (Some(to), None) => {
                self.reply_error(to, &ProtocolError::failed("No more sessions for this client"));
            }
            (None, _) => {}
        }
    }

    fn fail_attach(&self, target: &str) {
        let mut state = self.state();
        if let Some(Parent::Root(root)) = state.take_attaching(target)
            && let Some(root) = state.roots.get_mut(&root)
        {
            root.auto_attached.remove(target);
        }
        state.end_attaching(target);
        drop(state);
        self.record_change();
    }

    /// Starts pages and answers dialogs that the client has left waiting for too long.
    pub(crate) fn tick(&self) {
        let mut state = self.state();
        state.starts.retain(|_, (_, since)| since.elapsed() < START_TIMEOUT);
        for session in state.sessions.values_mut() {
            if session.dialog_since.take_if(|since| since.elapsed() > DIALOG_TIMEOUT).is_some() {
                session.real.send_no_reply(p::PAGE_HANDLE_JAVASCRIPT_DIALOG, &json!({"accept": true}));
            }
        }
    }

    pub(super) fn emit(&self, session: Option<&str>, method: &str, params: &[u8]) {
        if let Some(message) = message::event(session, method, params) {
            self.outbox.push(message);
        }
    }

    pub(super) fn reply(&self, to: &ReplyTo, reply: ForwardedReply) {
        match reply {
            ForwardedReply::Result(result) => self.send_reply(to, Outcome::Result, &result),
            ForwardedReply::Error(error) => self.send_reply(to, Outcome::Error, &error),
            ForwardedReply::Ended(_) => self.reply_error(to, &ProtocolError::no_session()),
        }
    }

    pub(super) fn reply_value(&self, to: &ReplyTo, result: &Value) {
        self.send_reply(to, Outcome::Result, result.to_string().as_bytes());
    }

    pub(super) fn reply_error(&self, to: &ReplyTo, error: &ProtocolError) {
        self.send_reply(to, Outcome::Error, &error.to_json());
    }

    fn send_reply(&self, to: &ReplyTo, outcome: Outcome, payload: &[u8]) {
        if let Some(message) = message::reply(to, outcome, payload) {
            self.outbox.push(message);
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let sessions: Vec<Session> =
            self.state().sessions.drain().map(|(_, session)| session.real.clone()).collect();
        for session in sessions {
            session.forget();
        }
    }
}

pub(super) fn raw(value: &Value) -> Result<Box<RawValue>, ProtocolError> {
    RawValue::from_string(value.to_string()).map_err(|error| ProtocolError::invalid(error.to_string()))
}
