//! The request handlers of the simulated farm: leases, pages, faults.

use std::{collections::HashMap, sync::Arc, sync::atomic::Ordering, time::Duration};

use axum::{
    Router,
    body::Bytes,
    extract::{RawQuery, State},
    http::{StatusCode, Uri},
};
use serde_json::{Value, json};

use super::{
    Call, FarmShared, FarmState, Fault,
    page::{Encoding, Page},
    wire::{HttpResponse, Observed, Raw, Screenshot, error, ok, respond, truncated},
};

pub(super) fn router(shared: Arc<FarmShared>) -> Router {
    Router::new().fallback(handle).with_state(shared)
}

/// Leases a free instance under a new id.
pub(super) fn lease(state: &mut FarmState, capacity: usize) -> Option<String> {
    if state.leased.len() >= capacity {
        return None;
    }
    let id = format!("{}:{}", uuid::Uuid::new_v4(), 9000 + state.leased.len());
    state.leased.insert(id.clone(), Page::new(state.granted));
    state.granted += 1;
    state.max_leased = state.max_leased.max(state.leased.len());
    Some(id)
}

struct CallInput {
    query: HashMap<String, String>,
    body: Value,
}

impl CallInput {
    fn text(&self, name: &str) -> &str {
        let value = self.query.get(name).map(String::as_str);
        value.or_else(|| self.body.get(name).and_then(Value::as_str)).unwrap_or_default()
    }

    /// Returns the browser command and its arguments.
    fn command(&self, path: &str) -> (String, Value) {
        let holder = if path == "/step" { self.body.get("command") } else { Some(&self.body) };
        let entries = holder.and_then(Value::as_object).into_iter().flatten();
        let mut named = entries.filter(|(name, _)| !matches!(name.as_str(), "node" | "instance_id"));
        named.next().map(|(name, arguments)| (name.clone(), arguments.clone())).unwrap_or_default()
    }
}

async fn handle(
    State(shared): State<Arc<FarmShared>>,
    uri: Uri,
    RawQuery(query): RawQuery,
    body: Bytes,
) -> HttpResponse {
    shared.requests.fetch_add(1, Ordering::Relaxed);
    let pairs = url::form_urlencoded::parse(query.as_deref().unwrap_or_default().as_bytes());
    let input = CallInput {
        query: pairs.into_owned().collect(),
        body: serde_json::from_slice(&body).unwrap_or(Value::Null),
    };
    let path = uri.path().to_owned();
    if path == "/openapi.json" && shared.options.combined_calls {
        return ok(&json!({"paths": {"/step": {}, "/observe": {}}}));
    }
    let has_command = matches!(path.as_str(), "/execute" | "/step");
    let (command, arguments) = if has_command { input.command(&path) } else { Default::default() };
    let _in_flight = InFlight::enter(&shared, kind(&path, &command));
    let call = record_call(&shared, &path, &command, &arguments, input.text("instance_id"));
    let fault = (shared.options.script)(&call);
    tokio::time::sleep(shared.options.latency).await;
    match fault {
        Fault::NoResponse => return std::future::pending().await,
        Fault::Slow(time) => tokio::time::sleep(time).await,
        Fault::InstanceLost => {
            return error(500, "instance_lost", "the browser behind this instance is gone");
        }
        Fault::NodeUnreachable => return error(502, "node_unreachable", "the node does not respond"),
        Fault::PageTimeout => return error(504, "timeout", "the page did not answer within 20 s"),
        Fault::Full => return full(),
        _ => {}
    }
    let response = dispatch(&shared, &path, &input, &command, &arguments, &fault).await;
    if fault == Fault::TruncatedResponse { truncated() } else { response }
}

async fn dispatch(
    shared: &FarmShared,
    path: &str,
    input: &CallInput,
    command: &str,
    arguments: &Value,
    fault: &Fault,
) -> HttpResponse {
    match path {
        "/get" => get(shared, input).await,
        "/reset" => {
            let known = shared.state().leased.remove(input.text("instance_id")).is_some();
            shared.freed.notify_waiters();
            if known { ok(&json!({"status": "success"})) } else { stale() }
        }
        "/info" => ok(&json!({"nodes": []})),
        "/network" => match &shared.options.network_report {
            Some(report) if shared.state().leased.contains_key(input.text("instance_id")) => ok(report),
            Some(_) => stale(),
            None => error(404, "not_found", "unknown endpoint"),
        },
        _ if is_missed(shared, path, input, fault) => {
            error(422, "replay_miss", "GET http://shop.test/missing.js is not in the archive")
        }
        "/metadata" | "/screenshot" | "/execute" => {
            single_call(shared, path, input, command, arguments, fault)
        }
        "/observe" | "/step" if shared.options.combined_calls => {
            combined_calls(shared, input, command, arguments, fault)
        }
        _ => error(404, "not_found", "unknown endpoint"),
    }
}

/// Returns whether a command fails because the archive of the lease lacks a request, now or earlier.
fn is_missed(shared: &FarmShared, path: &str, input: &CallInput, fault: &Fault) -> bool {
    let mut state = shared.state();
    let Some(page) = state.leased.get_mut(input.text("instance_id")) else { return false };
    page.is_incomplete |= *fault == Fault::ReplayMiss;
    page.is_incomplete && path != "/metadata"
}

async fn get(shared: &FarmShared, input: &CallInput) -> HttpResponse {
    let wait: f64 = input.text("wait_secs").parse().unwrap_or(0.0);
    let until = tokio::time::Instant::now() + Duration::from_secs_f64(wait);
    let key = input.text("idempotency_key").to_owned();
    loop {
        let freed = shared.freed.notified();
        {
            let mut state = shared.state();
            let known = state.by_key.get(&key).filter(|id| state.leased.contains_key(*id)).cloned();
            let is_new = known.is_none();
            if let Some(id) = known.or_else(|| lease(&mut state, shared.options.capacity)) {
                if is_new {
                    state.session_options.push(input.body.clone());
                }
                state.by_key.insert(key, id.clone());
                return ok(&json!({"instance_id": id, "node": "http://node.sim"}));
            }
        }
        if tokio::time::timeout_at(until, freed).await.is_err() {
            return full();
        }
    }
}

fn full() -> HttpResponse {
    error(503, "no_capacity", "No available nodes with capacity to create new instance")
}

fn stale() -> HttpResponse {
    error(400, "invalid_instance", "Invalid instance UUID")
}

/// Runs a command on a page; returns its result, or the error code and message.
fn act(
    page: &mut Page,
    command: &str,
    arguments: &Value,
    fault: &Fault,
) -> Result<Value, (&'static str, String)> {
    match (command, fault) {
        (_, Fault::CommandFailed) => {
            return Err(("element_not_found", "there is no such element".to_owned()));
        }
        ("visit_page", Fault::NavigationFailed) => {
            return Err(("navigation_failed", "net::ERR_NAME_NOT_RESOLVED".to_owned()));
        }
        ("visit_page", Fault::UrlRefused) => {
            return Err(("url_refused", "the address is private".to_owned()));
        }
        (_, Fault::NoEffect) => {}
        ("visit_page", _) => page.visit(arguments["url"].as_str().unwrap_or_default()),
        ("back", _) => page.back(),
        ("get_page_metadata", _) => return Ok(json!({"title": page.title(), "url": page.url()})),
        ("get_webpage_text", _) => return Ok(json!({"text": format!("You are at {}", page.url())})),
        ("get_screenshot_info", _) => return Ok(screenshot_info()),
        _ => page.change(),
    }
    Ok(json!({"status": "success"}))
}

fn screenshot_info() -> Value {
    json!({
        "visible_rects": ["1"], "rects_above": [], "rects_below": [], "id_mapping": {"1": "11"},
        "interactive_regions": {"11": {"tag_name": "button", "role": "button", "aria_name": "Go", "v_scrollable": false, "rects": []}},
    })
}

fn single_call(
    shared: &FarmShared,
    path: &str,
    input: &CallInput,
    command: &str,
    arguments: &Value,
    fault: &Fault,
) -> HttpResponse {
    let mut state = shared.state();
    let Some(page) = state.leased.get_mut(input.text("instance_id")) else { return stale() };
    match path {
        "/metadata" => ok(&json!({"width": 1280, "height": 768})),
        "/screenshot" => respond(
            StatusCode::OK,
            "image/png",
            shared.screenshots.take(page, *fault == Fault::BlankScreenshot, Encoding::Png),
        ),
        _ => match act(page, command, arguments, fault) {
            Ok(result) => ok(&result),
            Err((code, detail)) => error(500, code, &detail),
        },
    }
}

fn combined_calls(
    shared: &FarmShared,
    input: &CallInput,
    command: &str,
    arguments: &Value,
    fault: &Fault,
) -> HttpResponse {
    let mut state = shared.state();
    let Some(page) = state.leased.get_mut(input.text("instance_id")) else { return stale() };
    let (mut result, mut failed) = (None, None);
    if !command.is_empty() {
        match act(page, command, arguments, fault) {
            Ok(done) => result = Some(done),
            Err((code, detail)) => failed = Some(json!({"code": code, "detail": detail})),
        }
    }
    let encoding = Encoding::requested(input.text("format"));
    let data = Raw(shared.screenshots.take(page, *fault == Fault::BlankScreenshot, encoding));
    let marks = input.text("interaction_mode") == "set_of_marks";
    let observed = Observed {
        result,
        error: failed,
        settled: true,
        settle_ms: 1,
        screenshot: Screenshot { format: encoding.name(), width: 1280, height: 768, data },
        metadata: json!({"title": page.title(), "url": page.url()}),
        ac_tree: marks.then(|| "id: 1, text: Go, tag: button".to_owned()),
        unchanged: false,
    };
    drop(state);
    observed.to_response()
}

fn record_call(shared: &FarmShared, path: &str, command: &str, arguments: &Value, instance: &str) -> Call {
    let mut state = shared.state();
    let lease = state.leased.get(instance).map_or(usize::MAX, |page| page.lease);
    let mut next = |lease: &str| {
        let count = state.counts.entry((lease.to_owned(), format!("{path} {command}"))).or_default();
        *count += 1;
        *count - 1
    };
    let (nth, total) = (next(instance), next(""));
    let url = arguments["url"].as_str().unwrap_or_default().to_owned();
    let call = Call { path: path.to_owned(), command: command.to_owned(), url, lease, nth, total };
    if shared.options.record {
        state.calls.push(call.clone());
    } else if path == "/reset" {
        state.counts.retain(|(lease, _), _| lease != instance);
    }
    call
}

fn kind(path: &str, command: &str) -> &'static str {
    match (path, command) {
        ("/get", _) => "get",
        ("/reset", _) => "reset",
        ("/metadata", _) => "metadata",
        ("/screenshot", _) => "screenshot",
        ("/observe", _) => "observe",
        ("/step", _) => "step",
        (_, "visit_page") => "navigate",
        (_, "get_screenshot_info") => "ac_tree",
        (_, "get_page_metadata") => "page_metadata",
        ("/execute", _) => "execute",
        _ => "other",
    }
}

/// Counts a request as long as it is handled, also if the client disconnects.
struct InFlight<'a> {
    shared: &'a FarmShared,
    kind: &'static str,
}

impl<'a> InFlight<'a> {
    fn enter(shared: &'a FarmShared, kind: &'static str) -> Self {
        let mut state = shared.state();
        let now = state.in_flight.entry(kind.to_owned()).or_default();
        *now += 1;
        let now = *now;
        let max = state.max_in_flight.entry(kind.to_owned()).or_default();
        *max = now.max(*max);
        Self { shared, kind }
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        if let Some(now) = self.shared.state().in_flight.get_mut(self.kind) {
            *now -= 1;
        }
    }
}
