//! Bare Chromium as the upper limit: one browser driven by raw protocol calls, without a server or leases, isolated
//! only by contexts. A step is one action, an animation frame, the load event if there is one, a PNG screenshot,
//! title and URL.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use cdp::{CallError, EventHandler, Launch, Process, Session, protocol as p};
use proto::Command;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::BenchError;

const CALL_TIMEOUT: Duration = Duration::from_secs(30);
const VIEWPORT: (u32, u32) = (1280, 768);

pub(crate) struct BareBrowser {
    process: Process,
    attached: Arc<AttachedSessions>,
}

/// Maps target ids to session ids.
struct AttachedSessions {
    sessions: Mutex<HashMap<String, String>>,
    changed: watch::Sender<u64>,
}

impl EventHandler for AttachedSessions {
    fn on_event(&self, _: &Session, method: &str, params: &[u8]) {
        if method != p::TARGET_ATTACHED_TO_TARGET {
            return;
        }
        let Ok(event) = cdp::parse_params::<Value>(params) else { return };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.insert(text(&event["targetInfo"]["targetId"]), text(&event["sessionId"]));
        self.changed.send_modify(|count| *count += 1);
    }
}

/// The loading state of a page.
#[derive(Clone, Copy, Debug, Default)]
struct LoadState {
    /// The page requested a navigation, for example by a click on a link, that has not started yet.
    is_requested: bool,
    /// Number of frames that are loading.
    loading: i64,
    finished: u64,
}

impl LoadState {
    fn is_idle(self) -> bool {
        !self.is_requested && self.loading <= 0
    }
}

struct LoadTracker(watch::Sender<LoadState>);

impl EventHandler for LoadTracker {
    fn on_event(&self, _: &Session, method: &str, params: &[u8]) {
        let is_current_tab =
            || cdp::parse_params::<Value>(params).is_ok_and(|event| event["disposition"] == "currentTab");
        self.0.send_modify(|loads| match method {
            p::PAGE_FRAME_REQUESTED_NAVIGATION if is_current_tab() => loads.is_requested = true,
            p::PAGE_NAVIGATED_WITHIN_DOCUMENT => loads.is_requested = false,
            p::PAGE_FRAME_STARTED_LOADING => {
                loads.is_requested = false;
                loads.loading += 1;
            }
            p::PAGE_FRAME_STOPPED_LOADING => {
                loads.loading -= 1;
                loads.finished += 1;
            }
            _ => {}
        });
    }
}

pub(crate) struct Page {
    session: Session,
    root: Session,
    context: String,
    loading: Arc<LoadTracker>,
}

impl From<CallError> for BenchError {
    fn from(error: CallError) -> Self {
        Self::Bare(error.to_string())
    }
}

impl BareBrowser {
    /// Starts the browser, with or without the flags that make pages cheaper.
    pub(crate) async fn start(executable: &cdp::Executable, tuned: bool) -> Result<Self, BenchError> {
        let attached =
            Arc::new(AttachedSessions { sessions: Mutex::default(), changed: watch::channel(0).0 });
        let launch = Launch { tuned, ..Launch::new(executable.clone()) };
        let process = launch
            .start(Arc::clone(&attached) as Arc<dyn EventHandler>)
            .await
            .map_err(|error| BenchError::Bare(error.to_string()))?;
        let attach = json!({"autoAttach": true, "waitForDebuggerOnStart": false, "flatten": true, "filter": [{"type": "page"}]});
        process.connection().root().run(p::TARGET_SET_AUTO_ATTACH, &attach).await?;
        Ok(Self { process, attached })
    }

    pub(crate) fn process_group(&self) -> u32 {
        self.process.process_group()
    }

    /// Creates a new context with a page.
    pub(crate) async fn new_page(&self) -> Result<Page, BenchError> {
        let root = self.process.connection().root();
        let created: Value =
            root.call(p::TARGET_CREATE_BROWSER_CONTEXT, &json!({"disposeOnDetach": true})).await?;
        let context = created["browserContextId"].as_str().unwrap_or_default().to_owned();
        let (width, height) = VIEWPORT;
        let target =
            json!({"url": "about:blank", "browserContextId": context, "width": width, "height": height});
        let created: Value = root.call(p::TARGET_CREATE_TARGET, &target).await?;
        let session = self.session_of(created["targetId"].as_str().unwrap_or_default()).await?;
        let loading = Arc::new(LoadTracker(watch::channel(LoadState::default()).0));
        let session =
            self.process.connection().attach(&session, Arc::clone(&loading) as Arc<dyn EventHandler>);
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        session.run(p::EMULATION_SET_DEVICE_METRICS_OVERRIDE, &metrics).await?;
        session.run(p::PAGE_ENABLE, &json!({})).await?;
        Ok(Page { session, root, context, loading })
    }

    async fn session_of(&self, target: &str) -> Result<String, BenchError> {
        let mut changed = self.attached.changed.subscribe();
        let found = || {
            let mut sessions = self.attached.sessions.lock().unwrap_or_else(PoisonError::into_inner);
            sessions.remove(target)
        };
        let waiting = async {
            loop {
                changed.borrow_and_update();
                if let Some(session) = found() {
                    return Some(session);
                }
                changed.changed().await.ok()?;
            }
        };
        let session = tokio::time::timeout(CALL_TIMEOUT, waiting).await.ok().flatten();
        session.ok_or_else(|| BenchError::Bare("the session of a new page was not attached".into()))
    }

    pub(crate) async fn close(self) {
        self.process.close().await;
    }
}

impl Page {
    /// Runs one step and returns the size of its screenshot.
    pub(crate) async fn step(&self, command: &Command) -> Result<usize, BenchError> {
        let finished = self.loading.0.borrow().finished;
        self.act(command).await?;
        self.settle().await?;
        if matches!(command, Command::VisitPage { .. } | Command::Back) {
            // The reply comes before the load starts; without this wait, the screenshot would show the previous page.
            let mut loading = self.loading.0.subscribe();
            let loaded = loading.wait_for(|loads| loads.finished > finished && loads.is_idle());
            let _ = tokio::time::timeout(CALL_TIMEOUT, loaded).await;
        }
        let parameters = json!({"format": "png", "optimizeForSpeed": true, "fromSurface": true});
        let screenshot = self.session.send(p::PAGE_CAPTURE_SCREENSHOT, &parameters);
        let expression = json!({"expression": "[document.title, location.href]", "returnByValue": true});
        let metadata = self.session.send(p::RUNTIME_EVALUATE, &expression);
        metadata.within(CALL_TIMEOUT).await?;
        let screenshot: Value = screenshot.within(CALL_TIMEOUT).await.and_then(|reply| reply.decode())?;
        let png = STANDARD
            .decode(screenshot["data"].as_str().unwrap_or_default())
            .map_err(|error| BenchError::Bare(error.to_string()))?;
        Ok(png.len())
    }

    async fn act(&self, command: &Command) -> Result<(), BenchError> {
        match command {
            Command::VisitPage { url } => self.run(p::PAGE_NAVIGATE, json!({"url": url})).await,
            Command::Back => {
                let history: Value = self.session.call(p::PAGE_GET_NAVIGATION_HISTORY, &json!({})).await?;
                let previous = history["currentIndex"].as_u64().unwrap_or(0).saturating_sub(1);
                let entry = usize::try_from(previous).ok().and_then(|index| history["entries"].get(index));
                let id = entry.map_or(Value::Null, |entry| entry["id"].clone());
                self.run(p::PAGE_NAVIGATE_TO_HISTORY_ENTRY, json!({"entryId": id})).await
            }
            Command::ClickCoords { point } => self.click(point.x, point.y).await,
            Command::FillCoords { point, fill } => {
                self.click(point.x, point.y).await?;
                self.run(p::INPUT_INSERT_TEXT, json!({"text": fill.value})).await
            }
            Command::HoverCoords { point } => self.dispatch_mouse("mouseMoved", point.x, point.y).await,
            Command::PageDown(scroll) => {
                let script = format!("scrollBy(0, {})", scroll.amount);
                self.run(p::RUNTIME_EVALUATE, json!({"expression": script})).await
            }
            other => Err(BenchError::Bare(format!("the workload does not use {other:?}"))),
        }
    }

    async fn click(&self, x: f64, y: f64) -> Result<(), BenchError> {
        for kind in ["mouseMoved", "mousePressed", "mouseReleased"] {
            self.dispatch_mouse(kind, x, y).await?;
        }
        Ok(())
    }

    async fn dispatch_mouse(&self, kind: &str, x: f64, y: f64) -> Result<(), BenchError> {
        let button = if kind == "mouseMoved" { "none" } else { "left" };
        self.run(
            p::INPUT_DISPATCH_MOUSE_EVENT,
            json!({"type": kind, "x": x, "y": y, "button": button, "clickCount": 1}),
        )
        .await
    }

    async fn run(&self, method: cdp::Method, params: Value) -> Result<(), BenchError> {
        self.session.run(method, &params).await.map_err(BenchError::from)
    }

    async fn settle(&self) -> Result<(), BenchError> {
        let frame =
            json!({"expression": "new Promise(done => requestAnimationFrame(done))", "awaitPromise": true});
        // A navigation rejects the promise, which also means that the page has reacted.
        match self.session.send(p::RUNTIME_EVALUATE, &frame).within(CALL_TIMEOUT).await {
            Ok(_) | Err(CallError::Rejected { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        let mut loading = self.loading.0.subscribe();
        let _ = tokio::time::timeout(CALL_TIMEOUT, loading.wait_for(|loads| loads.is_idle())).await;
        Ok(())
    }

    pub(crate) async fn dispose(self) -> Result<(), BenchError> {
        let context = json!({"browserContextId": self.context});
        self.root.run(p::TARGET_DISPOSE_BROWSER_CONTEXT, &context).await.map_err(BenchError::from)
    }
}
