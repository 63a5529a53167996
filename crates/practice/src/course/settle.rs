//! Obstacles: pages that change some time after a click, change continuously, or do not change at all.

use axum::{
    Json, Router,
    extract::{
        Query, State, WebSocketUpgrade,
        ws::{Message, WebSocket},
    },
    response::{
        Response, Sse,
        sse::{Event, KeepAlive},
    },
    routing::get,
};
use futures_util::{Stream, stream};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Obstacle, page};
use crate::shutdown::Shutdown;

pub(super) const OBSTACLES: &[Obstacle] = &[
    page!("settle/fetch", "Fetch, then change", "A click fetches (300 ms) and only then changes the page."),
    page!(
        "settle/chain",
        "Three fetches in a row",
        "A click starts three fetches of 100 ms, one after another."
    ),
    page!("settle/navigate", "Slow navigation", "A click navigates to a page that takes 500 ms."),
    page!("settle/location", "location.href", "A click assigns location.href."),
    page!("settle/timeout", "Timer, then navigation", "A click navigates from a timer of zero milliseconds."),
    page!("settle/submit", "Submit by script", "A click submits a form by script."),
    page!("settle/redirect", "Redirected twice", "A click leads over two redirects."),
    page!("settle/write", "document.write", "A click fetches and then rewrites the document."),
    page!("settle/transition", "Transition", "A click starts a transition of 400 ms."),
    page!("settle/nothing", "Nothing at all", "A click does nothing; there is nothing to wait for."),
    page!("settle/polling", "Endless polling", "The page fetches and changes every 100 ms, for ever."),
    page!("settle/websocket", "WebSocket", "A socket ticks for ever; another echoes."),
    page!("settle/events", "Event stream", "An EventSource ticks for ever."),
    page!("settle/css-animation", "Endless CSS animation", "Something turns for ever by style alone."),
    page!("settle/raf", "Endless script animation", "Something moves for ever by requestAnimationFrame."),
    page!(
        "settle/second-frame",
        "The frame after next",
        "A click changes the page two animation frames later."
    ),
    page!(
        "settle/app-socket",
        "Content over a WebSocket",
        "The page gets its content over a WebSocket, part by part."
    ),
    page!(
        "settle/app-handshake",
        "Slow WebSocket",
        "The page shows its content when a slow server accepts its WebSocket."
    ),
    page!("settle/app-events", "Content over an event stream", "The page is built after the first event."),
    page!("settle/app-parts", "Code on demand", "The page loads parts of its code after its load event."),
    page!("settle/app-busy", "Busy for a while", "The page says that it is busy until it has its content."),
    page!("settle/app-splash", "Splash screen", "A splash screen covers the page until it is complete."),
    page!("settle/always-busy", "Busy for ever", "The page says for ever that it is busy, but is complete."),
    page!("settle/never-fetch", "Fetch that never answers", "A request stays open for ever."),
];

/// Fast enough that a page never looks idle, slow enough to cause no load.
const TICK_INTERVAL_MS: u64 = 100;

pub(super) fn routes() -> Router<Shutdown> {
    Router::new()
        .route("/course/api/answer", get(answer))
        .route("/course/ws/ticker", get(ticker))
        .route("/course/ws/echo", get(echo))
        .route("/course/events", get(events))
}

#[derive(Deserialize)]
struct AnswerQuery {
    #[serde(default)]
    ms: u64,
    #[serde(default)]
    n: i64,
}

async fn answer(State(shutdown): State<Shutdown>, Query(query): Query<AnswerQuery>) -> Json<Value> {
    shutdown.sleep(query.ms).await;
    Json(json!({ "answer": "done", "n": query.n, "ms": query.ms }))
}

async fn ticker(State(shutdown): State<Shutdown>, upgrade: WebSocketUpgrade) -> Response {
    upgrade.on_upgrade(async move |mut socket: WebSocket| {
        let mut count = 0_u64;
        while shutdown.sleep_unless_stopped(TICK_INTERVAL_MS).await {
            count += 1;
            if socket.send(Message::text(count.to_string())).await.is_err() {
                return;
            }
        }
    })
}

/// Echoes messages. The connection is accepted after `ms` milliseconds.
async fn echo(
    State(shutdown): State<Shutdown>,
    Query(query): Query<AnswerQuery>,
    upgrade: WebSocketUpgrade,
) -> Response {
    shutdown.sleep(query.ms).await;
    upgrade.on_upgrade(async move |mut socket: WebSocket| {
        loop {
            let message = tokio::select! {
                () = shutdown.triggered() => return,
                message = socket.recv() => message,
            };
            let Some(Ok(message)) = message else { return };
            let has_payload = matches!(message, Message::Text(_) | Message::Binary(_));
            if has_payload && socket.send(message).await.is_err() {
                return;
            }
        }
    })
}

async fn events(
    State(shutdown): State<Shutdown>,
) -> Sse<impl Stream<Item = Result<Event, std::convert::Infallible>>> {
    let ticks = stream::unfold((shutdown, 1_u64), async |(shutdown, count)| {
        let is_running = shutdown.sleep_unless_stopped(TICK_INTERVAL_MS).await;
        is_running.then(|| (Ok(Event::default().data(count.to_string())), (shutdown, count + 1)))
    });
    Sse::new(ticks).keep_alive(KeepAlive::default())
}
