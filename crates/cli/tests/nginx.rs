//! A real nginx with the configuration that `webgym nginx-config` prints, in front of two masters and a run's monitor.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed helper fails its test")]

use std::{net::SocketAddr, time::Duration};

use hyper::Method;
use practice::Sites;
use rustix::process::Signal;
use serde_json::json;
use testkit::{CdpClient, EnvClient, Farm, Http, Lease, LiveClient, Nginx, Tier, Webgym, eventually};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    process::Command,
};

const WEBGYM: &str = env!("CARGO_BIN_EXE_webgym");
const TIMEOUT: Duration = Duration::from_secs(60);

/// Returns what `webgym nginx-config` prints for these arguments.
async fn generate_config(arguments: &[&str]) -> String {
    let output = Command::new(WEBGYM).arg("nginx-config").args(arguments).output().await.unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn host(webgym: &Webgym) -> String {
    webgym.url("master").trim_start_matches("http://").to_owned()
}

/// Starts nginx in front of these masters.
async fn start_nginx(masters: &[&Webgym], more: &[&str]) -> Nginx {
    Nginx::start(async |port| {
        let listen = format!("127.0.0.1:{port}");
        let hosts: Vec<String> = masters.iter().map(|master| host(master)).collect();
        let mut arguments = vec!["--listen", &listen];
        arguments.extend(hosts.iter().flat_map(|host| ["--master", host]));
        arguments.extend(more);
        generate_config(&arguments).await
    })
    .await
}

async fn certificate(folder: &std::path::Path) -> (String, String) {
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (certificate, key) = (path("cert.pem"), path("key.pem"));
    let mut command = Command::new("openssl");
    command.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]);
    command.args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-days", "2"]);
    let made = command.args(["-out", &certificate, "-keyout", &key]).output().await.unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    (certificate, key)
}

#[tokio::test]
async fn nginx_accepts_generated_config() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = certificate(folder.path()).await;
    let tls = ["--tls-cert", certificate.as_str(), "--tls-key", key.as_str()];
    for arguments in [
        vec![],
        vec!["--master", "10.0.0.1:7000", "--master", "[::1]:7000", "--server-name", "*.example.org"],
        vec!["--monitor", "127.0.0.1:5000", "--env", "127.0.0.1:8000", "--listen", "[::]:8443"],
        [&tls[..], &["--server-name", "farm.example.org", "--master", "localhost:7001"]].concat(),
    ] {
        let checked = Nginx::check(&generate_config(&arguments).await).await;
        let stderr = String::from_utf8_lossy(&checked.stderr).into_owned();
        assert!(checked.status.success() && !stderr.contains("[warn]"), "{arguments:?}: {stderr}");
    }
}

#[tokio::test]
async fn farm_is_reachable_through_tls() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = certificate(folder.path()).await;
    let master = Webgym::start(WEBGYM, &["master", "--port", "0"]).await;
    let nginx = start_nginx(&[&master], &["--tls-cert", &certificate, "--tls-key", &key]).await;
    let url = format!("https://localhost:{}/healthz", nginx.port());
    let mut command = Command::new("curl");
    let output =
        command.args(["-sS", "--noproxy", "*", "--cacert", &certificate, &url]).output().await.unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(stdout.contains("\"ok\""), "{stdout} {}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test]
async fn farm_works_behind_nginx() {
    let node = ["node", "1", "--port", "0", "--allow-private-network"];
    let nodes = (Webgym::start(WEBGYM, &node).await, Webgym::start(WEBGYM, &node).await);
    let master = ["master", "--port", "0", "--node", &nodes.0.url("node"), "--node", &nodes.1.url("node")];
    let (mut first, mut second) =
        (Webgym::start(WEBGYM, &master).await, Webgym::start(WEBGYM, &master).await);
    let nginx = start_nginx(&[&first, &second], &[]).await;
    let farm = Farm::new(Tier::Master, &nginx.url());
    let sites = Sites::start(SocketAddr::from(([127, 0, 0, 1], 0))).expect("the practice sites start");
    run_episode(&farm, &sites.url("/course/buttons")).await;
    check_idempotency_keys(&farm).await;
    check_waiting(&farm).await;
    check_cdp(&farm, &sites.url("/course/buttons")).await;
    check_live(&farm).await;

    let large = |size: usize| json!({"filler": "x".repeat(size)}).to_string();
    farm.http.send(Method::POST, "/execute", &[], large(3 << 20), &[]).await.assert_error(
        413,
        "too_large",
        "larger",
    );
    farm.http.send(Method::POST, "/execute", &[], large(5 << 20), &[]).await.assert_error(
        413,
        "too_large",
        "too large",
    );

    first.signal(Signal::KILL);
    first.wait_for_exit(TIMEOUT).await;
    for _ in 0..4 {
        run_episode(&farm, &sites.url("/course/buttons")).await;
    }
    second.signal(Signal::KILL);
    second.wait_for_exit(TIMEOUT).await;
    farm.http.get("/info", &[]).await.assert_error(502, "node_unreachable", "no master responds");
}

#[tokio::test]
async fn environment_server_works_behind_nginx() {
    let farm =
        Webgym::start(WEBGYM, &["serve", "1", "--master-port=0", "--node-port=0", "--no-mirror"]).await;
    let url = farm.url("master");
    let env = Webgym::start(WEBGYM, &["env", "--port=0", "--api-key=secret", "--farm", &url]).await;
    let address = env.url("env").trim_start_matches("http://").to_owned();
    let nginx = start_nginx(&[&farm], &["--env", &address]).await;
    let url = format!("{}/env", nginx.url());
    assert_eq!(EnvClient::try_connect(&url, &[]).await.err(), Some(401));
    let mut client = EnvClient::try_connect(&url, &[("x-api-key", "secret")]).await.unwrap();
    client.observe("reset", &json!({})).await;
    let page = "data:text/html,<button>Press</button>";
    let opened = client.observe("step", &json!({"visit_page": {"url": page}})).await;
    assert!(opened["observation"]["axtree_txt"].as_str().unwrap().contains("button 'Press'"), "{opened}");
    Http::new(&url, None).get("/readyz", &[]).await.ok();
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    }});
    let headers = [("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
    let http = Http::new(&url, Some("secret"));
    let answer = http.send(Method::POST, "/mcp", &[], initialize.to_string(), &headers).await;
    assert!(answer.headers.contains_key("mcp-session-id"), "{}", answer.text());
}

/// Leases a browser, visits a page, takes a screenshot and releases.
async fn run_episode(farm: &Farm, url: &str) {
    let lease = farm.get().await;
    farm.visit(&lease, url).await;
    let screenshot = farm.screenshot(&lease, &[]).await;
    assert_eq!((screenshot.status, screenshot.content_type()), (200, "image/png"), "{}", screenshot.text());
    assert!(
        screenshot.body.len() > 10_000 && screenshot.body.starts_with(b"\x89PNG"),
        "{}",
        screenshot.body.len()
    );
    assert!(screenshot.body.windows(4).any(|four| four == b"IEND"), "the image is complete");
    farm.reset(&lease).await.ok();
}

/// Each master knows only its own keys, so a repeated request must reach the same master.
async fn check_idempotency_keys(farm: &Farm) {
    for key in ["a", "b", "c", "d", "e", "f"] {
        let query = [("idempotency_key", key), ("wait_secs", "120")];
        let lease = Lease::parse(&farm.try_get(&query).await.ok());
        for _ in 0..3 {
            assert_eq!(Lease::parse(&farm.try_get(&query).await.ok()), lease, "repeated with {key}");
        }
        farm.reset(&lease).await.ok();
    }
}

/// The address that the farm returns leads through nginx, and so does the WebSocket.
async fn check_cdp(farm: &Farm, page: &str) {
    let lease = farm.get().await;
    let url = farm.cdp_url(&lease).await;
    assert!(url.starts_with(&format!("{}/cdp/", farm.http.base())), "{url}");
    let version = Http::new(&url, None).get("/json/version", &[]).await.ok();
    let mut client = CdpClient::connect(version["webSocketDebuggerUrl"].as_str().unwrap()).await;
    let target = client.pages().await.remove(0);
    let session = client.attach(&target).await;
    client.ok(Some(&session), "Page.enable", json!({})).await;
    client.ok(Some(&session), "Page.navigate", json!({"url": page})).await;
    client.event("Page.loadEventFired", |_| true).await;
    assert_eq!(client.evaluate(&session, "location.href").await, page);
    farm.reset(&lease).await.ok();
    assert_eq!(client.closed().await, Some((1001, "the lease has ended".to_owned())));
}

/// The live view works through nginx, page and WebSocket.
async fn check_live(farm: &Farm) {
    let lease = farm.get().await;
    let url = farm.live_control_url(&lease).await;
    assert!(url.starts_with(&format!("{}/live/", farm.http.base())));
    assert_eq!(Http::new(&url, None).get("", &[]).await.content_type(), "text/html; charset=utf-8");
    let script = Http::new(farm.http.base(), None).get("/live/assets/live.js", &[]).await;
    assert_eq!(script.status, 200);
    let mut viewer = LiveClient::connect(&url).await;
    viewer.frame().await;
    viewer.send(&json!({"type": "navigate", "url": "data:text/html,<title>through nginx</title>"})).await;
    viewer.wait_for("page", |page| page["title"] == "through nginx").await;
    farm.reset(&lease).await.ok();
    assert_eq!(viewer.closed().await, Some((1001, "the lease has ended".to_owned())));
}

async fn check_waiting(farm: &Farm) {
    let leases = [farm.get().await, farm.get().await];
    let waiting = {
        let farm = farm.clone();
        tokio::spawn(async move { farm.get().await })
    };
    eventually("a request is queued at one of the masters", TIMEOUT, async || {
        farm.http.get("/metrics", &[]).await.text().contains("\nwebgym_master_get_queue_length 1\n")
    })
    .await;
    farm.reset(&leases[0]).await.ok();
    let third = waiting.await.unwrap();
    farm.reset(&third).await.ok();
    farm.reset(&leases[1]).await.ok();
}

#[tokio::test]
async fn monitor_streams_through_nginx() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let mut demo = Webgym::spawn(WEBGYM, &["demo", "--out", out, "--tasks", "12", "--instances", "1"]);
    let link = demo.monitor_url().await;
    let monitor = link.trim_start_matches("http://").trim_end_matches('/').to_owned();
    let nginx = Nginx::start(async |port| {
        generate_config(&["--listen", &format!("127.0.0.1:{port}"), "--monitor", &monitor]).await
    })
    .await;
    let mut stream = TcpStream::connect(("127.0.0.1", nginx.port())).await.unwrap();
    stream.write_all(b"GET /monitor/api/events HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut lines = BufReader::new(stream).lines();
    let mut events = 0;
    // If nginx buffered the stream, the events would only arrive at the end of the run.
    while events < 4 {
        let line = tokio::time::timeout(TIMEOUT, lines.next_line()).await.expect("another event in time");
        let line = line.unwrap().expect("the stream is open");
        events += usize::from(line.starts_with("data:"));
    }
    assert!(demo.is_running(), "the run ended before four events arrived");
}
