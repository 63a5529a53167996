//! A Chromium process that hosts instances, each in its own browser context. Owns the process and assigns every new
//! target to its context.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use cdp::{
    BrowserKind, Connection, EventHandler, IgnoreEvents, Launch, LaunchError, NoParams, PendingCall, Process,
    Session, SessionEnd, Version, protocol as p,
};
use serde::Deserialize;
use serde_json::json;

use crate::{
    context::{AttachedTarget, Context},
    emulation,
    error::BrowserError,
    instance::Instance,
    options::Options,
    page::{Page, SETUP_TIMEOUT},
    state,
};

/// Assigns new targets to the contexts they belong to.
#[derive(Default)]
pub(crate) struct TargetRouter(Mutex<HashMap<String, Weak<Context>>>);

impl TargetRouter {
    fn contexts(&self) -> MutexGuard<'_, HashMap<String, Weak<Context>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, context: &Arc<Context>) {
        let mut contexts = self.contexts();
        contexts.retain(|_, context| context.strong_count() > 0);
        contexts.insert(context.id().to_owned(), Arc::downgrade(context));
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AttachedToTarget {
    session_id: String,
    target_info: TargetInfo,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TargetInfo {
    target_id: String,
    #[serde(default)]
    browser_context_id: String,
}

impl EventHandler for TargetRouter {
    fn on_event(&self, root: &Session, method: &str, params: &[u8]) {
        if method != p::TARGET_ATTACHED_TO_TARGET {
            return;
        }
        let Ok(event) = cdp::parse_params::<AttachedToTarget>(params) else { return };
        let context = self.contexts().get(&event.target_info.browser_context_id).and_then(Weak::upgrade);
        let attached = AttachedTarget { session: event.session_id, target: event.target_info.target_id };
        match context {
            Some(context) => context.target_attached(root.connection(), attached),
            // A target of the browser itself, or of a context that is being disposed: let it run.
            None => root
                .connection()
                .attach(&attached.session, Arc::new(IgnoreEvents))
                .send_no_reply(p::RUNTIME_RUN_IF_WAITING_FOR_DEBUGGER, &NoParams {}),
        }
    }
}

/// A running browser in which instances can be created.
pub struct Host {
    process: Process,
    targets: Arc<TargetRouter>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CreatedContext {
    browser_context_id: String,
}

impl Host {
    pub async fn launch(launch: &Launch) -> Result<Self, LaunchError> {
        let targets = Arc::new(TargetRouter::default());
        let process = launch.start(Arc::clone(&targets) as Arc<dyn EventHandler>).await?;
        let unresponsive = |error| LaunchError::Unresponsive { path: launch.executable.path.clone(), error };
        let attach = json!({"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true, "filter": [{"type": "page"}]});
        process.connection().root().run(p::TARGET_SET_AUTO_ATTACH, &attach).await.map_err(unresponsive)?;
        Ok(Self { process, targets })
    }

    /// Creates an isolated instance with its own cookies, storage, cache and page.
    pub async fn instance(&self, options: &Options) -> Result<Instance, BrowserError> {
        let creator = Creator {
            targets: Arc::clone(&self.targets),
            user_agent: self.version().user_agent.clone(),
            files: self.profile().join("sessions"),
        };
        creator.create(self.process.connection(), options).await
    }

    pub fn version(&self) -> &Version {
        self.process.version()
    }

    pub fn kind(&self) -> BrowserKind {
        self.process.kind()
    }

    /// The process group of the browser's whole process tree.
    pub fn process_group(&self) -> u32 {
        self.process.process_group()
    }

    pub fn is_sandboxed(&self) -> bool {
        self.process.is_sandboxed()
    }

    pub fn profile(&self) -> &Path {
        self.process.profile()
    }

    pub fn connection(&self) -> &Connection {
        self.process.connection()
    }

    /// Why the connection to the browser closed; `None` while it is open.
    pub fn close_reason(&self) -> Option<SessionEnd> {
        self.process.connection().close_reason()
    }

    /// Asks the browser to exit and returns when its processes and its profile are gone.
    pub async fn close(self) {
        self.process.close().await;
    }

    /// Kills the browser and returns when its processes and its profile are gone.
    pub async fn kill(self) {
        self.process.kill().await;
    }
}

/// Creates instances in a browser.
#[derive(Clone)]
pub(crate) struct Creator {
    targets: Arc<TargetRouter>,
    /// The user agent of the browser.
    user_agent: String,
    /// The folder of the files of all sessions.
    files: PathBuf,
}

impl Creator {
    /// The folder of the files of all sessions.
    pub(crate) fn files(&self) -> &Path {
        &self.files
    }

    pub(crate) async fn create(
        &self,
        connection: &Connection,
        options: &Options,
    ) -> Result<Instance, BrowserError> {
        let options = Arc::new(options.clone());
        let context = self.new_context(&connection.root(), &options).await?;
        let dispose_on_error = DisposeGuard { connection, context: Some(Arc::clone(&context)) };
        if context.files().keeps_downloads() {
            let created = context.files().create_folder();
            created.map_err(|error| {
                BrowserError::Internal(format!("cannot create a folder for downloads: {error}"))
            })?;
        }
        let [downloads, permissions] = set_context_rules(&connection.root(), &context, &options);
        let page = Page::open(connection, &context, Arc::clone(&options)).await?;
        downloads.within(SETUP_TIMEOUT).await?;
        permissions.within(SETUP_TIMEOUT).await?;
        if let Some(storage_state) = &options.session.storage_state {
            state::overwrite(connection, &context, storage_state).await?;
        }
        dispose_on_error.disarm();
        Ok(Instance::new(connection.clone(), self.clone(), context, page, options))
    }

    /// Creates a context without a page. It ends with `session`.
    pub(crate) async fn create_context(
        &self,
        session: &Session,
        options: &Arc<Options>,
    ) -> Result<Arc<Context>, BrowserError> {
        let context = self.new_context(session, options).await?;
        for rule in set_context_rules(session, &context, options) {
            rule.within(SETUP_TIMEOUT).await?;
        }
        Ok(context)
    }

    async fn new_context(
        &self,
        session: &Session,
        options: &Arc<Options>,
    ) -> Result<Arc<Context>, BrowserError> {
        let mut params = json!({"disposeOnDetach": true});
        if let Some(proxy) = &options.proxy_server {
            params["proxyServer"] = proxy.as_str().into();
            params["proxyBypassList"] = "<-loopback>".into();
        }
        let CreatedContext { browser_context_id } =
            session.call(p::TARGET_CREATE_BROWSER_CONTEXT, &params).await?;
        let emulation = emulation::calls(options, &self.user_agent);
        let context = Context::new(browser_context_id, emulation, Arc::clone(options), &self.files);
        self.targets.add(&context);
        Ok(context)
    }
}

/// Sends the calls that restrict downloads and permissions in a new context.
fn set_context_rules(session: &Session, context: &Context, options: &Options) -> [PendingCall; 2] {
    let id = context.id();
    let granted = emulation::permissions(&options.session);
    [
        session.send(p::BROWSER_SET_DOWNLOAD_BEHAVIOR, &context.files().download_behavior(id)),
        session.send(p::BROWSER_GRANT_PERMISSIONS, &json!({"permissions": granted, "browserContextId": id})),
    ]
}

/// Disposes the context of an instance if its creation fails or is cancelled.
struct DisposeGuard<'a> {
    connection: &'a Connection,
    context: Option<Arc<Context>>,
}

impl DisposeGuard<'_> {
    fn disarm(mut self) {
        self.context = None;
    }
}

impl Drop for DisposeGuard<'_> {
    fn drop(&mut self) {
        if let Some(context) = self.context.take() {
            dispose_context(self.connection, &context);
        }
    }
}

/// Disposes a browser context without waiting for it.
pub(crate) fn dispose_context(connection: &Connection, context: &Context) {
    connection
        .root()
        .send_no_reply(p::TARGET_DISPOSE_BROWSER_CONTEXT, &json!({"browserContextId": context.id()}));
}
