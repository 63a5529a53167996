//! The virtual browser of a client: answers the methods of `Browser` and `Target` for this tenant only. Parameters are parsed
//! and written again, so that the browser gets exactly what was checked.

use std::sync::Arc;

use browser::{ForwardedReply, protocol as p};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{
    MAX_CONTEXTS, MAX_ROOTS,
    client::{Client, Origin, raw},
    filter::TargetFilter,
    message::{ClientCall, ProtocolError, ReplyTo},
    params::{Owner, check_url},
    state::{AutoAttach, ClientState, CreatedContext, Parent, Root, RootId},
};

/// The parameters of `Target.createTarget` that a client may set.
const CREATE_TARGET_PARAMS: &[&str] =
    &["url", "left", "top", "width", "height", "windowState", "newWindow", "background", "forTab", "focus"];

/// A call to the virtual browser.
struct RootCall<'a> {
    client: &'a Arc<Client>,
    /// The browser session in which events are reported.
    root: RootId,
    method: &'a str,
    params: Value,
    to: &'a ReplyTo,
}

/// Answers a call that concerns the browser.
pub(super) fn dispatch(
    client: &Arc<Client>,
    origin: &Origin,
    call: &ClientCall<'_>,
    to: &ReplyTo,
) -> Result<(), ProtocolError> {
    let method = &*call.method;
    let params = parse_params(method, call)?;
    if let Origin::Target { session, .. } = origin {
        let is_own = match method {
            "Target.setAutoAttach" => {
                check_flat(method, &params)?;
                true
            }
            "Target.getTargetInfo" => params.get("targetId").is_none(),
            _ => false,
        };
        if is_own {
            return client.forward_value(session, method, &params, to);
        }
    }
    let root = match origin {
        Origin::Root(root) => root.clone(),
        Origin::Target { .. } => None,
    };
    let mut call = RootCall { client, root, method, params, to };
    if method == "Browser.getWindowForTarget"
        && let Origin::Target { target, .. } = origin
        && call.params.get("targetId").is_none()
    {
        call.params["targetId"] = target.as_str().into();
    }
    call.run()
}

/// Passes a call on that acts on a browser context: the one it names, or the tenant's.
pub(super) fn in_context(
    client: &Arc<Client>,
    call: &ClientCall<'_>,
    to: &ReplyTo,
) -> Result<(), ProtocolError> {
    let method = &*call.method;
    let params = parse_params(method, call)?;
    RootCall { client, root: None, method, params, to }.forward_in_context()
}

fn parse_params(method: &str, call: &ClientCall<'_>) -> Result<Value, ProtocolError> {
    let params: Value = match call.params {
        Some(params) => serde_json::from_str(params.get()).map_err(|error| {
            ProtocolError::invalid(format!("{method}: the parameters are invalid: {error}"))
        })?,
        None => json!({}),
    };
    if params.is_object() { Ok(params) } else { Err(ProtocolError::invalid("params must be an object")) }
}

/// Only flat sessions are supported.
fn check_flat(method: &str, params: &Value) -> Result<(), ProtocolError> {
    let attaches = params["autoAttach"] != json!(false);
    if attaches && params["flatten"] != json!(true) {
        return Err(ProtocolError::refused(method, "sessions are flat here; set flatten: true"));
    }
    Ok(())
}

impl RootCall<'_> {
    fn run(self) -> Result<(), ProtocolError> {
        match self.method {
            "Browser.getVersion" => self.forward(),
            "Browser.close" => {
                self.reply(&json!({}));
                self.client.end_lease();
                Ok(())
            }
            "Browser.getWindowForTarget" => self.get_window(),
            "Browser.getWindowBounds" | "Browser.setWindowBounds" | "Browser.setContentsSize" => {
                let window = self.params["windowId"].as_i64();
                let is_own = window.is_some_and(|window| self.client.state().windows.contains(&window));
                if is_own { self.forward() } else { Err(ProtocolError::failed("Browser window not found")) }
            }
            "Target.activateTarget" | "Target.closeTarget" => {
                self.own_target()?;
                self.forward()
            }
            "Target.attachToTarget" => self.attach_to_target(),
            "Target.attachToBrowserTarget" => self.attach_to_browser(),
            "Target.detachFromTarget" => self.detach(),
            "Target.getTargets" => self.get_targets(),
            "Target.getTargetInfo" => self.get_target_info(),
            "Target.getBrowserContexts" => {
                self.get_contexts();
                Ok(())
            }
            "Target.setDiscoverTargets" => self.set_discover(),
            "Target.setAutoAttach" => self.set_auto_attach(),
            "Target.createTarget" => self.create_target(),
            "Target.createBrowserContext" => self.create_context(),
            "Target.disposeBrowserContext" => self.dispose_context(),
            // Permissions and downloads.
            _ => self.forward_in_context(),
        }
    }

    fn reply(&self, result: &Value) {
        self.client.reply_value(self.to, result);
    }

    fn parse<T: DeserializeOwned + Default>(&self, name: &str) -> Result<T, ProtocolError> {
        match self.params.get(name) {
            None => Ok(T::default()),
            Some(value) => serde_json::from_value(value.clone())
                .map_err(|error| ProtocolError::invalid(format!("{}: {name}: {error}", self.method))),
        }
    }

    fn own_target(&self) -> Result<String, ProtocolError> {
        let id = self.params["targetId"].as_str().unwrap_or_default();
        let known = self.client.state().target(id).is_some();
        if known { Ok(id.to_owned()) } else { Err(ProtocolError::failed("No target with given id found")) }
    }

    /// Passes the call to the browser as it is.
    fn forward(&self) -> Result<(), ProtocolError> {
        let session = self.client.browser_session().ok_or_else(ProtocolError::no_session)?;
        self.client.forward_value(session, self.method, &self.params, self.to)
    }

    fn forward_in_context(mut self) -> Result<(), ProtocolError> {
        let id = match &self.params["browserContextId"] {
            Value::Null => self.client.tenant().context().id().to_owned(),
            id => id.as_str().unwrap_or_default().to_owned(),
        };
        if !self.client.state().owns_context(&id) {
            return Err(ProtocolError::failed(format!("Failed to find browser context with id {id}")));
        }
        self.params["browserContextId"] = id.into();
        self.forward()
    }

    fn get_window(&self) -> Result<(), ProtocolError> {
        self.own_target()?;
        let session = self.client.browser_session().ok_or_else(ProtocolError::no_session)?;
        let to = self.to.clone();
        let on_reply = move |client: &Arc<Client>, reply| {
            if let ForwardedReply::Result(result) = &reply {
                let result: Value = serde_json::from_slice(result).unwrap_or_default();
                client.state().windows.extend(result["windowId"].as_i64());
            }
            client.reply(&to, reply);
        };
        self.client.forward_with(session, self.method, Some(&raw(&self.params)?), self.to, on_reply)
    }

    fn get_targets(&self) -> Result<(), ProtocolError> {
        let filter: TargetFilter = self.parse("filter")?;
        let state = self.client.state();
        let infos = self.describe_targets(&state, &filter);
        drop(state);
        self.reply(&json!({"targetInfos": infos}));
        Ok(())
    }

    /// The targets that a filter matches, with the virtual browser itself.
    fn describe_targets(&self, state: &ClientState, filter: &TargetFilter) -> Vec<Value> {
        let own = state.targets().filter(|target| filter.matches(target.kind()));
        let own = own.map(|target| target.describe(state.is_attached(target.id())));
        let browser = filter.matches("browser").then(|| self.browser_target());
        browser.into_iter().chain(own).collect()
    }

    /// The virtual browser as a target. Its id is that of the tenant's context, which no other target has.
    fn browser_target(&self) -> Value {
        json!({"targetId": self.client.tenant().context().id(), "type": "browser", "title": "", "url": "",
            "attached": true, "canAccessOpener": false})
    }

    fn is_browser_target(&self) -> bool {
        self.params["targetId"] == self.client.tenant().context().id()
    }

    fn get_target_info(&self) -> Result<(), ProtocolError> {
        let info = if self.params.get("targetId").is_none() || self.is_browser_target() {
            self.browser_target()
        } else {
            let id = self.own_target()?;
            let state = self.client.state();
            let target = state.target(&id).map(|target| target.describe(state.is_attached(&id)));
            target.ok_or_else(|| ProtocolError::failed("No target with given id found"))?
        };
        self.reply(&json!({"targetInfo": info}));
        Ok(())
    }

    /// The tenant's own context is the default one, which the protocol does not list.
    fn get_contexts(&self) {
        let ids: Vec<String> = self.client.state().created_contexts.keys().cloned().collect();
        let default = self.client.tenant().context().id();
        self.reply(&json!({"browserContextIds": ids, "defaultBrowserContextId": default}));
    }

    fn set_discover(&self) -> Result<(), ProtocolError> {
        let filter: TargetFilter = self.parse("filter")?;
        let discover: bool = self.parse("discover")?;
        let mut state = self.client.state();
        let infos = if discover { self.describe_targets(&state, &filter) } else { Vec::new() };
        let root = state.roots.get_mut(&self.root).ok_or_else(ProtocolError::no_session)?;
        root.discover = discover.then_some(filter);
        drop(state);
        for info in infos {
            let params = json!({"targetInfo": info}).to_string();
            self.client.emit(self.root.as_deref(), p::TARGET_TARGET_CREATED, params.as_bytes());
        }
        self.reply(&json!({}));
        Ok(())
    }

    fn set_auto_attach(&self) -> Result<(), ProtocolError> {
        check_flat(self.method, &self.params)?;
        let (enabled, wait): (bool, bool) =
            (self.parse("autoAttach")?, self.parse("waitForDebuggerOnStart")?);
        let filter: TargetFilter = self.parse("filter")?;
        let mut state = self.client.state();
        let root = state.roots.get_mut(&self.root).ok_or_else(ProtocolError::no_session)?;
        root.auto_attach = enabled.then_some(AutoAttach { wait, filter });
        let targets: Vec<(String, String)> =
            state.targets().map(|target| (target.id().to_owned(), target.kind().to_owned())).collect();
        let begun: Vec<(String, usize)> = targets
            .into_iter()
            .map(|(id, kind)| {
                let sessions = state.begin_auto_attach(&id, &kind);
                (id, sessions)
            })
            .collect();
        drop(state);
        for (id, sessions) in &begun {
            for _ in 0..*sessions {
                self.client.send_attach(id, None);
            }
        }
        // Clients expect to know all sessions when the call returns.
        let (client, to) = (Arc::clone(self.client), self.to.clone());
        self.client.spawn(async move {
            client.wait_until(|state| begun.iter().all(|(id, _)| !state.is_attaching(id))).await;
            client.reply_value(&to, &json!({}));
        });
        Ok(())
    }

    fn attach_to_target(&self) -> Result<(), ProtocolError> {
        if self.params["flatten"] != json!(true) {
            return Err(ProtocolError::refused(self.method, "sessions are flat here; set flatten: true"));
        }
        if self.is_browser_target() {
            return self.attach_to_browser();
        }
        let id = self.own_target()?;
        self.client.attach(&id, Parent::Root(self.root.clone()), Some(self.to.clone()));
        Ok(())
    }

    fn attach_to_browser(&self) -> Result<(), ProtocolError> {
        let id: Arc<str> = uuid::Uuid::new_v4().simple().to_string().to_ascii_uppercase().into();
        let mut state = self.client.state();
        if state.roots.len() >= MAX_ROOTS {
            return Err(ProtocolError::failed(format!(
                "a connection has at most {MAX_ROOTS} browser sessions"
            )));
        }
        state.roots.insert(Some(Arc::clone(&id)), Root::default());
        drop(state);
        let attached =
            json!({"sessionId": &*id, "targetInfo": self.browser_target(), "waitingForDebugger": false})
                .to_string();
        self.client.emit(self.root.as_deref(), p::TARGET_ATTACHED_TO_TARGET, attached.as_bytes());
        self.reply(&json!({"sessionId": &*id}));
        Ok(())
    }

    fn detach(&self) -> Result<(), ProtocolError> {
        let mut state = self.client.state();
        let named = self.params["sessionId"].as_str().map(Arc::<str>::from);
        if named.is_some() && state.roots.remove(&named).is_some() {
            let own = Parent::Root(named);
            let sessions: Vec<String> = state
                .sessions
                .values()
                .filter(|session| session.parent == own)
                .filter_map(|session| session.real.id().map(str::to_owned))
                .collect();
            drop(state);
            for session in sessions {
                self.detach_real(&session);
            }
            self.reply(&json!({}));
            return Ok(());
        }
        let target = self.params["targetId"].as_str();
        let session = state.sessions.values().find(|session| match (&named, target) {
            (Some(id), _) => session.id == *id,
            (None, Some(target)) => session.target == target,
            (None, None) => false,
        });
        let session = session.ok_or_else(ProtocolError::no_session)?;
        let real = session.real.id().unwrap_or_default().to_owned();
        let parent = match &session.parent {
            Parent::Session(parent) => state.sessions.get(parent).map(|parent| parent.real.clone()),
            _ => self.client.browser_session().cloned(),
        };
        drop(state);
        let parent = parent.ok_or_else(ProtocolError::no_session)?;
        self.client.forward_value(&parent, self.method, &json!({"sessionId": real}), self.to)
    }

    fn detach_real(&self, session: &str) {
        if let Some(browser) = self.client.browser_session() {
            browser.send_no_reply(p::TARGET_DETACH_FROM_TARGET, &json!({"sessionId": session}));
        }
    }

    fn create_target(mut self) -> Result<(), ProtocolError> {
        let url: String = self.parse("url")?;
        check_url(self.method, &url)?;
        let id: Option<String> = self.parse("browserContextId")?;
        let id = id.unwrap_or_else(|| self.client.tenant().context().id().to_owned());
        let context = self.client.state().context(&id).cloned();
        let context = context
            .ok_or_else(|| ProtocolError::failed(format!("Failed to find browser context with id {id}")))?;
        if let Some(params) = self.params.as_object_mut() {
            params.retain(|name, _| CREATE_TARGET_PARAMS.contains(&name.as_str()));
        }
        let (client, to, params) = (Arc::clone(self.client), self.to.clone(), self.params);
        self.client.spawn(async move {
            let Some(session) = client.browser_session() else { return };
            match context.create_target(session, params).await {
                Ok(result) => {
                    // Clients expect to know the session of a page that they have created.
                    let id = result["targetId"].as_str().unwrap_or_default();
                    client.wait_until(|state| state.target(id).is_some() && !state.is_attaching(id)).await;
                    client.reply_value(&to, &result);
                }
                Err(error) => client.reply_error(&to, &ProtocolError::failed(error.to_string())),
            }
        });
        Ok(())
    }

    fn create_context(&self) -> Result<(), ProtocolError> {
        if let Some(name) = ["proxyServer", "originsWithUniversalNetworkAccess"]
            .into_iter()
            .find(|name| self.params.get(*name).is_some_and(|value| !value.is_null()))
        {
            let reason = format!(
                "{name} would bypass the network rules; acquire the lease with the session option proxy"
            );
            return Err(ProtocolError::refused(self.method, &reason));
        }
        let mut state = self.client.state();
        if state.created_contexts.len() + state.pending_contexts >= MAX_CONTEXTS {
            let reason = format!("a connection may create {MAX_CONTEXTS} contexts; dispose of one first");
            return Err(ProtocolError::refused(self.method, &reason));
        }
        state.pending_contexts += 1;
        drop(state);
        let (client, to) = (Arc::clone(self.client), self.to.clone());
        self.client.spawn(async move {
            let Some(session) = client.browser_session() else { return };
            let created = client.tenant().create_context(session).await;
            let mut state = client.state();
            state.pending_contexts -= 1;
            match created {
                Ok(context) => {
                    let id = context.id().to_owned();
                    let watch = context.watch(client.watcher());
                    state.created_contexts.insert(id.clone(), CreatedContext { context, _watch: watch });
                    drop(state);
                    client.reply_value(&to, &json!({"browserContextId": id}));
                }
                Err(error) => {
                    drop(state);
                    client.reply_error(&to, &ProtocolError::failed(error.to_string()));
                }
            }
        });
        Ok(())
    }

    fn dispose_context(&self) -> Result<(), ProtocolError> {
        let id = self.params["browserContextId"].as_str().unwrap_or_default().to_owned();
        if id == self.client.tenant().context().id() {
            return Err(ProtocolError::refused(
                self.method,
                "it is the context of the lease; release the lease",
            ));
        }
        if !self.client.state().created_contexts.contains_key(&id) {
            return Err(ProtocolError::failed(format!("Failed to find browser context with id {id}")));
        }
        let session = self.client.browser_session().ok_or_else(ProtocolError::no_session)?;
        let to = self.to.clone();
        let on_reply = move |client: &Arc<Client>, reply| {
            if matches!(reply, ForwardedReply::Result(_)) {
                let disposed = client.state().created_contexts.remove(&id);
                drop(disposed);
            }
            client.reply(&to, reply);
        };
        let params = json!({"browserContextId": self.params["browserContextId"]});
        self.client.forward_with(session, self.method, Some(&raw(&params)?), self.to, on_reply)
    }
}
