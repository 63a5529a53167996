//! The limit: one Chromium driven by raw protocol calls, without a server, leases or isolation beyond contexts. A step is
//! one action, one animation frame and the load event if something loads, then a fast PNG, the page's title and address.

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

const LIMIT: Duration = Duration::from_secs(30);
const VIEWPORT: (u32, u32) = (1280, 768);

pub(crate) struct Bare {
    process: Process,
    attached: Arc<Attached>,
}

/// Which session belongs to which target.
struct Attached {
    sessions: Mutex<HashMap<String, String>>,
    changed: watch::Sender<u64>,
}

impl EventHandler for Attached {
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

/// What a page has to load.
#[derive(Clone, Copy, Debug, Default)]
struct Loads {
    /// It has asked to go elsewhere, as a click on a link does, and has not set out yet.
    asked: bool,
    /// Frames under way.
    loading: i64,
    finished: u64,
}

impl Loads {
    fn at_rest(self) -> bool {
        !self.asked && self.loading <= 0
    }
}

struct Loading(watch::Sender<Loads>);

impl EventHandler for Loading {
    fn on_event(&self, _: &Session, method: &str, params: &[u8]) {
        let here =
            || cdp::parse_params::<Value>(params).is_ok_and(|event| event["disposition"] == "currentTab");
        self.0.send_modify(|loads| match method {
            p::PAGE_FRAME_REQUESTED_NAVIGATION if here() => loads.asked = true,
            p::PAGE_NAVIGATED_WITHIN_DOCUMENT => loads.asked = false,
            p::PAGE_FRAME_STARTED_LOADING => {
                loads.asked = false;
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
    loading: Arc<Loading>,
}

fn failed(error: CallError) -> BenchError {
    BenchError::Bare(error.to_string())
}

impl Bare {
    pub(crate) async fn start(executable: &cdp::Executable) -> Result<Self, BenchError> {
        let attached = Arc::new(Attached { sessions: Mutex::default(), changed: watch::channel(0).0 });
        let launch = Launch::new(executable.clone());
        let process = launch
            .start(Arc::clone(&attached) as Arc<dyn EventHandler>)
            .await
            .map_err(|error| BenchError::Bare(error.to_string()))?;
        let attach = json!({"autoAttach": true, "waitForDebuggerOnStart": false, "flatten": true, "filter": [{"type": "page"}]});
        process.connection().root().run(p::TARGET_SET_AUTO_ATTACH, &attach).await.map_err(failed)?;
        Ok(Self { process, attached })
    }

    /// A fresh context with a page in it.
    pub(crate) async fn page(&self) -> Result<Page, BenchError> {
        let root = self.process.connection().root();
        let made: Value = root
            .call(p::TARGET_CREATE_BROWSER_CONTEXT, &json!({"disposeOnDetach": true}))
            .await
            .map_err(failed)?;
        let context = made["browserContextId"].as_str().unwrap_or_default().to_owned();
        let (width, height) = VIEWPORT;
        let target =
            json!({"url": "about:blank", "browserContextId": context, "width": width, "height": height});
        let made: Value = root.call(p::TARGET_CREATE_TARGET, &target).await.map_err(failed)?;
        let session = self.session_of(made["targetId"].as_str().unwrap_or_default()).await?;
        let loading = Arc::new(Loading(watch::channel(Loads::default()).0));
        let session =
            self.process.connection().attach(&session, Arc::clone(&loading) as Arc<dyn EventHandler>);
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        session.run(p::EMULATION_SET_DEVICE_METRICS_OVERRIDE, &metrics).await.map_err(failed)?;
        session.run(p::PAGE_ENABLE, &json!({})).await.map_err(failed)?;
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
        let session = tokio::time::timeout(LIMIT, waiting).await.ok().flatten();
        session.ok_or_else(|| BenchError::Bare("a page was never attached".into()))
    }

    pub(crate) async fn close(self) {
        self.process.close().await;
    }
}

impl Page {
    /// One step: acts, waits for the effect, looks. Answers with the bytes of the picture.
    pub(crate) async fn step(&self, command: &Command) -> Result<usize, BenchError> {
        let finished = self.loading.0.borrow().finished;
        self.act(command).await?;
        self.settle().await?;
        if matches!(command, Command::VisitPage { .. } | Command::Back) {
            // These are answered before the load has begun; without this the picture would be of the page before.
            let mut loading = self.loading.0.subscribe();
            let loaded = loading.wait_for(|loads| loads.finished > finished && loads.at_rest());
            let _ = tokio::time::timeout(LIMIT, loaded).await;
        }
        let shot = json!({"format": "png", "optimizeForSpeed": true, "fromSurface": true});
        let shot = self.session.send(p::PAGE_CAPTURE_SCREENSHOT, &shot);
        let about = json!({"expression": "[document.title, location.href]", "returnByValue": true});
        let about = self.session.send(p::RUNTIME_EVALUATE, &about);
        about.within(LIMIT).await.map_err(failed)?;
        let picture: Value = shot.within(LIMIT).await.and_then(|reply| reply.decode()).map_err(failed)?;
        let picture = STANDARD
            .decode(picture["data"].as_str().unwrap_or_default())
            .map_err(|error| BenchError::Bare(error.to_string()))?;
        Ok(picture.len())
    }

    async fn act(&self, command: &Command) -> Result<(), BenchError> {
        match command {
            Command::VisitPage { url } => self.run(p::PAGE_NAVIGATE, json!({"url": url})).await,
            Command::Back => {
                let history: Value =
                    self.session.call(p::PAGE_GET_NAVIGATION_HISTORY, &json!({})).await.map_err(failed)?;
                let before = history["currentIndex"].as_u64().unwrap_or(0).saturating_sub(1);
                let entry = usize::try_from(before).ok().and_then(|place| history["entries"].get(place));
                let id = entry.map_or(Value::Null, |entry| entry["id"].clone());
                self.run(p::PAGE_NAVIGATE_TO_HISTORY_ENTRY, json!({"entryId": id})).await
            }
            Command::ClickCoords { point } => self.click(point.x, point.y).await,
            Command::FillCoords { point, fill } => {
                self.click(point.x, point.y).await?;
                self.run(p::INPUT_INSERT_TEXT, json!({"text": fill.value})).await
            }
            Command::HoverCoords { point } => self.mouse("mouseMoved", point.x, point.y).await,
            Command::PageDown(scroll) => {
                let script = format!("scrollBy(0, {})", scroll.amount);
                self.run(p::RUNTIME_EVALUATE, json!({"expression": script})).await
            }
            other => Err(BenchError::Bare(format!("the load has no {other:?}"))),
        }
    }

    async fn click(&self, x: f64, y: f64) -> Result<(), BenchError> {
        for kind in ["mouseMoved", "mousePressed", "mouseReleased"] {
            self.mouse(kind, x, y).await?;
        }
        Ok(())
    }

    async fn mouse(&self, kind: &str, x: f64, y: f64) -> Result<(), BenchError> {
        let button = if kind == "mouseMoved" { "none" } else { "left" };
        self.run(
            p::INPUT_DISPATCH_MOUSE_EVENT,
            json!({"type": kind, "x": x, "y": y, "button": button, "clickCount": 1}),
        )
        .await
    }

    async fn run(&self, method: cdp::Method, params: Value) -> Result<(), BenchError> {
        self.session.run(method, &params).await.map_err(failed)
    }

    async fn settle(&self) -> Result<(), BenchError> {
        let frame =
            json!({"expression": "new Promise(done => requestAnimationFrame(done))", "awaitPromise": true});
        // A page that goes away takes the promise with it, which is an answer too.
        match self.session.send(p::RUNTIME_EVALUATE, &frame).within(LIMIT).await {
            Ok(_) | Err(CallError::Rejected { .. }) => {}
            Err(error) => return Err(failed(error)),
        }
        let mut loading = self.loading.0.subscribe();
        let _ = tokio::time::timeout(LIMIT, loading.wait_for(|loads| loads.at_rest())).await;
        Ok(())
    }

    pub(crate) async fn dispose(self) -> Result<(), BenchError> {
        let context = json!({"browserContextId": self.context});
        self.root.run(p::TARGET_DISPOSE_BROWSER_CONTEXT, &context).await.map_err(failed)
    }
}
