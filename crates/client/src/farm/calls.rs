//! The calls of the farm's API: path, arguments, response, and whether a call may be repeated.

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use proto::{Command, ImageFormat, InteractionMode, SessionOptions, network::NetworkReport};
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::{
    ClientError, FarmClient, FarmInfo, GrantedLease, Lease, Observation, ObserveOptions, Viewport,
    client::{Repeat, StepSupport},
    wire::check_image,
};
use crate::http::{Deadline, HttpResponse};

impl FarmClient {
    /// Acquires a lease. While the farm is full, repeats the request until the deadline. Our farm queues the request for
    /// `wait_secs` and returns the same lease for the same key; the Python system ignores both.
    pub async fn acquire(
        &self,
        lifetime_mins: u32,
        wait_secs: Option<u32>,
        idempotency_key: &str,
        options: &SessionOptions,
        deadline: Deadline,
    ) -> Result<GrantedLease, ClientError> {
        let wait = wait_secs.map(|wait| wait.min(deadline.remaining().as_secs() as u32));
        let request = || {
            let mut query = vec![
                ("lifetime_mins", lifetime_mins.to_string()),
                ("idempotency_key", idempotency_key.to_owned()),
            ];
            query.extend(wait.map(|wait| ("wait_secs", wait.to_string())));
            let request = self.request(Method::POST, "/get").query(&query);
            if options.is_default() {
                return request;
            }
            request.header("content-type", "application/json").body(options.to_json().to_string())
        };
        let timeout = self.options.operation_timeout + Duration::from_secs(u64::from(wait.unwrap_or(0)));
        self.call_within(timeout, deadline, Repeat::Safe, request, |response| {
            let body = json_body(response)?;
            GrantedLease::read(&body)
                .ok_or_else(|| ClientError::Other(format!("unexpected response to /get: {body}")))
        })
        .await
    }

    /// Releases a lease. If the first response was lost, "not in use" in the second one means success.
    pub async fn release(&self, lease: &Lease, deadline: Deadline) -> Result<(), ClientError> {
        let attempts = AtomicU32::new(0);
        let request = || {
            attempts.fetch_add(1, Ordering::Relaxed);
            self.request(Method::POST, "/reset").query(&lease_query(lease))
        };
        let result =
            self.call(deadline, Repeat::Safe, request, |response| json_body(response).map(drop)).await;
        match result {
            Err(ClientError::InvalidInstance(_)) if attempts.load(Ordering::Relaxed) > 1 => Ok(()),
            other => other,
        }
    }

    /// Uploads a file, which pages of the lease can then be given.
    pub async fn upload(
        &self,
        lease: &Lease,
        name: &str,
        content: Bytes,
        deadline: Deadline,
    ) -> Result<(), ClientError> {
        let path = format!("/files/{}", encode_path(name));
        let request = || self.request(Method::PUT, &path).query(&lease_query(lease)).body(content.clone());
        self.call(deadline, Repeat::Safe, request, |response| json_body(response).map(drop)).await
    }

    /// Returns a part of the recording of a lease with the session option `record`.
    pub async fn recording(
        &self,
        lease: &Lease,
        part: &str,
        deadline: Deadline,
    ) -> Result<Bytes, ClientError> {
        let path = format!("/recording/{part}");
        let request = || self.request(Method::GET, &path).query(&lease_query(lease));
        self.call(deadline, Repeat::Safe, request, |response| Ok(response.body.clone())).await
    }

    /// Returns what was recorded or replayed of a lease with the session option `network`.
    pub async fn network(&self, lease: &Lease, deadline: Deadline) -> Result<NetworkReport, ClientError> {
        let request = || self.request(Method::GET, "/network").query(&lease_query(lease));
        self.call(deadline, Repeat::Safe, request, |response| {
            serde_json::from_value(json_body(response)?)
                .map_err(|error| ClientError::Other(format!("unexpected response to /network: {error}")))
        })
        .await
    }

    /// Returns a screenshot as PNG.
    pub async fn screenshot(
        &self,
        lease: &Lease,
        mode: InteractionMode,
        deadline: Deadline,
    ) -> Result<Bytes, ClientError> {
        let request = || {
            let mode = [("interaction_mode", mode.as_str())];
            self.request(Method::GET, "/screenshot").query(&lease_query(lease)).query(&mode)
        };
        self.call(deadline, Repeat::Safe, request, |response| {
            check_image(&response.body, ImageFormat::Png)?;
            Ok(response.body.clone())
        })
        .await
    }

    /// Executes a command and returns its result.
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

    /// Returns the size of the viewport.
    pub async fn metadata(&self, lease: &Lease, deadline: Deadline) -> Result<Viewport, ClientError> {
        let request = || self.request(Method::GET, "/metadata").query(&lease_query(lease));
        self.call(deadline, Repeat::Safe, request, |response| {
            let body = json_body(response)?;
            Viewport::read(&body)
                .ok_or_else(|| ClientError::Other(format!("unexpected response to /metadata: {body}")))
        })
        .await
    }

    /// Checks that the browser is alive.
    pub async fn probe(&self, lease: &Lease, deadline: Deadline) -> Result<(), ClientError> {
        let request = || self.request(Method::GET, "/probe").query(&lease_query(lease));
        let result =
            self.call(deadline, Repeat::Safe, request, |response| json_body(response).map(drop)).await;
        match result {
            // The Python system reports a dead browser as a failed probe without a code.
            Err(ClientError::Other(detail)) => Err(ClientError::InstanceLost(detail)),
            other => other,
        }
    }

    /// Returns the nodes of the farm and their capacity.
    pub async fn info(&self, deadline: Deadline) -> Result<FarmInfo, ClientError> {
        let request = || self.request(Method::GET, "/info");
        self.call(deadline, Repeat::Safe, request, |response| {
            let body = json_body(response)?;
            serde_json::from_value(body).map_err(|error| ClientError::Other(format!("/info: {error}")))
        })
        .await
    }

    fn step_support(&self) -> MutexGuard<'_, StepSupport> {
        lock(&self.step_support)
    }

    /// Returns whether the farm has `/step` and `/observe`, which is read once from its OpenAPI document.
    pub async fn supports_step(&self, deadline: Deadline) -> Result<bool, ClientError> {
        if let Some(known) = self.step_support().is_advertised {
            return Ok(known);
        }
        let request = || self.request(Method::GET, "/openapi.json");
        let document = self.call(deadline, Repeat::Safe, request, json_body).await;
        let is_advertised = match document {
            Ok(document) => {
                ["/step", "/observe"].iter().all(|path| document.pointer(&pointer(path)).is_some())
            }
            Err(ClientError::NotSupported(_)) => false,
            Err(other) => return Err(other),
        };
        self.step_support().is_advertised = Some(is_advertised);
        Ok(is_advertised)
    }

    /// Returns whether nothing is known to prevent `/step` and `/observe` on the node of a lease.
    pub fn has_step(&self, lease: &Lease) -> bool {
        let support = self.step_support();
        support.is_advertised != Some(false) && !support.nodes_without.contains(&lease.node)
    }

    /// Observes the page, in one request where the node supports it.
    pub async fn observe(
        &self,
        lease: &Lease,
        options: &ObserveOptions,
        deadline: Deadline,
    ) -> Result<Observation, ClientError> {
        if self.has_step(lease) {
            let response =
                self.combined_call("/observe", options.to_json(lease), Repeat::Safe, deadline).await;
            if let Some(result) = self.unless_unsupported(lease, response) {
                return result;
            }
        }
        self.observe_in_parts(lease, options, deadline).await
    }

    /// Executes a command and observes the page, in one request where the node supports it.
    pub async fn step(
        &self,
        lease: &Lease,
        command: &Command,
        options: &ObserveOptions,
        deadline: Deadline,
    ) -> Result<Observation, ClientError> {
        if self.has_step(lease) {
            let mut body = options.to_json(lease);
            body.insert("command".into(), Value::Object(command.to_json()));
            let response = self.combined_call("/step", body, repeat(command), deadline).await;
            if let Some(result) = self.unless_unsupported(lease, response) {
                return result;
            }
        }
        self.step_in_parts(lease, command, options, deadline).await
    }

    /// Records a node that does not support the call, and returns `None` then.
    fn unless_unsupported(
        &self,
        lease: &Lease,
        result: Result<Observation, ClientError>,
    ) -> Option<Result<Observation, ClientError>> {
        if matches!(result, Err(ClientError::NotSupported(_))) {
            self.step_support().nodes_without.insert(lease.node.clone());
            return None;
        }
        Some(result)
    }

    async fn combined_call(
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
        let failed_navigation = Mutex::new(None);
        let called = self
            .call(deadline, repeat, request, |response| {
                let observed = Observation::read(&response.body, &response.content_type)?;
                match &observed.failure {
                    // Repeated like a failed `/execute`; after the last attempt, its observation is returned.
                    Some(error @ ClientError::NavigationFailed(_)) if repeat == Repeat::Safe => {
                        let error = error.clone();
                        *lock(&failed_navigation) = Some(observed);
                        Err(error)
                    }
                    _ => Ok(observed),
                }
            })
            .await;
        match (called, lock(&failed_navigation).take()) {
            (Err(ClientError::NavigationFailed(_)), Some(observed)) => Ok(observed),
            (called, _) => called,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Encodes a file name as one segment of a path.
fn encode_path(name: &str) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(byte);
    let encode = |byte: u8| if is_plain(&byte) { (byte as char).to_string() } else { format!("%{byte:02X}") };
    name.bytes().map(encode).collect()
}

/// Returns the JSON pointer of a path in an OpenAPI document.
fn pointer(path: &str) -> String {
    format!("/paths/{}", path.replace('~', "~0").replace('/', "~1"))
}

fn lease_query(lease: &Lease) -> [(&'static str, &str); 2] {
    [("instance_id", &lease.instance_id), ("node", &lease.node)]
}

/// Parses the JSON of a success. The Python system also reports failures with status 200.
fn json_body(response: &HttpResponse) -> Result<Value, ClientError> {
    let body: Value = serde_json::from_slice(&response.body)
        .map_err(|_| ClientError::Other(format!("not JSON: {:?}", response.excerpt())))?;
    if body.get("status").and_then(Value::as_str) == Some("error") {
        return Err(ClientError::of_body(500, &body));
    }
    Ok(body)
}

/// Returns whether a command may run twice: observing, hovering and opening a page may; clicking, typing, scrolling and going
/// back may not.
fn repeat(command: &Command) -> Repeat {
    match command {
        Command::VisitPage { .. }
        | Command::HoverCoords { .. }
        | Command::HoverId { .. }
        | Command::SelectOption { .. }
        | Command::ListTabs
        | Command::SwitchTab { .. }
        | Command::GetPageMetadata
        | Command::GetWebpageText { .. }
        | Command::GetInteractiveRects
        | Command::GetScreenshotInfo
        | Command::Screenshot { .. } => Repeat::Safe,
        Command::Back
        | Command::Forward
        | Command::SetFiles { .. }
        | Command::OpenTab { .. }
        | Command::CloseTab { .. }
        | Command::MouseClick(_)
        | Command::MouseDown { .. }
        | Command::MouseMove { .. }
        | Command::MouseUp { .. }
        | Command::MouseWheel(_)
        | Command::Drag(_)
        | Command::TypeText { .. }
        | Command::KeyDown { .. }
        | Command::KeyUp { .. }
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
        | Command::Sleep { .. } => Repeat::IfUnsent,
    }
}
