//! What a CDP client of a tenant may use of the browser: the connection, the tenant's context, and contexts that the client
//! creates, which follow the same rules as the tenant's own.

use std::{
    path::PathBuf,
    sync::{Arc, Weak},
};

use cdp::{CallError, Connection, EventHandler, Method, Session, protocol as p};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::{
    clients::TargetWatcher, clipboard::Clipboard, context::Context, error::BrowserError, files::NodeSpace,
    host::Creator, options::Options, page::SETUP_TIMEOUT,
};

/// A tenant's part of a browser. Cloning is cheap.
#[derive(Clone)]
pub struct TenantBrowser {
    connection: Connection,
    creator: Creator,
    context: TenantContext,
    options: Arc<Options>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AttachedSession {
    session_id: String,
}

impl TenantBrowser {
    pub(crate) fn new(
        connection: Connection,
        creator: Creator,
        context: Arc<Context>,
        options: Arc<Options>,
    ) -> Self {
        Self { connection, creator, context: TenantContext(context), options }
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// A file for a recording, in the browser's profile, which is removed with the browser at the latest.
    pub fn recording_file(&self) -> PathBuf {
        self.creator.files().join(format!("{}.recording", self.context.id()))
    }

    /// The space of a recording, which counts as files of the node.
    pub fn recording_space(&self) -> NodeSpace {
        NodeSpace::new(Arc::clone(&self.options.files))
    }

    /// The size of the viewport in CSS pixels.
    pub fn viewport(&self) -> (u32, u32) {
        self.options.viewport
    }

    /// The context of the tenant itself.
    pub fn context(&self) -> &TenantContext {
        &self.context
    }

    /// Calls a method of the browser itself.
    pub async fn root_call(&self, method: Method, params: &Value) -> Result<Value, BrowserError> {
        Ok(self.connection.root().call(method, params).await?)
    }

    /// Opens a session with the browser for one client. What is attached or created in it ends with it.
    pub async fn open_session(&self, events: Arc<dyn EventHandler>) -> Result<ClientSession, BrowserError> {
        let root = self.connection.root();
        let reply: AttachedSession =
            root.call_within(SETUP_TIMEOUT, p::TARGET_ATTACH_TO_BROWSER_TARGET, &json!({})).await?;
        Ok(ClientSession(self.connection.attach(&reply.session_id, events)))
    }

    /// Creates a context that ends with `session`. Its pages use the proxy and the session options of the tenant.
    pub async fn create_context(&self, session: &Session) -> Result<TenantContext, BrowserError> {
        let mut options = (*self.options).clone();
        options.session.downloads = None;
        // No command advances the clock of these pages.
        options.determinism = None;
        let context = self.creator.create_context(session, &Arc::new(options)).await?;
        context.clients().set_made_by_client();
        Ok(TenantContext(context))
    }
}

/// A session of one client with the browser. Dropping it detaches it, which ends everything that was attached in it and
/// disposes of the contexts that were created in it.
pub struct ClientSession(Session);

impl ClientSession {
    pub fn session(&self) -> &Session {
        &self.0
    }

    /// Attaches to a page. The browser answers this itself, also for a page that hangs.
    pub(crate) async fn attach_page(
        &self,
        target: &str,
        events: Arc<dyn EventHandler>,
    ) -> Result<Session, CallError> {
        let params = json!({"targetId": target, "flatten": true});
        let reply: AttachedSession =
            self.0.call_within(SETUP_TIMEOUT, p::TARGET_ATTACH_TO_TARGET, &params).await?;
        Ok(self.0.connection().attach(&reply.session_id, events))
    }

    /// Detaches from a page.
    pub(crate) fn detach_page(&self, page: &Session) {
        if let Some(id) = page.id() {
            self.0.send_no_reply(p::TARGET_DETACH_FROM_TARGET, &json!({"sessionId": id}));
        }
        page.forget();
    }
}

impl Drop for ClientSession {
    fn drop(&mut self) {
        if let Some(id) = self.0.id() {
            let root = self.0.connection().root();
            root.send_no_reply(p::TARGET_DETACH_FROM_TARGET, &json!({"sessionId": id}));
        }
    }
}

/// A browser context of a tenant. Cloning is cheap.
#[derive(Clone)]
pub struct TenantContext(Arc<Context>);

impl TenantContext {
    pub fn id(&self) -> &str {
        self.0.id()
    }

    /// Returns the target of the page that commands act on, and is notified when another page takes its place.
    pub(crate) fn current_page(&self) -> watch::Receiver<Option<Arc<str>>> {
        self.0.current_page()
    }

    /// Whether a person has opened or closed windows that [`crate::Instance::follow_windows`] must apply.
    pub fn has_changed_windows(&self) -> bool {
        self.0.has_changed_windows()
    }

    /// Starts a new action, which may open one window.
    pub(crate) fn begin_action(&self) {
        self.0.begin_action();
    }

    /// Leaves the windows of the context to a CDP client until the guard is dropped.
    pub fn watch(&self, watcher: Weak<dyn TargetWatcher>) -> WatchGuard {
        let id = self.0.clients().add_watcher(watcher);
        self.0.clipboard().set_has_clients(true);
        for session in self.0.clients().page_sessions() {
            Clipboard::bind(&session);
        }
        WatchGuard { context: Arc::clone(&self.0), id }
    }

    /// Creates a target with the parameters of `Target.createTarget`; the context is filled in.
    pub async fn create_target(&self, session: &Session, mut params: Value) -> Result<Value, CallError> {
        params["browserContextId"] = self.id().into();
        let _creating = self.0.clients().lock_creation().await;
        session.call_within(SETUP_TIMEOUT, p::TARGET_CREATE_TARGET, &params).await
    }

    /// Leaves the dialogs and drags of a page to a CDP client; `None` if the context has no such page.
    pub fn claim(&self, target: &str) -> Option<PageClaim> {
        let claim = || PageClaim { context: Arc::clone(&self.0), target: target.to_owned() };
        self.0.clients().claim(target).then(claim)
    }
}

/// Leaves the windows of a context to a CDP client until it is dropped.
pub struct WatchGuard {
    context: Arc<Context>,
    id: u64,
}

impl Drop for WatchGuard {
    fn drop(&mut self) {
        self.context.clients().remove_watcher(self.id);
        let has_clients = self.context.clients().own_windows();
        self.context.clipboard().set_has_clients(has_clients);
        if !has_clients {
            // What a client emulated ended with its sessions; without this, so would the session options.
            for session in self.context.clients().page_sessions() {
                for call in self.context.emulation() {
                    session.send_no_reply(call.method, &call.params);
                }
            }
        }
    }
}

/// Leaves the dialogs and drags of a page to a CDP client until it is dropped.
pub struct PageClaim {
    context: Arc<Context>,
    target: String,
}

impl Drop for PageClaim {
    fn drop(&mut self) {
        self.context.clients().unclaim(&self.target);
    }
}
