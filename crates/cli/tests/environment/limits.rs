//! Waiting for a session, clients that disappear, idle connections and the end of the server.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use serde_json::json;
use testkit::{EnvClient, Webgym, eventually};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
};

use crate::{LIMIT, Server};

#[tokio::test(flavor = "multi_thread")]
async fn reset_waits_for_a_session_up_to_the_limit() {
    let server = Server::start(&["--queue-secs=2"]).await;
    let mut first = server.client().await;
    first.observe("reset", &json!({})).await;
    let mut second = server.client().await;
    let refused = second.ask("reset", &json!({})).await;
    let data = &refused["data"];
    assert_eq!(data["code"], "CAPACITY_REACHED", "{refused}");
    assert_eq!((&data["active_sessions"], &data["max_sessions"]), (&json!(1), &json!(1)));
    // The next attempt waits until the first session is closed.
    second.send("reset", &json!({})).await;
    eventually("the reset waits", LIMIT, async || server.metric("waiting").await == 1).await;
    drop(first);
    assert_eq!(second.receive().await.unwrap()["type"], "observation");
    assert_eq!(server.metric("waiting").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn client_that_disappears_releases_its_browser() {
    let server = Server::start(&[]).await;
    let mut stepping = server.client().await;
    stepping.observe("reset", &json!({})).await;
    stepping.send("step", &json!({"action_str": "noop(60000)"})).await;
    // The step takes longer than the limit of this test.
    drop(stepping);
    server.wait_until_released().await;
    let mut waiting = server.client().await;
    waiting.send("reset", &json!({})).await;
    drop(waiting);
    server.wait_until_released().await;
    let mut next = server.client().await;
    next.observe("reset", &json!({})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_session_ends_and_idle_connection_stays() {
    let server = Server::start(&["--idle-secs=1"]).await;
    let mut without_episode = server.client().await;
    let mut client = server.client().await;
    client.observe("reset", &json!({})).await;
    let ended = client.receive().await.unwrap();
    assert_eq!(ended["data"]["code"], "SESSION_ERROR", "{ended}");
    assert_eq!(client.receive().await, Err(Some(1008)));
    server.wait_until_released().await;
    assert_eq!(without_episode.ask("state", &json!({})).await["type"], "state");
}

/// Connections of the test of idle connections.
const IDLE_CONNECTIONS: usize = 10_000;
/// Idle connections that are opened at the same time.
const OPENED_AT_ONCE: usize = 32;

/// Raises the limit of open files, which the server inherits, and returns how many connections fit.
fn allow_connections(wanted: usize) -> usize {
    // Files that this process and the server need besides.
    const OTHER_FILES: usize = 600;
    let limit = getrlimit(Resource::Nofile);
    let maximum = limit.maximum.map_or(usize::MAX, |maximum| usize::try_from(maximum).unwrap());
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).unwrap();
    let fitting = wanted.min(maximum.saturating_sub(OTHER_FILES));
    if fitting < wanted {
        eprintln!("only {fitting} of {wanted} connections: this machine allows {maximum} open files");
    }
    fitting
}

/// Opens a WebSocket by hand: a real client would have large buffers.
async fn open_idle(host: &str) -> TcpStream {
    let mut stream = TcpStream::connect(host).await.unwrap();
    let request = format!(
        "GET /ws HTTP/1.1\r\nhost: {host}\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
         sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = Vec::new();
    while !response.ends_with(b"\r\n\r\n") {
        response.push(stream.read_u8().await.unwrap());
    }
    assert!(response.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&response));
    stream
}

async fn open_all_idle(host: &str, count: usize) -> Vec<TcpStream> {
    let mut opening = JoinSet::new();
    for first in 0..OPENED_AT_ONCE {
        let host = host.to_owned();
        opening.spawn(async move {
            let mut opened = Vec::new();
            for _ in (first..count).step_by(OPENED_AT_ONCE) {
                opened.push(open_idle(&host).await);
            }
            opened
        });
    }
    opening.join_all().await.into_iter().flatten().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_idle_connections_hold_no_browser() {
    let count = allow_connections(IDLE_CONNECTIONS);
    let server = Server::start(&[&format!("--max-connections={}", count + 1)]).await;
    let host = server.url().trim_start_matches("http://").to_owned();
    let idle = open_all_idle(&host, count).await;
    eventually("all are connected", LIMIT, async || {
        server.metric("connections").await == i64::try_from(count).unwrap()
    })
    .await;
    assert_eq!(server.metric("active_sessions").await, 0);
    let mut client = server.client().await;
    client.observe("reset", &json!({})).await;
    let mut beyond = server.client().await;
    assert_eq!(beyond.receive().await.unwrap()["data"]["code"], "CAPACITY_REACHED");
    assert_eq!(beyond.receive().await, Err(Some(1013)));
    drop(idle);
    eventually("all are gone", LIMIT, async || server.metric("connections").await == 1).await;
    let answered = client.observe("step", &json!({"answer": "42"})).await;
    assert_eq!(answered["reward"], 1.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn draining_server_finishes_episodes_and_starts_none() {
    let mut server = Server::start(&["--drain-secs=60"]).await;
    let mut running: EnvClient = server.client().await;
    running.observe("reset", &json!({})).await;
    let mut late = server.client().await;
    server.webgym.signal(Signal::TERM);
    let http = server.http();
    eventually("it is draining", LIMIT, async || http.get("/readyz", &[]).await.status == 503).await;
    assert_eq!(late.error_code("reset", &json!({})).await, "CAPACITY_REACHED");
    let answered = running.observe("step", &json!({"answer": "42"})).await;
    assert_eq!(answered["reward"], 1.0);
    assert_eq!(late.receive().await, Err(Some(1001)));
    assert_eq!(server.webgym.wait_for_exit(LIMIT).await.code(), Some(0), "{}", server.webgym.log());
    server.webgym.assert_no_leftovers(Duration::from_secs(20)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stopped_server_leaves_no_lease_on_its_farm() {
    let webgym = env!("CARGO_BIN_EXE_webgym");
    let farm = Webgym::start(webgym, &["serve", "1", "--master-port=0", "--node-port=0"]).await;
    let mut server = Webgym::start(webgym, &["env", "--port=0", "--farm", &farm.url("master")]).await;
    let mut client = EnvClient::connect(&server.url("env")).await;
    let free = client.observe("reset", &json!({})).await;
    assert_eq!(free["observation"]["goal"], "", "without tasks there is no goal");
    let page = "data:text/html,<button>Press</button>";
    let opened = client.observe("step", &json!({"visit_page": {"url": page}})).await;
    assert!(opened["observation"]["axtree_txt"].as_str().unwrap().contains("button 'Press'"), "{opened}");
    let available = async || farm.master().info().await["nodes"][0]["available"].as_u64();
    assert_eq!(available().await, Some(0));
    server.signal(Signal::INT);
    assert_eq!(client.receive().await, Err(Some(1001)));
    assert_eq!(server.wait_for_exit(LIMIT).await.code(), Some(0), "{}", server.log());
    eventually("the lease is released", LIMIT, async || available().await == Some(1)).await;
}
