//! Too many clients for too few instances, and answers that get lost.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use hyper::Method;
use testkit::{Farm, Lease, SlotMonitor, Slots, Webgym, eventually};
use tokio::{io::AsyncWriteExt, net::TcpStream, task::JoinSet};

use crate::{SECONDS, serve, webgym};

const FULL: &str = "No available nodes with capacity to create new instance";

/// Asks a hundred times at once without waiting; exactly so many may succeed.
async fn storm(farm: &Farm, capacity: usize) {
    let mut callers = JoinSet::new();
    for _ in 0..100 {
        let farm = farm.clone();
        callers.spawn(async move { farm.try_get(&[]).await });
    }
    let mut leases = Vec::new();
    while let Some(reply) = callers.join_next().await {
        let reply = reply.expect("it runs");
        if reply.status == 200 {
            leases.push(Lease::parse(&reply.json()));
        } else {
            reply.assert_error(503, "no_capacity", FULL);
        }
    }
    assert_eq!(leases.len(), capacity, "all there is, and no more");
    let slots: HashSet<_> = leases.iter().map(|lease| (&lease.node, lease.id.rsplit(':').next())).collect();
    assert_eq!(slots.len(), capacity, "no slot twice: {leases:?}");
    for lease in &leases {
        farm.probe(lease).await.ok();
        farm.reset(lease).await.ok();
    }
}

/// So many clients at once that wait their turn, use what they got, and give it back.
async fn procession(farm: &Farm, clients: usize) {
    let mut callers = JoinSet::new();
    for _ in 0..clients {
        let farm = farm.clone();
        callers.spawn(async move {
            let lease = farm.get().await;
            farm.probe(&lease).await.ok();
            farm.reset(&lease).await.ok();
        });
    }
    while let Some(caller) = callers.join_next().await {
        caller.expect("every caller is served");
    }
}

#[tokio::test]
async fn hundred_concurrent_gets() {
    let farm = serve("4 --instances-per-browser 2").await;
    let master = farm.master();
    let watch = SlotMonitor::start(&master.http);
    storm(&master, 4).await;
    Slots::wait_all_free(&farm, &master.http, SECONDS).await;
    storm(&farm.node(), 4).await;
    procession(&master, 100).await;
    Slots::wait_all_free(&farm, &master.http, SECONDS).await;
    watch.assert_consistent().await;
}

#[tokio::test]
async fn hundred_concurrent_gets_over_two_nodes() {
    let nodes = [webgym("node 2 --port 0").await, webgym("node 1 --port 0").await];
    let [first, second] = nodes.each_ref().map(|node| node.url("node"));
    let masters = [
        webgym(&format!("master --port 0 --node {first} --node {second}")).await,
        webgym(&format!("master --port 0 --node {first} --node {second}")).await,
    ];
    let watches = nodes.each_ref().map(|node| SlotMonitor::start(&node.node().http));
    storm(&masters[0].master(), 3).await;
    let [one, other] = masters.each_ref().map(Webgym::master);
    tokio::join!(procession(&one, 50), procession(&other, 50));
    for (node, watch) in nodes.iter().zip(watches) {
        Slots::wait_all_free(node, &node.node().http, SECONDS).await;
        watch.assert_consistent().await;
    }
}

#[tokio::test]
async fn out_of_capacity() {
    let webgym = serve("1").await;
    for farm in [webgym.master(), webgym.node()] {
        let lease = farm.get().await;
        let asked = Instant::now();
        farm.try_get(&[]).await.assert_error(503, "no_capacity", FULL);
        assert!(asked.elapsed() < Duration::from_secs(20), "who does not wait is told at once");
        let asked = Instant::now();
        farm.try_get(&[("wait_secs", "0.7")]).await.assert_error(503, "no_capacity", FULL);
        assert!(asked.elapsed() >= Duration::from_millis(700));
        let (waiting, asking) = (farm.clone(), Instant::now());
        let patient = tokio::spawn(async move { waiting.try_get(&[("wait_secs", "60")]).await });
        eventually("it waits", SECONDS, async || waits(&farm).await == 1).await;
        farm.reset(&lease).await.ok();
        let next = Lease::parse(&patient.await.expect("it runs").ok());
        assert!(asking.elapsed() < SECONDS);
        farm.reset(&next).await.ok();
        // Whoever gives back and takes again without waiting gets the slot, though it is just being made clean.
        for _ in 0..5 {
            let lease = Lease::parse(&farm.try_get(&[]).await.ok());
            farm.reset(&lease).await.ok();
        }
    }
}

/// How many wait in line, as the tier's figures say.
pub(crate) async fn waits(farm: &Farm) -> usize {
    let text = farm.http.get("/metrics", &[]).await.text();
    let lines = text.lines().filter(|line| line.contains("get_queue_length ") && !line.starts_with('#'));
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok()).sum()
}

/// `/get` on a connection of its own that can be cut.
async fn ask(farm: &Farm, query: &str) -> TcpStream {
    let address = farm.http.base().trim_start_matches("http://").to_owned();
    let mut stream = TcpStream::connect(&address).await.expect("a connection");
    let request = format!(
        "POST /get?{query} HTTP/1.1\r\nhost: {address}\r\nx-api-key: default_key\r\ncontent-length: 0\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.expect("it is sent");
    stream
}

/// Callers are served in the order they came, and one that hangs up leaves the line.
async fn line_up(farm: &Farm) {
    let held = farm.get().await;
    let (first, third) = (farm.clone(), farm.clone());
    let first = tokio::spawn(async move { first.get().await });
    eventually("the first waits", SECONDS, async || waits(farm).await == 1).await;
    let second = ask(farm, "wait_secs=60").await;
    eventually("the second waits", SECONDS, async || waits(farm).await == 2).await;
    let third = tokio::spawn(async move { third.get().await });
    eventually("the third waits", SECONDS, async || waits(farm).await == 3).await;
    drop(second);
    eventually("the second has left", SECONDS, async || waits(farm).await == 2).await;
    farm.reset(&held).await.ok();
    let lease = first.await.expect("the first is served");
    assert!(!third.is_finished(), "the third is not served before its time");
    farm.reset(&lease).await.ok();
    let lease = third.await.expect("the third is served");
    farm.reset(&lease).await.ok();
}

#[tokio::test]
async fn who_comes_first_is_served_first() {
    let webgym = serve("1").await;
    line_up(&webgym.node()).await;
    line_up(&webgym.master()).await;
    Slots::wait_all_free(&webgym, &webgym.master().http, SECONDS).await;
}

/// Loses the answer to `/get` over and over; with a key it is found again, and nothing is left over.
async fn lose_answers(farm: &Farm) {
    for round in 0..8 {
        let key = format!("lost-{round}-{}", farm.http.base());
        drop(ask(farm, &format!("wait_secs=60&idempotency_key={key}")).await);
        let asked = [("wait_secs", "60"), ("idempotency_key", key.as_str())];
        let lease = Lease::parse(&farm.try_get(&asked).await.ok());
        farm.probe(&lease).await.ok();
        farm.reset(&lease).await.ok();
    }
}

#[tokio::test]
async fn lost_get_answer() {
    let here = serve("1").await;
    let node = webgym("node 1 --port 0").await;
    let master = webgym(&format!("master --port 0 --node {}", node.url("node"))).await;
    let all: [(&Webgym, Farm); 3] = [(&here, here.master()), (&here, here.node()), (&node, master.master())];
    for (owner, farm) in all {
        lose_answers(&farm).await;
        let own = owner.node();
        Slots::wait_all_free(owner, &own.http, SECONDS).await;
    }
}

#[tokio::test]
async fn machine_under_pressure() {
    let webgym = serve("1 --min-memory-percent 101").await;
    let farm = webgym.master();
    farm.try_get(&[("wait_secs", "0")]).await.assert_error(
        503,
        "no_capacity",
        "memory is available, below the limit",
    );
    let waiting = ask(&farm, "wait_secs=60").await;
    eventually("a new lease waits rather than the machine dying", SECONDS, async || waits(&farm).await == 1)
        .await;
    let info = farm.info().await;
    let why = info["nodes"][0]["held_back"].as_str().unwrap_or_default().to_owned();
    assert!(why.contains("memory"), "{info}");
    assert!(webgym.node().info().await["held_back"].as_str() == Some(&why));
    let metrics = farm.http.get("/metrics", &[]).await.text();
    assert!(metrics.contains("\nwebgym_leases_held_back 1\n"), "{metrics}");
    drop(waiting);
    let slots = Slots::fetch(&farm.http).await;
    assert!(slots.is_all_free() && slots.is_consistent(), "{slots:?}");
}

#[tokio::test]
async fn thousands_of_idle_connections() {
    let webgym = serve("1").await;
    let farm = webgym.master();
    let address = farm.http.base().trim_start_matches("http://").to_owned();
    let mut idle = Vec::new();
    // Ten thousand, unless this machine gives a process fewer descriptors than that and what the other tests need.
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    for _ in 0..limit.saturating_sub(4000).clamp(1000, 10_000) {
        idle.push(TcpStream::connect(&address).await.expect("a connection"));
    }
    let lease = farm.get().await;
    farm.reset(&lease).await.ok();
    let open = farm.http.with_key(None);
    assert_eq!(open.send(Method::GET, "/healthz", &[], "", &[]).await.status, 200);
    // They do not hold up the end either.
    let asked = Instant::now();
    webgym.stop().await;
    assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
}

#[tokio::test]
async fn heads_too_large_or_too_many() {
    let webgym = serve("1").await;
    let http = webgym.master().http;
    let large = "a".repeat(200 << 10);
    let reply = http.try_send(Method::GET, "/info", &[], "", &[("x-large", &large)]).await;
    assert!(reply.as_ref().map_or(true, |reply| (400..500).contains(&reply.status)), "{reply:?}");
    let many: Vec<(String, String)> = (0..500).map(|n| (format!("x-{n}"), "1".into())).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let reply = http.try_send(Method::GET, "/info", &[], "", &many).await;
    assert!(reply.as_ref().map_or(true, |reply| (400..500).contains(&reply.status)), "{reply:?}");
    assert_eq!(http.get("/info", &[]).await.status, 200);
}
