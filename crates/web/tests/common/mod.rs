//! A tab of a real Chromium, for the tests of the pages and for the examples that take their pictures: opens, clicks,
//! types, waits for what must become true, and hears every error the page causes.
#![allow(
    dead_code,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a helper of tests; each uses its part"
)]

use std::{
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use cdp::{Events, Launch, Process, Session, find, protocol as p};
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// Far longer than anything here takes, on a machine that does other things too.
const LIMIT: Duration = Duration::from_secs(40);

/// There is nothing to look at before `make web` has built the pages; `make test` does that first.
pub(crate) fn pages_are_built() {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../web/ui/dist/monitor.html").exists();
    assert!(built, "the pages are not built: run make web");
}

/// The page's own words when something went wrong there.
type Heard = Arc<Mutex<Vec<String>>>;

struct Root(mpsc::UnboundedSender<(String, String)>);

impl Events for Root {
    fn event(&self, _: &Session, method: &str, params: &[u8]) {
        if method == p::TARGET_ATTACHED_TO_TARGET {
            let event: Value = cdp::params(params).unwrap();
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            let _ = self.0.send((text(&event["sessionId"]), text(&event["targetInfo"]["targetId"])));
        }
    }
}

struct Ears(Heard);

impl Events for Ears {
    fn event(&self, _: &Session, method: &str, params: &[u8]) {
        let trouble = match method {
            p::RUNTIME_EXCEPTION_THROWN => true,
            p::RUNTIME_CONSOLE_API_CALLED | p::LOG_ENTRY_ADDED => {
                let event: Value = cdp::params(params).unwrap();
                let level = event["type"].as_str().or(event["entry"]["level"].as_str()).unwrap_or_default();
                matches!(level, "error" | "warning" | "assert")
            }
            _ => false,
        };
        if trouble {
            self.0.lock().unwrap().push(String::from_utf8_lossy(params).into_owned());
        }
    }
}

/// A browser with one page.
pub(crate) struct Tab {
    process: Process,
    page: Session,
    heard: Heard,
}

impl Tab {
    pub(crate) async fn open() -> Self {
        let executable = find(None).expect("a Chromium is here; run scripts/setup");
        let (sender, mut attached) = mpsc::unbounded_channel();
        let process =
            Launch::new(executable).start(Arc::new(Root(sender))).await.expect("the browser starts");
        let root = process.connection().root();
        let attach = json!({"autoAttach": true, "waitForDebuggerOnStart": false, "flatten": true, "filter": [{"type": "page"}]});
        root.run(p::TARGET_SET_AUTO_ATTACH, &attach).await.unwrap();
        root.run(p::TARGET_CREATE_TARGET, &json!({"url": "about:blank"})).await.unwrap();
        let (session, _) = attached.recv().await.unwrap();
        let heard = Heard::default();
        let page = process.connection().attach(&session, Arc::new(Ears(Arc::clone(&heard))));
        for domain in [p::PAGE_ENABLE, p::RUNTIME_ENABLE, p::LOG_ENABLE] {
            page.run(domain, &json!({})).await.unwrap();
        }
        page.run(p::EMULATION_SET_FOCUS_EMULATION_ENABLED, &json!({"enabled": true})).await.unwrap();
        let tab = Self { process, page, heard };
        tab.size(1280, 900, 1.0).await;
        tab
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }

    pub(crate) async fn close(self) {
        self.process.close().await;
    }

    /// CSS pixels, and device pixels for each.
    pub(crate) async fn size(&self, width: u32, height: u32, scale: f64) {
        let metrics =
            json!({"width": width, "height": height, "deviceScaleFactor": scale, "mobile": width < 500});
        self.page.run(p::EMULATION_SET_DEVICE_METRICS_OVERRIDE, &metrics).await.unwrap();
    }

    /// `light` or `dark`.
    pub(crate) async fn scheme(&self, scheme: &str) {
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.page.run(p::EMULATION_SET_EMULATED_MEDIA, &media).await.unwrap();
    }

    pub(crate) async fn visit(&self, url: &str) {
        let answer: Value = self.page.call(p::PAGE_NAVIGATE, &json!({"url": url})).await.unwrap();
        assert!(answer["errorText"].is_null(), "{url}: {answer}");
        self.until("document.readyState === 'complete'").await;
    }

    /// What the page's own scripts answer; promises are waited for.
    pub(crate) async fn js(&self, script: &str) -> Value {
        let params = json!({"expression": script, "returnByValue": true, "awaitPromise": true});
        let answer: Value = self.page.call_within(LIMIT, p::RUNTIME_EVALUATE, &params).await.unwrap();
        assert!(answer["exceptionDetails"].is_null(), "{script}: {}", answer["exceptionDetails"]);
        answer["result"]["value"].clone()
    }

    /// Until a script is true. The page itself looks again at each frame, so nothing here sleeps.
    pub(crate) async fn until(&self, script: &str) {
        let waiting = format!(
            "new Promise((done) => {{ const look = () => {{ let is = false; try {{ is = !!({script}); }} catch {{}} \
             if (is) done(true); else setTimeout(look, 16); }}; look(); }})"
        );
        // A page that goes elsewhere meanwhile takes the promise with it.
        let end = tokio::time::Instant::now() + LIMIT;
        while tokio::time::Instant::now() < end {
            let params = json!({"expression": waiting, "returnByValue": true, "awaitPromise": true});
            let answer: Result<Value, _> = self.page.call_within(LIMIT, p::RUNTIME_EVALUATE, &params).await;
            if answer.is_ok_and(|answer| answer["result"]["value"] == true) {
                return;
            }
        }
        let text = self.js("document.body.innerText").await;
        panic!("never came true: {script}\nthe page says: {text}");
    }

    /// Loads the page anew; when this returns, what is asked is asked of the new one.
    pub(crate) async fn reload(&self) {
        self.js("window.isTheOldPage = true; location.reload()").await;
        self.until("!window.isTheOldPage").await;
    }

    pub(crate) async fn text(&self, selector: &str) -> String {
        let script = format!("document.querySelector({})?.textContent ?? null", json!(selector));
        self.js(&script).await.as_str().unwrap_or_else(|| panic!("there is no {selector}")).to_owned()
    }

    pub(crate) async fn click_at(&self, x: f64, y: f64) {
        for (kind, buttons) in [("mouseMoved", 0), ("mousePressed", 1), ("mouseReleased", 0)] {
            let event = json!({"type": kind, "x": x, "y": y, "button": if kind == "mouseMoved" { "none" } else { "left" }, "buttons": buttons, "clickCount": 1});
            self.page.run(p::INPUT_DISPATCH_MOUSE_EVENT, &event).await.unwrap();
        }
    }

    /// Clicks the middle of an element, as a person would.
    pub(crate) async fn click(&self, selector: &str) {
        let script = format!(
            "(() => {{ const element = document.querySelector({}); if (!element) return null; element.scrollIntoView({{block: 'nearest'}}); \
             const box = element.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; }})()",
            json!(selector)
        );
        let point = self.js(&script).await;
        let at = |side: usize| point[side].as_f64().unwrap_or_else(|| panic!("there is no {selector}"));
        self.click_at(at(0), at(1)).await;
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

    /// Console errors and warnings, uncaught exceptions, refusals of the Content-Security-Policy: whatever went wrong.
    pub(crate) fn troubles(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }

    pub(crate) fn assert_no_trouble(&self) {
        assert_eq!(self.troubles(), Vec::<String>::new());
    }

    /// Violations that axe-core calls serious or critical. Without it (no `node_modules`) says so and finds none.
    pub(crate) async fn assert_accessible(&self, what: &str) {
        let axe = Path::new(env!("CARGO_MANIFEST_DIR")).join("../web/ui/node_modules/axe-core/axe.min.js");
        let Ok(script) = std::fs::read_to_string(&axe) else {
            eprintln!("axe-core is not here (run make web), so {what} is not checked with it");
            return;
        };
        self.js(&format!("{script}; 0")).await;
        let found = self
            .js("axe.run(document, { resultTypes: ['violations'] }).then((found) => found.violations \
                 .filter((one) => ['serious', 'critical'].includes(one.impact)) \
                 .map((one) => `${one.id}: ${one.help}: ${one.nodes.map((node) => node.html + ' ' + node.failureSummary).join(' | ')}`))")
            .await;
        assert_eq!(found, json!([]), "{what}");
    }
}
