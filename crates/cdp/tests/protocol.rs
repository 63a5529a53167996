//! Checks that every method and event in use is in the protocol description that the browser serves.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "tests")]

mod common;

use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use cdp::{IgnoreEvents, Launch, protocol as p};
use common::{KINDS, MAX_WAIT, executable};
use serde_json::Value;

/// Returns the port of the browser's debugging server, once the browser has written it to the profile.
fn port(profile: &Path) -> u16 {
    let deadline = Instant::now() + MAX_WAIT;
    loop {
        let written = std::fs::read_to_string(profile.join("DevToolsActivePort")).unwrap_or_default();
        if let Some(port) = written.lines().next().and_then(|line| line.parse().ok()) {
            return port;
        }
        assert!(Instant::now() < deadline, "the browser opened no port");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn protocol_description(port: u16) -> Value {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(stream, "GET /json/protocol HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n")
        .unwrap();
    stream.set_read_timeout(Some(MAX_WAIT)).unwrap();
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    for line in reader.by_ref().lines().map(Result::unwrap).take_while(|line| !line.is_empty()) {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    serde_json::from_slice(&body).unwrap()
}

fn names(protocol: &Value, kind: &str) -> BTreeSet<String> {
    let domains = protocol["domains"].as_array().unwrap();
    let named = |domain: &Value| -> Vec<String> {
        let entries = domain[kind].as_array().map(Vec::as_slice).unwrap_or_default();
        let name = domain["domain"].as_str().unwrap();
        entries.iter().map(|entry| format!("{name}.{}", entry["name"].as_str().unwrap())).collect()
    };
    domains.iter().flat_map(named).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn browser_knows_all_methods_and_events() {
    for kind in KINDS {
        let mut launch = Launch::new(executable(kind));
        launch.extra_flags.push("--remote-debugging-port=0".to_owned());
        let process = launch.start(Arc::new(IgnoreEvents)).await.unwrap();
        let protocol = protocol_description(port(process.profile()));
        let (methods, events) = (names(&protocol, "commands"), names(&protocol, "events"));
        assert!(methods.len() > 300 && events.len() > 100, "{} {}", methods.len(), events.len());
        let unknown: Vec<&str> = p::METHODS
            .iter()
            .map(|method| method.name())
            .filter(|name| !methods.contains(*name))
            .chain(p::EVENTS.iter().copied().filter(|name| !events.contains(*name)))
            .collect();
        assert_eq!(unknown, Vec::<&str>::new(), "unknown to {kind}");
        process.close().await;
    }
}
