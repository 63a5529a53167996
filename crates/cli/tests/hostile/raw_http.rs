//! Raw connections: slow, malformed, half-closed, pipelined and smuggled requests.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use testkit::{Farm, Slots, eventually, open_connections};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{
    TIMEOUT, attacks,
    environment::{Environment, within},
};

attacks![
    slow_heads_time_out,
    slow_bodies_time_out,
    unread_responses_time_out,
    half_closed_sockets_leave_queue,
    pipelined_requests_are_answered_in_order,
    request_smuggling_is_refused,
];

pub(crate) async fn connect(farm: &Farm) -> TcpStream {
    TcpStream::connect(farm.http.base().trim_start_matches("http://")).await.expect("a connection")
}

/// Reads until the server closes the connection or sends nothing for a while.
pub(crate) async fn read_response(stream: &mut TcpStream) -> String {
    let mut all = Vec::new();
    let mut piece = [0; 4096];
    while let Ok(Ok(read)) = tokio::time::timeout(Duration::from_secs(10), stream.read(&mut piece)).await {
        if read == 0 {
            break;
        }
        all.extend_from_slice(&piece[..read]);
    }
    String::from_utf8_lossy(&all).into_owned()
}

const KEY: &str = "host: localhost\r\nx-api-key: default_key\r\n";

/// Returns the length of the `/get` queue from the tier's metrics.
pub(crate) async fn queue_length(farm: &Farm) -> usize {
    let text = farm.http.get("/metrics", &[]).await.text();
    let lines = text.lines().filter(|line| line.contains("get_queue_length ") && !line.starts_with('#'));
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok()).sum()
}

/// Waits until the server closes the connection and returns how long that took.
async fn wait_until_closed(stream: &mut TcpStream) -> Duration {
    let started = Instant::now();
    let mut rest = Vec::new();
    let read = tokio::time::timeout(TIMEOUT, stream.read_to_end(&mut rest)).await;
    assert!(read.is_ok(), "still open after {:?}", started.elapsed());
    started.elapsed()
}

async fn slow_heads_time_out(env: Arc<Environment>) {
    let mut silent = connect(&env.farm).await;
    let mut other = connect(&env.farm).await;
    other
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
        .await
        .expect("the request is sent");
    let mut partial = connect(&env.farm).await;
    partial.write_all(b"GET /info HTTP/1.1\r\nhost: localhost\r\nx-").await.expect("the request is sent");
    let mut slow = connect(&env.farm).await;
    let dripping = async {
        let head = "GET /info HTTP/1.1\r\nhost: localhost\r\nx-drip: ";
        for letter in head.bytes().chain(std::iter::repeat(b'x')) {
            if slow.write_all(&[letter]).await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    let served = async {
        let lease = env.lease_on(&env.plain_page()).await;
        env.farm.reset(&lease).await.ok();
    };
    let all = async {
        tokio::join!(
            wait_until_closed(&mut silent),
            wait_until_closed(&mut other),
            wait_until_closed(&mut partial),
            dripping,
            served
        )
    };
    within(TIMEOUT, "slow clients are disconnected", all).await;
}

async fn slow_bodies_time_out(env: Arc<Environment>) {
    let mut slow = connect(&env.farm).await;
    slow.write_all(format!("POST /execute HTTP/1.1\r\n{KEY}content-length: 1000\r\n\r\n{{").as_bytes())
        .await
        .expect("the request is sent");
    let started = Instant::now();
    let (mut reading, mut writing) = slow.split();
    let mut buffer = [0; 256];
    let answered = tokio::time::timeout(TIMEOUT * 2, async {
        loop {
            tokio::select! {
                read = reading.read(&mut buffer) => return read.unwrap_or(0),
                () = tokio::time::sleep(Duration::from_millis(500)) => { let _ = writing.write_all(b" ").await; }
            }
        }
    });
    let read = answered.await.expect("the server does not wait forever");
    let response = String::from_utf8_lossy(&buffer[..read]).into_owned();
    assert!(response.is_empty() || response.starts_with("HTTP/1.1 400"), "{response}");
    assert!(started.elapsed() < TIMEOUT * 2, "{:?}", started.elapsed());
}

async fn unread_responses_time_out(env: Arc<Environment>) {
    let own = Environment::with("serve 1 --idle-timeout 4 --allow-private-network").await;
    let port = own.webgym.listening().iter().find(|one| one.tier == "master").expect("a master").port;
    drop(env);
    let mut clients = Vec::new();
    for _ in 0..4 {
        let mut stream = connect(&own.farm).await;
        // Far more than all buffers hold, and without a key.
        let requests = "GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(2000);
        let _ = tokio::time::timeout(Duration::from_secs(2), stream.write_all(requests.as_bytes())).await;
        clients.push(stream);
    }
    eventually("clients that do not read are disconnected", TIMEOUT, async || open_connections(port) == 0)
        .await;
    assert_eq!(clients.len(), 4);
    let lease = own.lease_on(&own.plain_page()).await;
    own.farm.reset(&lease).await.ok();
    Environment::stop(own, true).await;
}

async fn half_closed_sockets_leave_queue(_: Arc<Environment>) {
    let own = Environment::with("serve 1 --allow-private-network").await;
    for farm in [&own.farm, &own.webgym.node()] {
        let mut stream = connect(farm).await;
        stream
            .write_all(format!("GET /info HTTP/1.1\r\n{KEY}\r\n").as_bytes())
            .await
            .expect("the request is sent");
        stream.shutdown().await.expect("the write half closes");
        let response = read_response(&mut stream).await;
        assert!(response.is_empty() || response.starts_with("HTTP/1.1 200"), "{response}");
        let held = farm.get().await;
        let mut waiting = Vec::new();
        for _ in 0..20 {
            let mut stream = connect(farm).await;
            let request = format!("POST /get?wait_secs=600 HTTP/1.1\r\n{KEY}content-length: 0\r\n\r\n");
            stream.write_all(request.as_bytes()).await.expect("the request is sent");
            waiting.push(stream);
        }
        eventually("all are queued", TIMEOUT, async || queue_length(farm).await == 20).await;
        for stream in &mut waiting {
            stream.shutdown().await.expect("the write half closes");
        }
        eventually("half-closed clients leave the queue", TIMEOUT, async || queue_length(farm).await == 0)
            .await;
        farm.reset(&held).await.ok();
        eventually("no client got the slot", TIMEOUT, async || {
            let slots = Slots::fetch(&own.webgym.node().http).await;
            slots.is_consistent() && slots.is_all_free()
        })
        .await;
    }
    Environment::stop(own, true).await;
}

async fn pipelined_requests_are_answered_in_order(env: Arc<Environment>) {
    let mut stream = connect(&env.farm).await;
    let one = format!("GET /metadata?instance_id=x&node=y HTTP/1.1\r\n{KEY}\r\n");
    let last = format!("GET /info HTTP/1.1\r\n{KEY}connection: close\r\n\r\n");
    stream.write_all(format!("{}{last}", one.repeat(99)).as_bytes()).await.expect("the requests are sent");
    let response = read_response(&mut stream).await;
    assert_eq!(response.matches("HTTP/1.1 400").count(), 99, "each request is answered");
    assert_eq!(response.matches("HTTP/1.1 200").count(), 1);
    assert!(response.rfind("HTTP/1.1 200") > response.rfind("HTTP/1.1 400"));
}

/// Requests that two servers in a row could parse differently. The second request hidden in each would drain the node.
async fn request_smuggling_is_refused(env: Arc<Environment>) {
    let node = env.webgym.node();
    let address = node.http.base().replace(':', "%3A").replace('/', "%2F");
    let hidden = format!("POST /drain?node={address} HTTP/1.1\r\n{KEY}content-length: 0\r\n\r\n");
    let length = hidden.len();
    for (name, head) in [
        (
            "both lengths",
            format!("content-length: {}\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", length + 5),
        ),
        (
            "both, the other way round",
            "transfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n".to_owned(),
        ),
        ("two lengths", format!("content-length: 0\r\ncontent-length: {length}\r\n\r\n")),
        ("two lengths in one", format!("content-length: 0, {length}\r\n\r\n")),
        ("a signed length", format!("content-length: +{length}\r\n\r\n")),
        ("a length in letters", "content-length: 0x10\r\n\r\n".to_owned()),
        ("not quite chunked", format!("transfer-encoding: xchunked\r\ncontent-length: {length}\r\n\r\n")),
        (
            "chunked, then not",
            format!("transfer-encoding: chunked, identity\r\ncontent-length: {length}\r\n\r\n"),
        ),
        (
            "a space before the colon",
            format!("transfer-encoding : chunked\r\ncontent-length: {length}\r\n\r\n"),
        ),
        ("a folded line", format!("x: y\r\n content-length: {length}\r\n\r\n")),
        ("a length hidden behind a bare return", format!("x: y\rcontent-length: {length}\r\n\r\n")),
        ("a chunk with a long size", "transfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\n".to_owned()),
    ] {
        for farm in [&env.farm, &node] {
            let mut stream = connect(farm).await;
            let request = format!("POST /execute HTTP/1.1\r\n{KEY}{head}{hidden}");
            let _ = stream.write_all(request.as_bytes()).await;
            let response = read_response(&mut stream).await;
            assert!(response.is_empty() || response.starts_with("HTTP/1.1 4"), "{name}: {response}");
            assert!(
                response.matches("HTTP/1.1 ").count() <= 1,
                "{name}: the hidden request was answered too: {response}"
            );
            let info = node.info().await;
            assert!(info["draining"] != true, "{name}: {info}");
        }
    }
}
