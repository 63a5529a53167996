//! The calls themselves: path, arguments, what comes back, what may be repeated.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use bytes::Bytes;
use proto::{Command, ImageFormat, InteractionMode};
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::{
    ClientError, FarmClient, FarmInfo, Lease, Observation, ObserveOptions, Repeat, Viewport,
    wire::check_image,
};
use crate::http::{Deadline, Received};

/// What is known about `/step` and `/observe`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Offer {
    Unknown,
    Yes,
    No,
}

impl FarmClient {
    /// Borrows a browser. While the farm is full it keeps asking until the deadline. `wait_secs` lets our farm queue the
    /// request, and the key lets it give the same browser to a repeated one; the Python system ignores both.
    pub async fn acquire(
        &self,
        lifetime_mins: u32,
        wait_secs: Option<u32>,
        idempotency_key: &str,
        deadline: Deadline,
    ) -> Result<Lease, ClientError> {
        let wait = wait_secs.map(|wait| wait.min(deadline.remaining().as_secs() as u32));
        let request = || {
            let mut query = vec![
                ("lifetime_mins", lifetime_mins.to_string()),
                ("idempotency_key", idempotency_key.to_owned()),
            ];
            query.extend(wait.map(|wait| ("wait_secs", wait.to_string())));
            self.request(Method::POST, "/get").query(&query)
        };
        let timeout = self.options.operation_timeout + Duration::from_secs(u64::from(wait.unwrap_or(0)));
        self.call_within(timeout, deadline, Repeat::Harmless, request, |received| {
            let body = json_body(received)?;
            Lease::read(&body).ok_or_else(|| ClientError::Other(format!("/get answered {body}")))
        })
        .await
    }

    /// Gives a browser back. When a lost answer makes us ask twice, "not in use" means that it worked.
    pub async fn release(&self, lease: &Lease, deadline: Deadline) -> Result<(), ClientError> {
        let attempts = AtomicU32::new(0);
        let request = || {
            attempts.fetch_add(1, Ordering::Relaxed);
            self.request(Method::POST, "/reset").query(&named(lease))
        };
        let result =
            self.call(deadline, Repeat::Harmless, request, |received| json_body(received).map(drop)).await;
        match result {
            Err(ClientError::InvalidInstance(_)) if attempts.load(Ordering::Relaxed) > 1 => Ok(()),
            other => other,
        }
    }

    /// The picture's bytes, always a PNG.
    pub async fn screenshot(
        &self,
        lease: &Lease,
        mode: InteractionMode,
        deadline: Deadline,
    ) -> Result<Bytes, ClientError> {
        let request = || {
            let mode = [("interaction_mode", mode.as_str())];
            self.request(Method::GET, "/screenshot").query(&named(lease)).query(&mode)
        };
        self.call(deadline, Repeat::Harmless, request, |received| {
            check_image(&received.body, ImageFormat::Png)?;
            Ok(received.body.clone())
        })
        .await
    }

    /// Carries out a command; gives its answer.
    pub async fn execute(
        &self,
        lease: &Lease,
        command: &Command,
        deadline: Deadline,
    ) -> Result<Value, ClientError> {
        let mut body = Map::from_iter([
            ("node".to_owned(), json!(lease.node)),
            ("instance_id".to_owned(), json!(lease.instance_id)),
        ]);
        body.extend(command.to_json());
        let body = Value::Object(body).to_string();
        let request = || {
            let post = self.request(Method::POST, "/execute");
            post.header("content-type", "application/json").body(body.clone())
        };
        self.call(deadline, repeat(command), request, json_body).await
    }

    /// The size of the screen.
    pub async fn metadata(&self, lease: &Lease, deadline: Deadline) -> Result<Viewport, ClientError> {
        let request = || self.request(Method::GET, "/metadata").query(&named(lease));
        self.call(deadline, Repeat::Harmless, request, |received| {
            let body = json_body(received)?;
            Viewport::read(&body).ok_or_else(|| ClientError::Other(format!("/metadata answered {body}")))
        })
        .await
    }

    /// Is the browser alive?
    pub async fn probe(&self, lease: &Lease, deadline: Deadline) -> Result<(), ClientError> {
        let request = || self.request(Method::GET, "/probe").query(&named(lease));
        let result =
            self.call(deadline, Repeat::Harmless, request, |received| json_body(received).map(drop)).await;
        match result {
            // Without a code, a failed probe is the Python system's word for a dead browser.
            Err(ClientError::Other(detail)) => Err(ClientError::InstanceLost(detail)),
            other => other,
        }
    }

    /// The nodes of the farm and what they hold.
    pub async fn info(&self, deadline: Deadline) -> Result<FarmInfo, ClientError> {
        let request = || self.request(Method::GET, "/info");
        self.call(deadline, Repeat::Harmless, request, |received| {
            let body = json_body(received)?;
            serde_json::from_value(body).map_err(|problem| ClientError::Other(format!("/info: {problem}")))
        })
        .await
    }

    fn offer(&self) -> Offer {
        match self.offer.load(Ordering::Relaxed) {
            1 => Offer::Yes,
            2 => Offer::No,
            _ => Offer::Unknown,
        }
    }

    fn learn(&self, offered: bool) {
        self.offer.store(if offered { 1 } else { 2 }, Ordering::Relaxed);
    }

    /// Does the farm have `/step` and `/observe`? Read once from its OpenAPI document.
    pub async fn supports_step(&self, deadline: Deadline) -> Result<bool, ClientError> {
        match self.offer() {
            Offer::Yes => return Ok(true),
            Offer::No => return Ok(false),
            Offer::Unknown => {}
        }
        let request = || self.request(Method::GET, "/openapi.json");
        let document = self.call(deadline, Repeat::Harmless, request, json_body).await;
        let offered = match document {
            Ok(document) => {
                ["/step", "/observe"].iter().all(|path| document.pointer(&pointer(path)).is_some())
            }
            Err(ClientError::NotOffered(_)) => false,
            Err(other) => return Err(other),
        };
        self.learn(offered);
        Ok(offered)
    }

    /// Looks at the page; in one round trip where the farm can.
    pub async fn observe(
        &self,
        lease: &Lease,
        look: &ObserveOptions,
        deadline: Deadline,
    ) -> Result<Observation, ClientError> {
        if self.offer() != Offer::No {
            let asked = self.one_trip("/observe", look.to_json(lease), Repeat::Harmless, deadline).await;
            if let Some(answer) = self.unless_not_offered(asked) {
                return answer;
            }
        }
        self.plain_observe(lease, look, deadline).await
    }

    /// Carries out a command and looks at the page; in one round trip where the farm can.
    pub async fn step(
        &self,
        lease: &Lease,
        command: &Command,
        look: &ObserveOptions,
        deadline: Deadline,
    ) -> Result<Observation, ClientError> {
        if self.offer() != Offer::No {
            let mut body = look.to_json(lease);
            body.insert("command".into(), Value::Object(command.to_json()));
            let asked = self.one_trip("/step", body, repeat(command), deadline).await;
            if let Some(answer) = self.unless_not_offered(asked) {
                return answer;
            }
        }
        self.plain_step(lease, command, look, deadline).await
    }

    fn unless_not_offered(
        &self,
        asked: Result<Observation, ClientError>,
    ) -> Option<Result<Observation, ClientError>> {
        match asked {
            Err(ClientError::NotOffered(_)) => {
                self.learn(false);
                None
            }
            Ok(observed) => {
                self.learn(true);
                Some(Ok(observed))
            }
            Err(other) => Some(Err(other)),
        }
    }

    async fn one_trip(
        &self,
        path: &str,
        body: Map<String, Value>,
        repeat: Repeat,
        deadline: Deadline,
    ) -> Result<Observation, ClientError> {
        let body = Value::Object(body).to_string();
        let request = || {
            let post = self.request(Method::POST, path).header("accept", "application/msgpack");
            post.header("content-type", "application/json").body(body.clone())
        };
        self.call(deadline, repeat, request, |received| {
            Observation::read(&received.body, &received.content_type)
        })
        .await
    }
}

/// A path as a JSON pointer into an OpenAPI document.
fn pointer(path: &str) -> String {
    format!("/paths/{}", path.replace('~', "~0").replace('/', "~1"))
}

fn named(lease: &Lease) -> [(&'static str, &str); 2] {
    [("instance_id", &lease.instance_id), ("node", &lease.node)]
}

/// A success's JSON. The Python system also reports failures under status 200.
fn json_body(received: &Received) -> Result<Value, ClientError> {
    let body: Value = serde_json::from_slice(&received.body)
        .map_err(|_| ClientError::Other(format!("not JSON: {:?}", received.excerpt())))?;
    if body.get("status").and_then(Value::as_str) == Some("error") {
        return Err(ClientError::of_body(500, &body));
    }
    Ok(body)
}

/// Looking, hovering and opening a page can be done twice; clicking, typing, scrolling and going back cannot.
fn repeat(command: &Command) -> Repeat {
    match command {
        Command::VisitPage { .. }
        | Command::HoverCoords { .. }
        | Command::HoverId { .. }
        | Command::SelectOption { .. }
        | Command::GetPageMetadata
        | Command::GetWebpageText { .. }
        | Command::GetInteractiveRects
        | Command::GetScreenshotInfo
        | Command::Screenshot { .. } => Repeat::Harmless,
        Command::Back
        | Command::ClickCoords { .. }
        | Command::ClickId { .. }
        | Command::FillCoords { .. }
        | Command::FillId { .. }
        | Command::PageDown(_)
        | Command::PageUp(_)
        | Command::ScrollId { .. }
        | Command::ScrollCoords { .. }
        | Command::HoverAndScrollCoords { .. }
        | Command::Keypress { .. }
        | Command::TabAndEnter
        | Command::Sleep { .. } => Repeat::OnlyUnsent,
    }
}
