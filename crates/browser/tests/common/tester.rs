//! An agent with good eyes: acts on an instance by commands as a client sends them, finds the number on an
//! element's mark by looking where the element is, and sees what the page itself knows.

use std::{
    fmt::Write,
    time::{Duration, Instant},
};

use browser::{BrowserError, Instance, ObserveRequest, Screenshot, Settled};
use practice::Sites;
use proto::{
    Command, InteractionMode,
    page::{Rect, ScreenshotInfo},
};
use serde::Deserialize;
use serde_json::{Value, json};

const FIND: &str = include_str!("find.js");

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
        self.try_settled(command).await.map(|(answer, _)| answer)
    }

    pub(crate) async fn try_settled(
        &mut self,
        command: &Value,
    ) -> Result<(Value, Option<Settled>), BrowserError> {
        let body = command.as_object().expect("a command is an object");
        let command = Command::from_json(body, &[]).expect("a well-formed command");
        self.instance.execute_settled(&command).await
    }

    pub(crate) async fn run(&mut self, command: Value) -> Value {
        self.try_run(&command).await.unwrap_or_else(|error| panic!("{command}: {error}"))
    }

    pub(crate) async fn settled(&mut self, command: Value) -> Settled {
        let outcome = self.try_settled(&command).await.unwrap_or_else(|error| panic!("{command}: {error}"));
        outcome.1.expect("a command that acts tells how the page settled")
    }

    pub(crate) async fn fails(&mut self, command: Value) -> BrowserError {
        match self.try_run(&command).await {
            Ok(answer) => panic!("{command} was answered with {answer}"),
            Err(error) => error,
        }
    }

    /// The address of a path of the practice sites; whole addresses stay as they are.
    pub(crate) fn address(&self, path: &str) -> String {
        if path.starts_with('/') { self.sites.url(path) } else { path.to_owned() }
    }

    pub(crate) async fn visit(&mut self, path: &str) {
        let url = self.address(path);
        self.run(json!({"visit_page": {"url": url}})).await;
    }

    /// A page made up on the spot.
    pub(crate) async fn write(&mut self, html: &str) {
        let mut url = String::from("data:text/html;charset=utf-8,");
        for byte in html.bytes() {
            write!(url, "%{byte:02x}").expect("writing to a string");
        }
        self.run(json!({"visit_page": {"url": url}})).await;
    }

    /// The elements as a set-of-marks screenshot would number them; without the picture, which takes longer.
    pub(crate) async fn look(&mut self) -> ScreenshotInfo {
        let request = ObserveRequest {
            screenshot: false,
            elements: true,
            ..ObserveRequest::screenshot(InteractionMode::SetOfMarks)
        };
        self.instance.observe(&request).await.expect("an observation").elements.expect("elements")
    }

    pub(crate) async fn look_and_see(&mut self) -> (ScreenshotInfo, Screenshot) {
        let request = ObserveRequest::screenshot(InteractionMode::SetOfMarks);
        let seen = self.instance.observe(&request).await.expect("an observation");
        (seen.elements.expect("marks"), seen.screenshot.expect("a picture"))
    }

    /// What the page's own scripts answer.
    pub(crate) async fn js(&self, script: &str) -> Value {
        self.instance.evaluate(script).await.unwrap_or_else(|error| panic!("{script}: {error}"))
    }

    pub(crate) async fn text(&self, selector: &str) -> String {
        let script = format!("document.querySelector({})?.textContent ?? null", json!(selector));
        self.js(&script).await.as_str().unwrap_or_else(|| panic!("there is no {selector}")).to_owned()
    }

    pub(crate) async fn log(&self) -> Vec<String> {
        let text = self.js("document.getElementById('log')?.textContent ?? ''").await;
        text.as_str().unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// Where an element is. `>>` leads into a shadow root or a frame.
    pub(crate) async fn find(&self, selector: &str) -> Found {
        let found = self.js(&format!("({FIND})({})", json!(selector))).await;
        serde_json::from_value(found).unwrap_or_else(|_| panic!("there is no {selector} to be seen"))
    }

    /// The number on the mark of an element, as a fresh screenshot has it. `=Name` finds it by its name.
    pub(crate) async fn mark(&mut self, selector: &str) -> String {
        let info = self.look().await;
        let shown = self.shown(&info, selector).await;
        shown.unwrap_or_else(|| {
            let tree: String = info.ac_tree().chars().take(3000).collect();
            panic!("{selector} has no mark among:\n{tree}")
        })
    }

    pub(crate) async fn shown(&self, info: &ScreenshotInfo, selector: &str) -> Option<String> {
        if let Some(name) = selector.strip_prefix('=') {
            return info.visible_rects.iter().find(|shown| region(info, shown)["aria_name"] == name).cloned();
        }
        let found = self.find(selector).await;
        let at = |shown: &&String| {
            let region = region(info, shown);
            let tag = region["tag_name"].as_str().unwrap_or_default();
            tag.split(',').next() == Some(&found.tag) && same_place(&rects(region), &found.boxes)
        };
        info.visible_rects.iter().find(at).cloned()
    }

    /// Clicks the element of this name.
    pub(crate) async fn take_named(&mut self, name: &str) {
        let id = self.mark(&format!("={name}")).await;
        self.run(json!({"click_id": {"id": id}})).await;
    }

    /// Waits for something the page does on its own account, after a command has returned.
    pub(crate) async fn until(&self, script: &str) {
        self.until_within(Duration::from_secs(20), script).await;
    }

    pub(crate) async fn until_within(&self, limit: Duration, script: &str) {
        let end = Instant::now() + limit;
        while self.instance.evaluate(script).await.ok() != Some(json!(true)) {
            assert!(Instant::now() < end, "it never became true that {script}; log: {:?}", self.log().await);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until the instance has a single window left.
    pub(crate) async fn until_one_window(&self) {
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            let windows = self.instance.windows().await.expect("a list of windows");
            if windows.len() == 1 {
                return;
            }
            assert!(Instant::now() < end, "these windows stay: {windows:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

pub(crate) fn region<'a>(info: &'a ScreenshotInfo, shown: &str) -> &'a Value {
    let element = info.id_mapping[shown].as_str().expect("element ids are strings");
    &info.interactive_regions[element]
}

pub(crate) fn rects(region: &Value) -> Vec<Rect> {
    serde_json::from_value(region["rects"].clone()).expect("boxes")
}

/// Whether two elements have a box in common.
pub(crate) fn same_place(one: &[Rect], other: &[Rect]) -> bool {
    let same = |a: &Rect, b: &Rect| {
        [(a.x, b.x), (a.y, b.y), (a.width, b.width), (a.height, b.height)]
            .iter()
            .all(|(a, b)| (a - b).abs() < 1.5)
    };
    one.iter().any(|a| other.iter().any(|b| same(a, b)))
}
