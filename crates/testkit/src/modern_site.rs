//! A website that uses what makes replays hard: a service worker, a WebSocket, server-sent events, GraphQL-like requests to one
//! URL, cache busters, the clock, random numbers, animations, cookies and a login.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::{
        Path, Query, State, WebSocketUpgrade,
        ws::{Message, WebSocket},
    },
    http::{HeaderMap, header},
    response::{Html, IntoResponse, Redirect, Response},
    routing::{any, get, post},
};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};

/// What the site has counted. A test can change the version, and with it every text.
#[derive(Clone, Default)]
pub struct ModernSite(Arc<Inner>);

#[derive(Default)]
struct Inner {
    requests: AtomicU64,
    version: AtomicU64,
}

/// Secrets that the site sets or gets. None may be found in an archive.
pub const COOKIE_SECRET: &str = "cookie-secret-5f1c";
pub const PASSWORD_SECRET: &str = "hunter2-password-77";
pub const HEADER_SECRET: &str = "bearer-secret-90ab";

impl ModernSite {
    pub fn router(&self) -> Router {
        Router::new()
            .route("/", get(home))
            .route("/next", get(next))
            .route("/old", get(async || Redirect::to("/next")))
            .route("/account", get(account))
            .route("/login", post(login))
            .route("/app.js", get(async || script(APP)))
            .route("/sw.js", get(async || script(SERVICE_WORKER)))
            .route("/worker.js", get(async || script(WORKER)))
            .route("/style.css", get(async || ([(header::CONTENT_TYPE, "text/css")], STYLE)))
            .route("/api/{name}", get(api))
            .route("/graphql", post(graphql))
            .route("/live", any(live))
            .route("/events", get(events))
            .route("/part", get(async || Html("<!doctype html><title>Part</title><img src=/part.png>")))
            .route("/part.png", get(part))
            .with_state(self.clone())
    }

    /// Changes what the site says.
    pub fn set_version(&self, version: u64) {
        self.0.version.store(version, Ordering::SeqCst);
    }

    /// How many requests for data it has answered.
    pub fn requests(&self) -> u64 {
        self.0.requests.load(Ordering::SeqCst)
    }

    fn version(&self) -> u64 {
        self.0.version.load(Ordering::SeqCst)
    }

    fn count(&self) -> u64 {
        self.0.requests.fetch_add(1, Ordering::SeqCst) + 1
    }
}

fn now_ms() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()
}

fn script(source: &'static str) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/javascript"), (header::CACHE_CONTROL, "max-age=60")], source)
}

async fn home(State(site): State<ModernSite>) -> impl IntoResponse {
    let cookie = format!("sid={COOKIE_SECRET}; Path=/; HttpOnly");
    let page =
        HOME.replace("{version}", &site.version().to_string()).replace("{served}", &now_ms().to_string());
    ([(header::SET_COOKIE, cookie)], Html(page))
}

async fn next(State(site): State<ModernSite>) -> Html<String> {
    let served = now_ms();
    let version = site.version();
    Html(format!(
        "<!doctype html><html lang=en><title>Next</title><h1>Next page, version {version}</h1><p>Served at {served}</p>\
         <p id=date></p><a href=/>Home</a><script>date.textContent = 'Read on ' + new Date().toISOString()</script>"
    ))
}

async fn account(headers: HeaderMap) -> Html<String> {
    let known = headers
        .get(header::COOKIE)
        .is_some_and(|cookie| cookie.to_str().is_ok_and(|text| text.contains("user=")));
    let text = if known { "Welcome back" } else { "Please log in" };
    Html(format!("<!doctype html><html lang=en><title>Account</title><h1>{text}</h1><a href=/>Home</a>"))
}

async fn login(body: Bytes) -> impl IntoResponse {
    let is_right = String::from_utf8_lossy(&body).contains(PASSWORD_SECRET);
    let cookie = format!("user={}; Path=/", if is_right { COOKIE_SECRET } else { "" });
    ([(header::SET_COOKIE, cookie)], Redirect::to("/account"))
}

/// Answers differ with every request, like those of a busy shop.
async fn api(
    State(site): State<ModernSite>,
    Path(name): Path<String>,
    Query(query): Query<Vec<(String, String)>>,
) -> Json<Value> {
    let (count, version) = (site.count(), site.version());
    Json(
        json!({"name": name, "count": count, "version": version, "query": query, "at": now_ms().to_string()}),
    )
}

async fn graphql(State(site): State<ModernSite>, Json(request): Json<Value>) -> Json<Value> {
    let count = site.count();
    let page = request["variables"]["page"].as_u64().unwrap_or(0);
    let operation = request["operationName"].as_str().unwrap_or_default().to_owned();
    let version = site.version();
    let entries: Vec<String> = (0..3).map(|entry| format!("{operation} {page}.{entry} v{version}")).collect();
    Json(json!({"data": {"entries": entries, "count": count}}))
}

async fn live(upgrade: WebSocketUpgrade) -> Response {
    upgrade.on_upgrade(converse)
}

async fn converse(mut socket: WebSocket) {
    let started = now_ms();
    let _ = socket.send(Message::text(format!("price {started}"))).await;
    let mut count = 0;
    while let Some(Ok(message)) = socket.recv().await {
        if let Message::Text(text) = message {
            count += 1;
            let answer = format!("answer {count} to {text} at {}", now_ms());
            if socket.send(Message::text(answer)).await.is_err() {
                return;
            }
        }
    }
}

/// Three events, then nothing for ever.
async fn events() -> Response {
    let events =
        (1..=3).map(|number| Ok::<_, Infallible>(format!("data: event {number} at {}\n\n", now_ms())));
    let body = Body::from_stream(stream::iter(events).chain(stream::pending()));
    ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
}

/// Says that it has 1000 bytes, sends ten and stays open.
async fn part() -> impl IntoResponse {
    let sent = stream::once(async { Ok::<_, Infallible>("0123456789") }).chain(stream::pending());
    ([(header::CONTENT_LENGTH, "1000")], Body::from_stream(sent))
}

const STYLE: &str = "body { font: 16px sans-serif; margin: 20px } #pulse { width: 40px; height: 40px; background: teal; \
    animation: pulse 1s infinite alternate } @keyframes pulse { to { transform: translateX(200px) } } \
    #box { transition: margin-left 400ms; width: 20px; height: 20px; background: orange } #box.moved { margin-left: 300px }";

const HOME: &str = r"<!doctype html><html lang=en><meta charset=utf-8><title>Modern shop</title>
<link rel=stylesheet href=/style.css>
<h1>Modern shop, version {version}</h1>
<p>Served at {served}</p>
<p id=clock>-</p><p id=random>-</p><p id=items>-</p><p id=today>-</p><p id=list>-</p><p id=live>-</p><p id=stream>-</p>
<p id=service>-</p><p id=worker>-</p><p id=unreachable>-</p><p id=ticks>0</p><p id=frames>-</p>
<div id=pulse></div><div id=box></div>
<button id=more>More</button> <button id=ask>Ask</button> <button id=move>Move</button>
<form method=post action=/login><label>User <input name=user></label> <label>Password <input type=password name=password></label>
<button>Log in</button></form>
<a href=/next>Next page</a> <a href=/old>Old page</a>
<script src=/app.js></script>";

const APP: &str = r"
const show = (id, text) => { document.getElementById(id).textContent = text; };
const json = async (url, init) => (await fetch(url, init)).json();
show('clock', 'Clock ' + new Date().toISOString());
show('random', 'Random ' + Math.random().toFixed(8) + ' ' + crypto.randomUUID());
json('/api/items?sort=price&_=' + Date.now() + '&cb=' + Math.random()).then((d) => show('items', 'Items ' + d.count + ' at ' + d.at));
json('/api/today?date=' + new Date().toISOString().slice(0, 10)).then((d) => show('today', 'Today ' + d.at));
let page = 0;
const query = async (operationName) => {
  const body = JSON.stringify({ operationName, query: 'query ' + operationName, variables: { page, nonce: Math.random() } });
  const { data } = await json('/graphql', { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  show('list', data.entries.join(', ') + ' (' + data.count + ')');
};
query('Products');
document.getElementById('more').onclick = () => { page += 1; query('MoreProducts'); };
const socket = new WebSocket(location.origin.replace('http', 'ws') + '/live');
const said = [];
socket.onmessage = (event) => { said.push(event.data); show('live', said.join('; ')); };
document.getElementById('ask').onclick = () => socket.send('question ' + said.length);
document.getElementById('move').onclick = () => document.getElementById('box').classList.add('moved');
const heard = [];
new EventSource('/events').onmessage = (event) => { heard.push(event.data); show('stream', heard.join('; ')); };
fetch('https://unreachable.localhost:9/x').then(() => show('unreachable', 'answered'), () => show('unreachable', 'no answer'));
navigator.serviceWorker.register('/sw.js');
navigator.serviceWorker.ready.then(() => new Promise((done) => {
  if (navigator.serviceWorker.controller) done(); else navigator.serviceWorker.oncontrollerchange = done;
})).then(() => fetch('/from-worker')).then((r) => r.text()).then((text) => show('service', text));
const worker = new Worker('/worker.js');
worker.onmessage = (event) => show('worker', 'Worker ' + event.data);
let ticks = 0;
const timer = setInterval(() => { ticks += 1; show('ticks', 'Ticks ' + ticks); if (ticks === 6) clearInterval(timer); }, 250);
let frames = 0;
const frame = () => { frames += 1; if (frames <= 20) requestAnimationFrame(frame); show('frames', 'Frames ' + frames); };
requestAnimationFrame(frame);
";

const SERVICE_WORKER: &str = r"
self.addEventListener('install', () => self.skipWaiting());
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()));
self.addEventListener('fetch', (event) => {
  if (new URL(event.request.url).pathname !== '/from-worker') return;
  event.respondWith((async () => {
    const data = await (await fetch('/api/service?t=' + Date.now())).json();
    return new Response('Service worker got ' + data.count);
  })());
});
";

const WORKER: &str = r"
fetch('/api/worker').then((r) => r.json()).then((data) => postMessage('got ' + data.count));
";
