//! More clients than instances, and responses that get lost.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use hyper::Method;
use testkit::{Farm, Lease, SlotMonitor, Slots, Webgym, eventually};
use tokio::{io::AsyncWriteExt, net::TcpStream, task::JoinSet};

use crate::{TIMEOUT, serve, webgym};

const FULL: &str = "No available nodes with capacity to create new instance";

/// Sends a hundred concurrent `/get` requests; exactly `capacity` of them may succeed.
async fn get_concurrently(farm: &Farm, capacity: usize) {
    let mut callers = JoinSet::new();
    for _ in 0..100 {
        let farm = farm.clone();
        callers.spawn(async move { farm.try_get(&[]).await });
    }
    let mut leases = Vec::new();
    while let Some(reply) = callers.join_next().await {
        let reply = reply.expect("the task runs");
        if reply.status == 200 {
            leases.push(Lease::parse(&reply.json()));
        } else {
            reply.assert_error(503, "no_capacity", FULL);
        }
    }
    assert_eq!(leases.len(), capacity, "every slot is leased, and no more");
    let slots: HashSet<_> = leases.iter().map(|lease| (&lease.node, lease.id.rsplit(':').next())).collect();
    assert_eq!(slots.len(), capacity, "a slot was leased twice: {leases:?}");
    for lease in &leases {
        farm.probe(lease).await.ok();
        farm.reset(lease).await.ok();
    }
}

/// Runs concurrent clients that each wait for a lease, use it and release it.
async fn take_turns(farm: &Farm, clients: usize) {
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
        caller.expect("every client is served");
    }
}

#[tokio::test]
async fn concurrent_gets_lease_each_slot_once() {
    let farm = serve("4 --instances-per-browser 2").await;
    let master = farm.master();
    let watch = SlotMonitor::start(&master.http);
    get_concurrently(&master, 4).await;
    Slots::wait_all_free(&farm, &master.http, TIMEOUT).await;
    get_concurrently(&farm.node(), 4).await;
    take_turns(&master, 100).await;
    Slots::wait_all_free(&farm, &master.http, TIMEOUT).await;
    watch.assert_consistent().await;
}

#[tokio::test]
async fn concurrent_gets_over_two_nodes_lease_once() {
    let nodes = [webgym("node 2 --port 0").await, webgym("node 1 --port 0").await];
    let [first, second] = nodes.each_ref().map(|node| node.url("node"));
    let masters = [
        webgym(&format!("master --port 0 --node {first} --node {second}")).await,
        webgym(&format!("master --port 0 --node {first} --node {second}")).await,
    ];
    let monitors = nodes.each_ref().map(|node| SlotMonitor::start(&node.node().http));
    get_concurrently(&masters[0].master(), 3).await;
    let [one, other] = masters.each_ref().map(Webgym::master);
    tokio::join!(take_turns(&one, 50), take_turns(&other, 50));
    for (node, watch) in nodes.iter().zip(monitors) {
        Slots::wait_all_free(node, &node.node().http, TIMEOUT).await;
        watch.assert_consistent().await;
    }
}

#[tokio::test]
async fn get_without_free_slot_waits_or_fails() {
    let webgym = serve("1").await;
    for farm in [webgym.master(), webgym.node()] {
        let lease = farm.get().await;
        let started = Instant::now();
        farm.try_get(&[]).await.assert_error(503, "no_capacity", FULL);
        assert!(started.elapsed() < Duration::from_secs(20), "a request without wait_secs fails soon");
        let started = Instant::now();
        farm.try_get(&[("wait_secs", "0.7")]).await.assert_error(503, "no_capacity", FULL);
        assert!(started.elapsed() >= Duration::from_millis(700));
        let waiting = farm.clone();
        let waiter = tokio::spawn(async move { waiting.try_get(&[("wait_secs", "60")]).await });
        eventually("it is queued", TIMEOUT, async || queue_length(&farm).await == 1).await;
        farm.reset(&lease).await.ok();
        let next = Lease::parse(&waiter.await.expect("the task runs").ok());
        farm.reset(&next).await.ok();
        // A client that releases and acquires without wait_secs gets the slot although it is still being cleaned.
        for _ in 0..5 {
            let lease = Lease::parse(&farm.try_get(&[]).await.ok());
            farm.reset(&lease).await.ok();
        }
    }
}

/// Returns the length of the `/get` queue from the tier's metrics.
pub(crate) async fn queue_length(farm: &Farm) -> usize {
    let text = farm.http.get("/metrics", &[]).await.text();
    let lines = text.lines().filter(|line| line.contains("get_queue_length ") && !line.starts_with('#'));
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok()).sum()
}

/// Sends `/get` on a separate connection that the caller can close.
async fn send_get(farm: &Farm, query: &str) -> TcpStream {
    let address = farm.http.base().trim_start_matches("http://").to_owned();
    let mut stream = TcpStream::connect(&address).await.expect("a connection");
    let request = format!(
        "POST /get?{query} HTTP/1.1\r\nhost: {address}\r\nx-api-key: default_key\r\ncontent-length: 0\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.expect("the request is sent");
    stream
}

/// Checks that waiters are served in order of arrival and that one that disconnects leaves the queue.
async fn check_queue_order(farm: &Farm) {
    let held = farm.get().await;
    let (first, third) = (farm.clone(), farm.clone());
    let first = tokio::spawn(async move { first.get().await });
    eventually("the first is queued", TIMEOUT, async || queue_length(farm).await == 1).await;
    let second = send_get(farm, "wait_secs=60").await;
    eventually("the second is queued", TIMEOUT, async || queue_length(farm).await == 2).await;
    let third = tokio::spawn(async move { third.get().await });
    eventually("the third is queued", TIMEOUT, async || queue_length(farm).await == 3).await;
    drop(second);
    eventually("the second has left the queue", TIMEOUT, async || queue_length(farm).await == 2).await;
    farm.reset(&held).await.ok();
    let lease = first.await.expect("the first is served");
    assert!(!third.is_finished(), "the third is not served before the first has finished");
    farm.reset(&lease).await.ok();
    let lease = third.await.expect("the third is served");
    farm.reset(&lease).await.ok();
}

#[tokio::test]
async fn waiters_are_served_in_order() {
    let webgym = serve("1").await;
    check_queue_order(&webgym.node()).await;
    check_queue_order(&webgym.master()).await;
    Slots::wait_all_free(&webgym, &webgym.master().http, TIMEOUT).await;
}

/// Drops the response of `/get` repeatedly; a retry with the same key returns the lease, and none leaks.
async fn lose_responses(farm: &Farm) {
    for round in 0..8 {
        let key = format!("lost-{round}-{}", farm.http.base());
        drop(send_get(farm, &format!("wait_secs=60&idempotency_key={key}")).await);
        let query = [("wait_secs", "60"), ("idempotency_key", key.as_str())];
        let lease = Lease::parse(&farm.try_get(&query).await.ok());
        farm.probe(&lease).await.ok();
        farm.reset(&lease).await.ok();
    }
}

#[tokio::test]
async fn lost_get_response_leaks_no_lease() {
    let here = serve("1").await;
    let node = webgym("node 1 --port 0").await;
    let master = webgym(&format!("master --port 0 --node {}", node.url("node"))).await;
    let all: [(&Webgym, Farm); 3] = [(&here, here.master()), (&here, here.node()), (&node, master.master())];
    for (owner, farm) in all {
        lose_responses(&farm).await;
        let own = owner.node();
        Slots::wait_all_free(owner, &own.http, TIMEOUT).await;
    }
}

#[tokio::test]
async fn overloaded_machine_delays_new_leases() {
    let webgym = serve("1 --min-memory-percent 101").await;
    let farm = webgym.master();
    farm.try_get(&[("wait_secs", "0")]).await.assert_error(
        503,
        "no_capacity",
        "memory is available, below the limit",
    );
    let waiting = send_get(&farm, "wait_secs=60").await;
    eventually("a new lease waits instead of overloading the machine", TIMEOUT, async || {
        queue_length(&farm).await == 1
    })
    .await;
    // The share of memory in the reason changes from one moment to the next.
    let (master, node) = (farm.info().await, webgym.node().info().await);
    for held_back in [&master["nodes"][0]["held_back"], &node["held_back"]] {
        let reason = held_back.as_str().unwrap_or_default();
        assert!(reason.contains("memory is available, below the limit of 101 %"), "{master} {node}");
    }
    let metrics = farm.http.get("/metrics", &[]).await.text();
    assert!(metrics.contains("\nwebgym_leases_held_back 1\n"), "{metrics}");
    drop(waiting);
    let slots = Slots::fetch(&farm.http).await;
    assert!(slots.is_all_free() && slots.is_consistent(), "{slots:?}");
}

#[tokio::test]
async fn idle_connections_do_not_block_others() {
    let webgym = serve("1 --shutdown-secs 40").await;
    let farm = webgym.master();
    let address = farm.http.base().trim_start_matches("http://").to_owned();
    let mut idle = Vec::new();
    // Ten thousand, unless the descriptor limit, minus what the other tests need, is lower.
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    for _ in 0..limit.saturating_sub(4000).clamp(1000, 10_000) {
        idle.push(TcpStream::connect(&address).await.expect("a connection"));
    }
    let lease = farm.get().await;
    farm.reset(&lease).await.ok();
    let open = farm.http.with_key(None);
    assert_eq!(open.send(Method::GET, "/healthz", &[], "", &[]).await.status, 200);
    // Idle connections do not delay the shutdown: it must end well before --shutdown-secs.
    let started = Instant::now();
    webgym.stop().await;
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
}

#[tokio::test]
async fn oversized_request_heads_are_refused() {
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
