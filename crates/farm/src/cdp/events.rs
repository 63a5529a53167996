//! The events of the browser for one client, filtered and with the client's own session ids. Everything here runs on the
//! reading task of the browser's pipe and never waits.

use std::{
    sync::{Arc, Weak},
    time::Instant,
};

use browser::{EventHandler, Session, SessionEnd, StartGuard, TargetWatcher, parse_params, protocol as p};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    MAX_SESSIONS,
    client::Client,
    outbox::CloseReason,
    params::Owner,
    policy,
    state::{Parent, RootId, TargetSession},
    targets::Target,
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InfoEvent {
    target_info: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AttachedEvent {
    session_id: String,
    target_info: Map<String, Value>,
    #[serde(default)]
    waiting_for_debugger: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DetachedEvent {
    session_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TargetEvent {
    target_id: String,
}

/// Handles the events of the client's session with the browser. Chromium reports the targets of all tenants there.
pub(crate) struct BrowserEvents(pub(crate) Weak<Client>);

impl EventHandler for BrowserEvents {
    fn on_event(&self, _: &Session, method: &str, params: &[u8]) {
        let Some(client) = self.0.upgrade() else { return };
        match method {
            p::TARGET_TARGET_CREATED | p::TARGET_TARGET_INFO_CHANGED => {
                if let Ok(event) = parse_params::<InfoEvent>(params) {
                    client.on_target_info(method, Target::new(event.target_info));
                }
            }
            p::TARGET_TARGET_DESTROYED | p::TARGET_TARGET_CRASHED => {
                if let Ok(event) = parse_params::<TargetEvent>(params) {
                    client.on_target_end(method, &event.target_id, params);
                }
            }
            p::TARGET_ATTACHED_TO_TARGET => {
                if let Ok(event) = parse_params(params) {
                    client.on_root_attached(event);
                }
            }
            p::TARGET_DETACHED_FROM_TARGET => client.on_detached(params),
            _ => {}
        }
    }

    fn on_session_end(&self, _: &SessionEnd) {
        if let Some(client) = self.0.upgrade() {
            client.outbox().close(CloseReason::BROWSER_GONE);
        }
    }
}

/// Handles the events of a client's session with a target.
struct TargetEvents {
    client: Weak<Client>,
    id: Arc<str>,
    /// The id that the client knows; `None` if the connection is this session.
    wire_id: Option<Arc<str>>,
}

impl EventHandler for TargetEvents {
    fn on_event(&self, session: &Session, method: &str, params: &[u8]) {
        let Some(client) = self.client.upgrade() else { return };
        match method {
            p::TARGET_ATTACHED_TO_TARGET => {
                if let Ok(event) = parse_params(params) {
                    client.on_attached(session, Parent::Session(Arc::clone(&self.id)), event);
                }
                return;
            }
            p::TARGET_DETACHED_FROM_TARGET => return client.on_detached(params),
            p::PAGE_JAVASCRIPT_DIALOG_OPENING => client.set_dialog(&self.id, Some(Instant::now())),
            "Page.javascriptDialogClosed" => client.set_dialog(&self.id, None),
            _ => {}
        }
        if policy::allows_event(method) {
            client.emit(self.wire_id.as_deref(), method, params);
        }
    }
}

impl TargetWatcher for Client {
    fn on_new_page(&self, target: &str, start: Arc<StartGuard>) {
        let mut state = self.state();
        if state.holds_new_pages() {
            state.starts.insert(target.to_owned(), (start, Instant::now()));
        }
    }
}

impl Client {
    fn on_target_info(self: &Arc<Self>, method: &str, target: Target) {
        let mut state = self.state();
        if target.kind() == "browser" || !state.owns_context(target.context()) {
            return;
        }
        let (id, kind) = (target.id().to_owned(), target.kind().to_owned());
        let params = json!({"targetInfo": target.describe(state.is_attached(&id))}).to_string();
        let is_new = state.set_target(target);
        let discovering = state.discovering(&kind);
        let sessions = if is_new { state.begin_auto_attach(&id, &kind) } else { 0 };
        drop(state);
        for root in discovering {
            self.emit(root.as_deref(), method, params.as_bytes());
        }
        for _ in 0..sessions {
            self.send_attach(&id, None);
        }
        self.record_change();
    }

    fn on_target_end(&self, method: &str, target: &str, params: &[u8]) {
        let mut state = self.state();
        let Some(kind) = state.target(target).map(|target| target.kind().to_owned()) else { return };
        if method == p::TARGET_TARGET_DESTROYED {
            state.remove_target(target);
        }
        let discovering = state.discovering(&kind);
        drop(state);
        for root in discovering {
            self.emit(root.as_deref(), method, params);
        }
        self.record_change();
    }

    /// Handles a session that [`Client::attach`] asked for.
    fn on_root_attached(self: &Arc<Self>, event: AttachedEvent) {
        let target = event.target_info.get("targetId").and_then(Value::as_str).unwrap_or_default();
        let parent = self.state().take_attaching(target);
        let Some(session) = self.browser_session() else { return };
        // Without a request the session is not the client's.
        if let Some(parent) = parent {
            self.on_attached(session, parent, event);
        }
    }

    /// Gives the client a session with a target.
    fn on_attached(self: &Arc<Self>, via: &Session, parent: Parent, event: AttachedEvent) {
        let target = Target::new(event.target_info);
        let mut state = self.state();
        if !state.owns_context(target.context()) || state.sessions.len() >= MAX_SESSIONS {
            drop(state);
            tracing::debug!(kind = target.kind(), "a CDP client gets no session with a target");
            via.send_no_reply(p::TARGET_DETACH_FROM_TARGET, &json!({"sessionId": event.session_id}));
            return;
        }
        let id: Arc<str> = uuid::Uuid::new_v4().simple().to_string().to_ascii_uppercase().into();
        let wire_id = (parent != Parent::Connection).then(|| Arc::clone(&id));
        let events = TargetEvents { client: Arc::downgrade(self), id: Arc::clone(&id), wire_id };
        let real = via.connection().attach(&event.session_id, Arc::new(events));
        let waiting = event.waiting_for_debugger || state.starts.contains_key(target.id());
        let announcement =
            json!({"sessionId": &*id, "targetInfo": target.describe(true), "waitingForDebugger": waiting});
        let receiver: Option<RootId> = match &parent {
            Parent::Root(root) => Some(root.clone()),
            Parent::Session(session) => {
                Some(Some(Arc::clone(session)).filter(|id| Some(id) != state.connection_session.as_ref()))
            }
            Parent::Connection => {
                state.connection_session = Some(Arc::clone(&id));
                None
            }
        };
        state.add_session(TargetSession {
            id,
            real,
            target: target.id().to_owned(),
            parent,
            claim: None,
            dialog_since: None,
        });
        drop(state);
        if let Some(receiver) = receiver {
            let params = announcement.to_string();
            self.emit(receiver.as_deref(), p::TARGET_ATTACHED_TO_TARGET, params.as_bytes());
        }
        self.record_change();
    }

    fn on_detached(&self, params: &[u8]) {
        let Ok(event) = parse_params::<DetachedEvent>(params) else { return };
        let mut state = self.state();
        let Some(id) = state.id_of(&event.session_id) else { return };
        let removed = state.remove_session(&id);
        let connection_session = state.connection_session.clone();
        if let Some(TargetSession { parent: Parent::Root(root), target, .. }) = removed.first()
            && let Some(root) = state.roots.get_mut(root)
        {
            root.auto_attached.remove(target);
        }
        drop(state);
        for session in &removed {
            session.real.forget();
        }
        let Some(session) = removed.first() else { return };
        let params = json!({"sessionId": &*id, "targetId": session.target}).to_string();
        match &session.parent {
            Parent::Root(root) => {
                self.emit(root.as_deref(), p::TARGET_DETACHED_FROM_TARGET, params.as_bytes());
            }
            Parent::Session(parent) => {
                let parent = Some(parent).filter(|id| Some(*id) != connection_session.as_ref());
                self.emit(parent.map(|id| &**id), p::TARGET_DETACHED_FROM_TARGET, params.as_bytes());
            }
            Parent::Connection => self.outbox().close(CloseReason::PAGE_CLOSED),
        }
        self.record_change();
    }

    fn set_dialog(&self, session: &str, since: Option<Instant>) {
        if let Some(session) = self.state().sessions.get_mut(session) {
            session.dialog_since = since;
        }
    }
}
