//! Bytes that are not quite HTTP, too slow for it, or more than one request at a time.

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
    SECONDS, attacks,
    world::{World, within},
};

attacks![
    says_nothing_or_one_letter_at_a_time,
    sends_its_body_one_letter_at_a_time,
    never_reads_its_answers,
    half_closes_its_sockets,
    pipelines_a_hundred_requests,
    smuggles_a_second_request,
];

pub(crate) async fn connect(farm: &Farm) -> TcpStream {
    TcpStream::connect(farm.http.base().trim_start_matches("http://")).await.expect("a connection")
}

/// What comes until the other side closes, or nothing more for a while.
pub(crate) async fn answers(stream: &mut TcpStream) -> String {
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

/// How many wait for a lease, as the tier's figures say.
pub(crate) async fn in_line(farm: &Farm) -> usize {
    let text = farm.http.get("/metrics", &[]).await.text();
    let lines = text.lines().filter(|line| line.contains("get_queue_length ") && !line.starts_with('#'));
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok()).sum()
}

/// The other side closes; how long that took.
async fn closed(stream: &mut TcpStream) -> Duration {
    let begun = Instant::now();
    let mut rest = Vec::new();
    let read = tokio::time::timeout(SECONDS, stream.read_to_end(&mut rest)).await;
    assert!(read.is_ok(), "still open after {:?}", begun.elapsed());
    begun.elapsed()
}

async fn says_nothing_or_one_letter_at_a_time(world: Arc<World>) {
    let mut silent = connect(&world.farm).await;
    let mut other = connect(&world.farm).await;
    other.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.expect("it is sent");
    let mut begun = connect(&world.farm).await;
    begun.write_all(b"GET /info HTTP/1.1\r\nhost: localhost\r\nx-").await.expect("it is sent");
    let mut slow = connect(&world.farm).await;
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
        let lease = world.visiting(&world.innocent()).await;
        world.farm.reset(&lease).await.ok();
    };
    let all =
        async { tokio::join!(closed(&mut silent), closed(&mut other), closed(&mut begun), dripping, served) };
    within(SECONDS, "who does not speak is left", all).await;
}

async fn sends_its_body_one_letter_at_a_time(world: Arc<World>) {
    let mut slow = connect(&world.farm).await;
    slow.write_all(format!("POST /execute HTTP/1.1\r\n{KEY}content-length: 1000\r\n\r\n{{").as_bytes())
        .await
        .expect("it is sent");
    let begun = Instant::now();
    let (mut reading, mut writing) = slow.split();
    let mut said = [0; 256];
    let answered = tokio::time::timeout(SECONDS * 2, async {
        loop {
            tokio::select! {
                read = reading.read(&mut said) => return read.unwrap_or(0),
                () = tokio::time::sleep(Duration::from_millis(500)) => { let _ = writing.write_all(b" ").await; }
            }
        }
    });
    let read = answered.await.expect("it is not waited for");
    let said = String::from_utf8_lossy(&said[..read]).into_owned();
    assert!(said.is_empty() || said.starts_with("HTTP/1.1 400"), "{said}");
    assert!(begun.elapsed() < SECONDS * 2, "{:?}", begun.elapsed());
}

async fn never_reads_its_answers(world: Arc<World>) {
    let own = World::with("serve 1 --idle-timeout 4 --allow-private-network").await;
    let port = own.webgym.listening().iter().find(|one| one.tier == "master").expect("a master").port;
    drop(world);
    let mut deaf = Vec::new();
    for _ in 0..4 {
        let mut stream = connect(&own.farm).await;
        // Far more than all buffers on the way hold, and without a key.
        let questions = "GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(2000);
        let _ = tokio::time::timeout(Duration::from_secs(2), stream.write_all(questions.as_bytes())).await;
        deaf.push(stream);
    }
    eventually("who does not listen is left", SECONDS, async || open_connections(port) == 0).await;
    assert_eq!(deaf.len(), 4);
    let lease = own.visiting(&own.innocent()).await;
    own.farm.reset(&lease).await.ok();
    World::stop(own, true).await;
}

async fn half_closes_its_sockets(_: Arc<World>) {
    let own = World::with("serve 1 --allow-private-network").await;
    for farm in [&own.farm, &own.webgym.node()] {
        let mut stream = connect(farm).await;
        stream.write_all(format!("GET /info HTTP/1.1\r\n{KEY}\r\n").as_bytes()).await.expect("it is sent");
        stream.shutdown().await.expect("half of it");
        let said = answers(&mut stream).await;
        assert!(said.is_empty() || said.starts_with("HTTP/1.1 200"), "{said}");
        let held = farm.get().await;
        let mut waiting = Vec::new();
        for _ in 0..20 {
            let mut stream = connect(farm).await;
            let ask = format!("POST /get?wait_secs=600 HTTP/1.1\r\n{KEY}content-length: 0\r\n\r\n");
            stream.write_all(ask.as_bytes()).await.expect("it is sent");
            waiting.push(stream);
        }
        eventually("they wait", SECONDS, async || in_line(farm).await == 20).await;
        for stream in &mut waiting {
            stream.shutdown().await.expect("half of it");
        }
        eventually("who has half gone waits no longer", SECONDS, async || in_line(farm).await == 0).await;
        farm.reset(&held).await.ok();
        eventually("nobody was given the slot", SECONDS, async || {
            let slots = Slots::fetch(&own.webgym.node().http).await;
            slots.is_consistent() && slots.is_all_free()
        })
        .await;
    }
    World::stop(own, true).await;
}

async fn pipelines_a_hundred_requests(world: Arc<World>) {
    let mut stream = connect(&world.farm).await;
    let one = format!("GET /metadata?instance_id=x&node=y HTTP/1.1\r\n{KEY}\r\n");
    let last = format!("GET /info HTTP/1.1\r\n{KEY}connection: close\r\n\r\n");
    stream.write_all(format!("{}{last}", one.repeat(99)).as_bytes()).await.expect("they are sent");
    let said = answers(&mut stream).await;
    assert_eq!(said.matches("HTTP/1.1 400").count(), 99, "each is answered, in order");
    assert_eq!(said.matches("HTTP/1.1 200").count(), 1);
    assert!(said.rfind("HTTP/1.1 200") > said.rfind("HTTP/1.1 400"));
}

/// Requests that two servers in a row could take for different ones. The second one hidden in each would drain the node.
async fn smuggles_a_second_request(world: Arc<World>) {
    let node = world.webgym.node();
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
        for farm in [&world.farm, &node] {
            let mut stream = connect(farm).await;
            let request = format!("POST /execute HTTP/1.1\r\n{KEY}{head}{hidden}");
            let _ = stream.write_all(request.as_bytes()).await;
            let said = answers(&mut stream).await;
            assert!(said.is_empty() || said.starts_with("HTTP/1.1 4"), "{name}: {said}");
            assert!(
                said.matches("HTTP/1.1 ").count() <= 1,
                "{name}: the hidden one was answered too: {said}"
            );
            let info = node.info().await;
            assert!(info["draining"] != true, "{name}: {info}");
        }
    }
}
