//! A tab of a real Chromium, for the tests of the pages and the examples that take screenshots of them: opens pages, clicks,
//! types, waits for conditions, and records every error that a page reports.
#![allow(
    dead_code,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "test helpers; each test uses some of them"
)]

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use cdp::{EventHandler, Launch, Process, Session, find_browser, protocol as p};
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// Far longer than any step takes, even on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(40);

/// Fails with an explanation if the pages have not been built; `make test` builds them first.
pub(crate) fn require_built_pages() {
    let is_built = ui_folder().join("dist/monitor.html").exists();
    assert!(is_built, "the pages are not built: run `make web`");
}

/// The folder of the pages' sources, also for the tests of the CLI that include this file.
fn ui_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../web/ui")
}

/// Errors that the page reported, as the browser's events.
type PageErrors = Arc<Mutex<Vec<String>>>;

/// Sends the session and target ids of pages that the browser attaches to.
struct AttachListener(mpsc::UnboundedSender<(String, String)>);

impl EventHandler for AttachListener {
    fn on_event(&self, _: &Session, method: &str, params: &[u8]) {
        if method == p::TARGET_ATTACHED_TO_TARGET {
            let event: Value = cdp::parse_params(params).unwrap();
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            let _ = self.0.send((text(&event["sessionId"]), text(&event["targetInfo"]["targetId"])));
        }
    }
}

/// Records console errors, log entries and uncaught exceptions.
struct ErrorListener(PageErrors);

impl EventHandler for ErrorListener {
    fn on_event(&self, _: &Session, method: &str, params: &[u8]) {
        let is_error = match method {
            p::RUNTIME_EXCEPTION_THROWN => true,
            p::RUNTIME_CONSOLE_API_CALLED | p::LOG_ENTRY_ADDED => {
                let event: Value = cdp::parse_params(params).unwrap();
                let level = event["type"].as_str().or(event["entry"]["level"].as_str()).unwrap_or_default();
                matches!(level, "error" | "warning" | "assert")
            }
            _ => false,
        };
        if is_error {
            self.0.lock().unwrap().push(String::from_utf8_lossy(params).into_owned());
        }
    }
}

/// A browser with one page.
pub(crate) struct Tab {
    process: Process,
    page: Session,
    errors: PageErrors,
}

impl Tab {
    pub(crate) async fn open() -> Self {
        let executable = find_browser(None).expect("no Chromium found: run scripts/setup");
        let (sender, mut attached) = mpsc::unbounded_channel();
        let process = Launch::new(executable)
            .start(Arc::new(AttachListener(sender)))
            .await
            .expect("the browser does not start");
        let root = process.connection().root();
        let attach = json!({"autoAttach": true, "waitForDebuggerOnStart": false, "flatten": true, "filter": [{"type": "page"}]});
        root.run(p::TARGET_SET_AUTO_ATTACH, &attach).await.unwrap();
        root.run(p::TARGET_CREATE_TARGET, &json!({"url": "about:blank"})).await.unwrap();
        let (session, _) = attached.recv().await.unwrap();
        let errors = PageErrors::default();
        let page = process.connection().attach(&session, Arc::new(ErrorListener(Arc::clone(&errors))));
        for domain in [p::PAGE_ENABLE, p::RUNTIME_ENABLE, p::LOG_ENABLE] {
            page.run(domain, &json!({})).await.unwrap();
        }
        page.run(p::EMULATION_SET_FOCUS_EMULATION_ENABLED, &json!({"enabled": true})).await.unwrap();
        let tab = Self { process, page, errors };
        tab.set_size(1280, 900, 1.0).await;
        tab
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.process_group()
    }

    pub(crate) async fn close(self) {
        self.process.close().await;
    }

    /// Sets the viewport in CSS pixels, and the number of device pixels per CSS pixel.
    pub(crate) async fn set_size(&self, width: u32, height: u32, scale: f64) {
        let metrics =
            json!({"width": width, "height": height, "deviceScaleFactor": scale, "mobile": width < 500});
        self.page.run(p::EMULATION_SET_DEVICE_METRICS_OVERRIDE, &metrics).await.unwrap();
    }

    /// Sets the preferred colour scheme: `light` or `dark`.
    pub(crate) async fn set_colour_scheme(&self, scheme: &str) {
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.page.run(p::EMULATION_SET_EMULATED_MEDIA, &media).await.unwrap();
    }

    pub(crate) async fn visit(&self, url: &str) {
        let answer: Value = self.page.call(p::PAGE_NAVIGATE, &json!({"url": url})).await.unwrap();
        assert!(answer["errorText"].is_null(), "{url}: {answer}");
        self.wait_until("document.readyState === 'complete'").await;
    }

    /// Evaluates a script in the page and returns its value; awaits a promise.
    pub(crate) async fn eval(&self, script: &str) -> Value {
        let params = json!({"expression": script, "returnByValue": true, "awaitPromise": true});
        let answer: Value = self.page.call_within(TIMEOUT, p::RUNTIME_EVALUATE, &params).await.unwrap();
        assert!(answer["exceptionDetails"].is_null(), "{script}: {}", answer["exceptionDetails"]);
        answer["result"]["value"].clone()
    }

    /// Waits until a script is true. The page itself polls every 16 ms.
    pub(crate) async fn wait_until(&self, script: &str) {
        let waiting = format!(
            "new Promise((done) => {{ const check = () => {{ let is = false; try {{ is = !!({script}); }} catch {{}} \
             if (is) done(true); else setTimeout(check, 16); }}; check(); }})"
        );
        // A navigation discards the promise, so evaluate again until the timeout.
        let end = tokio::time::Instant::now() + TIMEOUT;
        while tokio::time::Instant::now() < end {
            let params = json!({"expression": waiting, "returnByValue": true, "awaitPromise": true});
            let answer: Result<Value, _> = self.page.call_within(TIMEOUT, p::RUNTIME_EVALUATE, &params).await;
            if answer.is_ok_and(|answer| answer["result"]["value"] == true) {
                return;
            }
        }
        let text = self.eval("document.body.innerText").await;
        panic!("timed out waiting for: {script}\ntext of the page: {text}");
    }

    /// Reloads the page and returns once the new document is loaded.
    pub(crate) async fn reload(&self) {
        self.eval("window.isOldPage = true; location.reload()").await;
        self.wait_until("!window.isOldPage").await;
    }

    pub(crate) async fn text(&self, selector: &str) -> String {
        let script = format!("document.querySelector({})?.textContent ?? null", json!(selector));
        self.eval(&script)
            .await
            .as_str()
            .unwrap_or_else(|| panic!("no element matches {selector}"))
            .to_owned()
    }

    pub(crate) async fn click_at(&self, x: f64, y: f64) {
        for (kind, buttons) in [("mouseMoved", 0), ("mousePressed", 1), ("mouseReleased", 0)] {
            let event = json!({"type": kind, "x": x, "y": y, "button": if kind == "mouseMoved" { "none" } else { "left" }, "buttons": buttons, "clickCount": 1});
            self.page.run(p::INPUT_DISPATCH_MOUSE_EVENT, &event).await.unwrap();
        }
    }

    /// Clicks the centre of an element with the mouse.
    pub(crate) async fn click(&self, selector: &str) {
        let script = format!(
            "(() => {{ const element = document.querySelector({}); if (!element) return null; element.scrollIntoView({{block: 'nearest'}}); \
             const box = element.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; }})()",
            json!(selector)
        );
        let point = self.eval(&script).await;
        let coordinate =
            |axis: usize| point[axis].as_f64().unwrap_or_else(|| panic!("no element matches {selector}"));
        self.click_at(coordinate(0), coordinate(1)).await;
    }

    /// Presses a key by its name: `ArrowRight`, `Enter`, `a`.
    pub(crate) async fn press(&self, key: &str) {
        let code = match key {
            "Enter" => 13,
            "Tab" => 9,
            "Escape" => 27,
            "ArrowLeft" => 37,
            "ArrowUp" => 38,
            "ArrowRight" => 39,
            "ArrowDown" => 40,
            _ => 0,
        };
        let text = if key.chars().count() == 1 { Some(key) } else { (key == "Enter").then_some("\r") };
        let mut down = json!({"type": "keyDown", "key": key, "windowsVirtualKeyCode": code});
        if let Some(text) = text {
            down["text"] = text.into();
        }
        self.page.run(p::INPUT_DISPATCH_KEY_EVENT, &down).await.unwrap();
        let up = json!({"type": "keyUp", "key": key, "windowsVirtualKeyCode": code});
        self.page.run(p::INPUT_DISPATCH_KEY_EVENT, &up).await.unwrap();
    }

    pub(crate) async fn type_text(&self, text: &str) {
        self.page.run(p::INPUT_INSERT_TEXT, &json!({"text": text})).await.unwrap();
    }

    pub(crate) async fn screenshot(&self, file: &Path) {
        let answer: Value =
            self.page.call(p::PAGE_CAPTURE_SCREENSHOT, &json!({"format": "png"})).await.unwrap();
        std::fs::write(file, STANDARD.decode(answer["data"].as_str().unwrap()).unwrap()).unwrap();
    }

    /// Returns the console errors and warnings, uncaught exceptions and Content-Security-Policy violations so far.
    pub(crate) fn page_errors(&self) -> Vec<String> {
        self.errors.lock().unwrap().clone()
    }

    pub(crate) fn assert_no_errors(&self) {
        assert_eq!(self.page_errors(), Vec::<String>::new());
    }

    /// Fails if axe-core finds a serious or critical accessibility violation, or if axe-core is not installed.
    pub(crate) async fn assert_accessible(&self, what: &str) {
        let axe = ui_folder().join("node_modules/axe-core/axe.min.js");
        let script = std::fs::read_to_string(&axe).unwrap_or_else(|error| {
            panic!("cannot read axe-core from {}: {error}; run `npm ci` in crates/web/ui", axe.display())
        });
        self.eval(&format!("{script}; 0")).await;
        let violations = self
            .eval("axe.run(document, { resultTypes: ['violations'] }).then((result) => result.violations \
                 .filter((violation) => ['serious', 'critical'].includes(violation.impact)) \
                 .map((violation) => `${violation.id}: ${violation.help}: ${violation.nodes.map((node) => node.html + ' ' + node.failureSummary).join(' | ')}`))")
            .await;
        assert_eq!(violations, json!([]), "{what}");
    }
}
