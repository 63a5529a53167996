//! A test client: runs commands on an instance as a client sends them, finds the mark of an element by its position, and
//! evaluates scripts in the page.

use std::{
    fmt::Write,
    time::{Duration, Instant},
};

use browser::{BrowserError, Instance, ObserveRequest, Settled};
use practice::Sites;
use proto::{
    Command, InteractionMode,
    page::{Rect, ScreenshotInfo},
};
use serde::Deserialize;
use serde_json::{Value, json};

const FIND_ELEMENT: &str = include_str!("find_element.js");

pub(crate) struct Tester {
    pub(crate) instance: Instance,
    pub(crate) sites: &'static Sites,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Found {
    pub(crate) tag: String,
    pub(crate) boxes: Vec<Rect>,
}

impl Found {
    pub(crate) fn centre(&self) -> (f64, f64) {
        self.boxes[0].centre()
    }
}

impl Tester {
    pub(crate) fn new(instance: Instance, sites: &'static Sites) -> Self {
        Self { instance, sites }
    }

    pub(crate) async fn try_run(&mut self, command: &Value) -> Result<Value, BrowserError> {
        self.try_settled(command).await.map(|(reply, _)| reply)
    }

    pub(crate) async fn try_settled(
        &mut self,
        command: &Value,
    ) -> Result<(Value, Option<Settled>), BrowserError> {
        let body = command.as_object().expect("a command is an object");
        let command = Command::from_json(body, &[]).expect("a valid command");
        self.instance.execute_settled(&command).await
    }

    pub(crate) async fn run(&mut self, command: Value) -> Value {
        self.try_run(&command).await.unwrap_or_else(|error| panic!("{command}: {error}"))
    }

    pub(crate) async fn settled(&mut self, command: Value) -> Settled {
        let result = self.try_settled(&command).await.unwrap_or_else(|error| panic!("{command}: {error}"));
        result.1.expect("a command that acts settles")
    }

    pub(crate) async fn expect_error(&mut self, command: Value) -> BrowserError {
        match self.try_run(&command).await {
            Ok(reply) => panic!("{command} succeeded: {reply}"),
            Err(error) => error,
        }
    }

    /// Returns the URL of a path of the practice sites; complete URLs are returned unchanged.
    pub(crate) fn url(&self, path: &str) -> String {
        if path.starts_with('/') { self.sites.url(path) } else { path.to_owned() }
    }

    pub(crate) async fn visit(&mut self, path: &str) {
        let url = self.url(path);
        self.run(json!({"visit_page": {"url": url}})).await;
    }

    /// Visits a page with the given HTML.
    pub(crate) async fn visit_html(&mut self, html: &str) {
        let mut url = String::from("data:text/html;charset=utf-8,");
        for byte in html.bytes() {
            write!(url, "%{byte:02x}").expect("writing to a string");
        }
        self.run(json!({"visit_page": {"url": url}})).await;
    }

    /// Observes the elements with their marks, without the screenshot, which takes longer.
    pub(crate) async fn observe_elements(&mut self) -> ScreenshotInfo {
        let request = ObserveRequest {
            screenshot: false,
            elements: true,
            ..ObserveRequest::screenshot(InteractionMode::SetOfMarks)
        };
        self.instance.observe(&request).await.expect("an observation").elements.expect("elements")
    }

    /// Evaluates a script in the page.
    pub(crate) async fn js(&self, script: &str) -> Value {
        self.instance.evaluate(script).await.unwrap_or_else(|error| panic!("{script}: {error}"))
    }

    pub(crate) async fn text(&self, selector: &str) -> String {
        let script = format!("document.querySelector({})?.textContent ?? null", json!(selector));
        self.js(&script).await.as_str().unwrap_or_else(|| panic!("no element matches {selector}")).to_owned()
    }

    pub(crate) async fn log(&self) -> Vec<String> {
        let text = self.js("document.getElementById('log')?.textContent ?? ''").await;
        text.as_str().unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// Finds an element. `>>` in the selector enters a shadow root or a frame.
    pub(crate) async fn find(&self, selector: &str) -> Found {
        let found = self.js(&format!("({FIND_ELEMENT})({})", json!(selector))).await;
        serde_json::from_value(found).unwrap_or_else(|_| panic!("no visible element matches {selector}"))
    }

    /// Observes the elements and returns the mark id of one. `=Name` finds it by its accessible name.
    pub(crate) async fn mark(&mut self, selector: &str) -> String {
        let info = self.observe_elements().await;
        let mark = self.find_mark(&info, selector).await;
        mark.unwrap_or_else(|| {
            let tree: String = info.ac_tree().chars().take(3000).collect();
            panic!("{selector} has no mark among:\n{tree}")
        })
    }

    pub(crate) async fn find_mark(&self, info: &ScreenshotInfo, selector: &str) -> Option<String> {
        if let Some(name) = selector.strip_prefix('=') {
            return info.visible_rects.iter().find(|mark| region(info, mark)["aria_name"] == name).cloned();
        }
        let found = self.find(selector).await;
        let is_at_position = |mark: &&String| {
            let region = region(info, mark);
            let tag = region["tag_name"].as_str().unwrap_or_default();
            tag.split(',').next() == Some(&found.tag) && same_position(&rects(region), &found.boxes)
        };
        info.visible_rects.iter().find(is_at_position).cloned()
    }

    /// Clicks the element with this accessible name.
    pub(crate) async fn click_named(&mut self, name: &str) {
        let id = self.mark(&format!("={name}")).await;
        self.run(json!({"click_id": {"id": id}})).await;
    }

    /// Waits until a script evaluates to true, for what the page does after a command has returned.
    pub(crate) async fn wait_until(&self, script: &str) {
        self.wait_until_within(Duration::from_secs(20), script).await;
    }

    pub(crate) async fn wait_until_within(&self, timeout: Duration, script: &str) {
        let deadline = Instant::now() + timeout;
        while self.instance.evaluate(script).await.ok() != Some(json!(true)) {
            assert!(Instant::now() < deadline, "never true: {script}; log: {:?}", self.log().await);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until the instance has a single window left.
    pub(crate) async fn wait_until_single_window(&self) {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let windows = self.instance.windows().await.expect("a list of windows");
            if windows.len() == 1 {
                return;
            }
            assert!(Instant::now() < deadline, "windows left open: {windows:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

pub(crate) fn region<'a>(info: &'a ScreenshotInfo, mark: &str) -> &'a Value {
    let element = info.id_mapping[mark].as_str().expect("element ids are strings");
    &info.interactive_regions[element]
}

pub(crate) fn rects(region: &Value) -> Vec<Rect> {
    serde_json::from_value(region["rects"].clone()).expect("rects")
}

/// Whether two elements have a rectangle in common.
pub(crate) fn same_position(first: &[Rect], second: &[Rect]) -> bool {
    let same = |a: &Rect, b: &Rect| {
        [(a.x, b.x), (a.y, b.y), (a.width, b.width), (a.height, b.height)]
            .iter()
            .all(|(a, b)| (a - b).abs() < 1.5)
    };
    first.iter().any(|a| second.iter().any(|b| same(a, b)))
}
