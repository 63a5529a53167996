//! Several masters with the same nodes: a client may use any of them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use testkit::{Farm, Lease, Redis, SlotMonitor, Slots, Webgym, eventually};
use tokio::task::JoinSet;

use crate::{TIMEOUT, contention::queue_length, webgym};

struct Cluster {
    redis: Redis,
    nodes: Vec<Webgym>,
    fronts: [Webgym; 2],
}

impl Cluster {
    async fn start(nodes: &[&str]) -> Self {
        let redis = Redis::start().await;
        let mut started = Vec::new();
        for arguments in nodes {
            started.push(webgym(&format!("{arguments} --no-mirror --redis {}", redis.url())).await);
        }
        let count = started.len();
        eventually("all nodes are registered", TIMEOUT, async || {
            redis.registered_nodes().await.len() == count
        })
        .await;
        let arguments = format!("master --port 0 --redis {}", redis.url());
        let fronts = [webgym(&arguments).await, webgym(&arguments).await];
        Self { redis, nodes: started, fronts }
    }

    fn masters(&self) -> [Farm; 2] {
        self.fronts.each_ref().map(Webgym::master)
    }

    async fn in_use(&self) -> usize {
        let mut total = 0;
        for node in &self.nodes {
            total += Slots::fetch(&node.node().http).await.in_use;
        }
        total
    }
}

async fn get_with_key(master: &Farm, key: &str) -> Lease {
    Lease::parse(&master.try_get(&[("idempotency_key", key), ("wait_secs", "60")]).await.ok())
}

#[tokio::test]
async fn same_key_on_two_masters_returns_one_lease() {
    let cluster = Cluster::start(&["node 2 --port 0", "node 2 --port 0"]).await;
    let [one, other] = cluster.masters();
    let first = get_with_key(&one, "k").await;
    assert_eq!(get_with_key(&other, "k").await, first, "the other master returns the same lease");
    assert_eq!(get_with_key(&one, "k").await, first);
    assert_eq!(cluster.in_use().await, 1);
    other.reset(&first).await.ok();
    let second = get_with_key(&one, "k").await;
    assert_ne!(second.id, first.id, "a released lease has ended, whichever master released it");
    one.reset(&second).await.ok();

    // The same key on both masters at the same time.
    let mut pairs = JoinSet::new();
    for pair in 0..12 {
        let (one, other) = (one.clone(), other.clone());
        pairs.spawn(async move {
            let key = format!("pair {pair}");
            let (left, right) = tokio::join!(get_with_key(&one, &key), get_with_key(&other, &key));
            assert_eq!(left, right, "{key}");
            one.reset(&left).await.ok();
        });
    }
    while let Some(pair) = pairs.join_next().await {
        pair.expect("one lease per key");
    }
    for node in &cluster.nodes {
        Slots::wait_all_free(node, &node.node().http, TIMEOUT).await;
    }
}

/// If the second request queued behind the first, it would hold the slot that the first waits for: a deadlock.
#[tokio::test]
async fn key_served_by_other_master_skips_queue() {
    let cluster = Cluster::start(&["node 1 --port 0"]).await;
    let [one, other] = cluster.masters();
    let held = get_with_key(&one, "k").await;
    let caller = other.clone();
    let first = tokio::spawn(async move { get_with_key(&caller, "another").await });
    eventually("a request is queued there", TIMEOUT, async || queue_length(&other).await == 1).await;
    assert_eq!(get_with_key(&other, "k").await, held, "the lease that it already has");
    other.reset(&held).await.ok();
    let served = first.await.expect("the queued request is served");
    other.reset(&served).await.ok();
    Slots::wait_all_free(&cluster.nodes[0], &cluster.nodes[0].node().http, TIMEOUT).await;
}

#[tokio::test]
async fn lost_response_is_retried_on_other_master() {
    let cluster = Cluster::start(&["node 1 --port 0", "node 1 --port 0"]).await;
    let [one, other] = cluster.masters();
    // Both nodes are frozen until the client gives up.
    for node in &cluster.nodes {
        node.freeze().await;
    }
    let caller = one.clone();
    let client = tokio::spawn(async move { get_with_key(&caller, "k").await });
    eventually("the first master is handling the request", TIMEOUT, async || {
        !cluster.redis.query(1, &["KEYS", "webgym:keys:*"]).await.is_empty()
    })
    .await;
    client.abort();
    for node in &cluster.nodes {
        node.resume();
    }
    let lease = get_with_key(&other, "k").await;
    other.probe(&lease).await.ok();
    assert_eq!(get_with_key(&one, "k").await, lease);
    eventually("there is exactly one lease", TIMEOUT, async || cluster.in_use().await == 1).await;
    // The cleanup of abandoned leases must not end this one.
    let until = Instant::now() + Duration::from_secs(4);
    while Instant::now() < until {
        other.probe(&lease).await.ok();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    one.reset(&lease).await.ok();
    for node in &cluster.nodes {
        Slots::wait_all_free(node, &node.node().http, TIMEOUT).await;
    }
}

#[tokio::test]
async fn keys_work_without_redis() {
    let mut cluster = Cluster::start(&["node 2 --port 0"]).await;
    cluster.redis.kill().await;
    let [one, other] = cluster.masters();
    let lease = get_with_key(&one, "k").await;
    assert_eq!(get_with_key(&one, "k").await, lease, "each master still knows its own keys");
    assert_eq!(get_with_key(&other, "k").await, lease, "the node knows which lease belongs to a key");
    one.reset(&lease).await.ok();
    Slots::wait_all_free(&cluster.nodes[0], &cluster.nodes[0].node().http, TIMEOUT).await;
}

/// Leases, uses and releases until stopped, and counts the rounds.
async fn lease_in_loop(master: Farm, rounds: Arc<AtomicUsize>, stop: Arc<AtomicBool>) {
    while !stop.load(Ordering::Relaxed) {
        let lease = master.get().await;
        master.probe(&lease).await.ok();
        master.reset(&lease).await.ok();
        rounds.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn busy_master_does_not_starve_other() {
    const ROUNDS: usize = 12;
    let cluster = Cluster::start(&["node 2 --port 0"]).await;
    let watch = SlotMonitor::start(&cluster.nodes[0].node().http);
    let [busy, quiet] = cluster.masters();
    let stop = Arc::<AtomicBool>::default();
    let rounds: [Arc<AtomicUsize>; 2] = Default::default();
    let mut clients = JoinSet::new();
    for _ in 0..10 {
        clients.spawn(lease_in_loop(busy.clone(), Arc::clone(&rounds[0]), Arc::clone(&stop)));
    }
    eventually("the clients of the busy master are served", TIMEOUT, async || {
        rounds[0].load(Ordering::Relaxed) > 4
    })
    .await;
    let started = Instant::now();
    let before = rounds[0].load(Ordering::Relaxed);
    clients.spawn(lease_in_loop(quiet, Arc::clone(&rounds[1]), Arc::clone(&stop)));
    eventually("the client of the quiet master is served too", TIMEOUT * 2, async || {
        rounds[1].load(Ordering::Relaxed) >= ROUNDS
    })
    .await;
    let busy_rounds = rounds[0].load(Ordering::Relaxed) - before;
    println!(
        "{ROUNDS} leases for one client at the quiet master in {:?}, {busy_rounds} for ten at the busy one",
        started.elapsed()
    );
    stop.store(true, Ordering::Relaxed);
    while let Some(client) = clients.join_next().await {
        client.expect("every client is served");
    }
    Slots::wait_all_free(&cluster.nodes[0], &cluster.nodes[0].node().http, TIMEOUT).await;
    watch.assert_consistent().await;
}

#[tokio::test]
async fn keys_of_ended_leases_are_removed() {
    let cluster = Cluster::start(&["node 2 --port 0"]).await;
    let [one, _] = cluster.masters();
    let keys = async || cluster.redis.query(1, &["KEYS", "webgym:keys:*"]).await;
    for round in 0..5 {
        let lease = get_with_key(&one, &format!("k{round}")).await;
        assert_eq!(
            keys().await.last(),
            Some(&format!("webgym:keys:k{round}")),
            "the key is shared while the lease is held"
        );
        one.reset(&lease).await.ok();
        eventually("its key is removed with the lease", TIMEOUT, async || keys().await.is_empty()).await;
    }
    let repeated = get_with_key(&one, "k0").await;
    assert_eq!(get_with_key(&one, "k0").await, repeated, "a key can be used again");
}
