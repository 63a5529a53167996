//! The requests of the simulated farm: leases, pages, faults.

use std::{collections::HashMap, sync::Arc, sync::atomic::Ordering, time::Duration};

use axum::{
    Router,
    body::Bytes,
    extract::{RawQuery, State},
    http::{StatusCode, Uri},
};
use serde_json::{Value, json};

use super::{
    Call, Fault, Shared, State as Inside,
    page::Page,
    wire::{Answer, Observed, Picture, Raw, answer, broken_off, error, ok},
};

pub(super) fn router(shared: Arc<Shared>) -> Router {
    Router::new().fallback(handle).with_state(shared)
}

/// A free instance under a new name.
pub(super) fn lease(inside: &mut Inside, capacity: usize) -> Option<String> {
    if inside.leased.len() >= capacity {
        return None;
    }
    let id = format!("{}:{}", uuid::Uuid::new_v4(), 9000 + inside.leased.len());
    inside.leased.insert(id.clone(), Page::new(inside.given));
    inside.given += 1;
    inside.most_leased = inside.most_leased.max(inside.leased.len());
    Some(id)
}

struct Asked {
    query: HashMap<String, String>,
    body: Value,
}

impl Asked {
    fn word(&self, name: &str) -> &str {
        let asked = self.query.get(name).map(String::as_str);
        asked.or_else(|| self.body.get(name).and_then(Value::as_str)).unwrap_or_default()
    }

    /// The one browser command, wherever this call carries it.
    fn command(&self, path: &str) -> (String, Value) {
        let holder = if path == "/step" { self.body.get("command") } else { Some(&self.body) };
        let entries = holder.and_then(Value::as_object).into_iter().flatten();
        let mut named = entries.filter(|(name, _)| !matches!(name.as_str(), "node" | "instance_id"));
        named.next().map(|(name, arguments)| (name.clone(), arguments.clone())).unwrap_or_default()
    }
}

async fn handle(
    State(shared): State<Arc<Shared>>,
    uri: Uri,
    RawQuery(query): RawQuery,
    body: Bytes,
) -> Answer {
    shared.requests.fetch_add(1, Ordering::Relaxed);
    let pairs = url::form_urlencoded::parse(query.as_deref().unwrap_or_default().as_bytes());
    let asked = Asked {
        query: pairs.into_owned().collect(),
        body: serde_json::from_slice(&body).unwrap_or(Value::Null),
    };
    let path = uri.path().to_owned();
    if path == "/openapi.json" && shared.options.one_trip {
        return ok(&json!({"paths": {"/step": {}, "/observe": {}}}));
    }
    let has_command = matches!(path.as_str(), "/execute" | "/step");
    let (command, arguments) = if has_command { asked.command(&path) } else { Default::default() };
    let _counted = InFlight::enter(&shared, kind(&path, &command));
    let call = note(&shared, &path, &command, &arguments, asked.word("instance_id"));
    let fault = (shared.options.script)(&call);
    tokio::time::sleep(shared.options.latency).await;
    match fault {
        Fault::Silence => return std::future::pending().await,
        Fault::Slow(time) => tokio::time::sleep(time).await,
        Fault::InstanceLost => {
            return error(500, "instance_lost", "the browser behind this instance is gone");
        }
        Fault::NodeUnreachable => return error(502, "node_unreachable", "the node does not answer"),
        Fault::Full => return full(),
        _ => {}
    }
    let answered = dispatch(&shared, &path, &asked, &command, &arguments, &fault).await;
    if fault == Fault::LoseAnswer { broken_off() } else { answered }
}

async fn dispatch(
    shared: &Shared,
    path: &str,
    asked: &Asked,
    command: &str,
    arguments: &Value,
    fault: &Fault,
) -> Answer {
    match path {
        "/get" => get(shared, asked).await,
        "/reset" => {
            let known = shared.state().leased.remove(asked.word("instance_id")).is_some();
            shared.freed.notify_waiters();
            if known { ok(&json!({"status": "success"})) } else { stale() }
        }
        "/info" => ok(&json!({"nodes": []})),
        "/metadata" | "/screenshot" | "/execute" => plain(shared, path, asked, command, arguments, fault),
        "/observe" | "/step" if shared.options.one_trip => one_trip(shared, asked, command, arguments, fault),
        _ => error(404, "not_found", "there is no such call"),
    }
}

async fn get(shared: &Shared, asked: &Asked) -> Answer {
    let wait: f64 = asked.word("wait_secs").parse().unwrap_or(0.0);
    let until = tokio::time::Instant::now() + Duration::from_secs_f64(wait);
    let key = asked.word("idempotency_key").to_owned();
    loop {
        let freed = shared.freed.notified();
        {
            let mut inside = shared.state();
            let known = inside.by_key.get(&key).filter(|id| inside.leased.contains_key(*id)).cloned();
            if let Some(id) = known.or_else(|| lease(&mut inside, shared.options.capacity)) {
                inside.by_key.insert(key, id.clone());
                return ok(&json!({"instance_id": id, "node": "http://node.sim"}));
            }
        }
        if tokio::time::timeout_at(until, freed).await.is_err() {
            return full();
        }
    }
}

fn full() -> Answer {
    error(503, "no_capacity", "No available nodes with capacity to create new instance")
}

fn stale() -> Answer {
    error(400, "invalid_instance", "Invalid instance UUID")
}

/// Carries out a command on a page; gives its answer or what failed.
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

fn plain(
    shared: &Shared,
    path: &str,
    asked: &Asked,
    command: &str,
    arguments: &Value,
    fault: &Fault,
) -> Answer {
    let mut inside = shared.state();
    let Some(page) = inside.leased.get_mut(asked.word("instance_id")) else { return stale() };
    match path {
        "/metadata" => ok(&json!({"width": 1280, "height": 768})),
        "/screenshot" => {
            answer(StatusCode::OK, "image/png", shared.pictures.of(page, *fault == Fault::White))
        }
        _ => match act(page, command, arguments, fault) {
            Ok(result) => ok(&result),
            Err((code, detail)) => error(500, code, &detail),
        },
    }
}

fn one_trip(shared: &Shared, asked: &Asked, command: &str, arguments: &Value, fault: &Fault) -> Answer {
    let mut inside = shared.state();
    let Some(page) = inside.leased.get_mut(asked.word("instance_id")) else { return stale() };
    let (mut result, mut failed) = (None, None);
    if !command.is_empty() {
        match act(page, command, arguments, fault) {
            Ok(done) => result = Some(done),
            Err((code, detail)) => failed = Some(json!({"code": code, "detail": detail})),
        }
    }
    let data = Raw(shared.pictures.of(page, *fault == Fault::White));
    let marks = asked.word("interaction_mode") == "set_of_marks";
    let observed = Observed {
        result,
        error: failed,
        settled: true,
        settle_ms: 1,
        screenshot: Picture { format: "png", width: 1280, height: 768, data },
        metadata: json!({"title": page.title(), "url": page.url()}),
        ac_tree: marks.then(|| "id: 1, text: Go, tag: button".to_owned()),
        unchanged: false,
    };
    drop(inside);
    observed.answer()
}

fn note(shared: &Shared, path: &str, command: &str, arguments: &Value, instance: &str) -> Call {
    let mut inside = shared.state();
    let lease = inside.leased.get(instance).map_or(usize::MAX, |page| page.lease);
    let mut next = |whose: &str| {
        let count = inside.counts.entry((whose.to_owned(), format!("{path} {command}"))).or_default();
        *count += 1;
        *count - 1
    };
    let (nth, total) = (next(instance), next(""));
    let url = arguments["url"].as_str().unwrap_or_default().to_owned();
    let call = Call { path: path.to_owned(), command: command.to_owned(), url, lease, nth, total };
    if shared.options.remember {
        inside.calls.push(call.clone());
    } else if path == "/reset" {
        inside.counts.retain(|(whose, _), _| whose != instance);
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

/// Counts a request while it is being answered, even when the client goes away.
struct InFlight<'a> {
    shared: &'a Shared,
    kind: &'static str,
}

impl<'a> InFlight<'a> {
    fn enter(shared: &'a Shared, kind: &'static str) -> Self {
        let mut inside = shared.state();
        let now = inside.in_flight.entry(kind.to_owned()).or_default();
        *now += 1;
        let now = *now;
        let most = inside.most_in_flight.entry(kind.to_owned()).or_default();
        *most = now.max(*most);
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
