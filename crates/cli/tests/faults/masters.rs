//! Several masters for the same nodes: a client may ask either and is served as by one.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use testkit::{Farm, Lease, Redis, SlotMonitor, Slots, Webgym, eventually};
use tokio::task::JoinSet;

use crate::{SECONDS, crowds::waits, webgym};

struct Cluster {
    redis: Redis,
    nodes: Vec<Webgym>,
    fronts: [Webgym; 2],
}

impl Cluster {
    async fn start(nodes: &[&str]) -> Self {
        let redis = Redis::start().await;
        let mut started = Vec::new();
        for words in nodes {
            started.push(webgym(&format!("{words} --no-mirror --redis {}", redis.url())).await);
        }
        let count = started.len();
        eventually("all are registered", SECONDS, async || redis.registered_nodes().await.len() == count)
            .await;
        let words = format!("master --port 0 --redis {}", redis.url());
        let fronts = [webgym(&words).await, webgym(&words).await];
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

async fn ask(master: &Farm, key: &str) -> Lease {
    Lease::parse(&master.try_get(&[("idempotency_key", key), ("wait_secs", "60")]).await.ok())
}

#[tokio::test]
async fn key_asked_of_two_masters() {
    let cluster = Cluster::start(&["node 2 --port 0", "node 2 --port 0"]).await;
    let [one, other] = cluster.masters();
    let first = ask(&one, "k").await;
    assert_eq!(ask(&other, "k").await, first, "the other master knows what was given");
    assert_eq!(ask(&one, "k").await, first);
    assert_eq!(cluster.in_use().await, 1);
    other.reset(&first).await.ok();
    let second = ask(&one, "k").await;
    assert_ne!(second.id, first.id, "what was given back is over, whoever took it back");
    one.reset(&second).await.ok();

    // The same key at both at the same moment.
    let mut pairs = JoinSet::new();
    for pair in 0..12 {
        let (one, other) = (one.clone(), other.clone());
        pairs.spawn(async move {
            let key = format!("pair {pair}");
            let (left, right) = tokio::join!(ask(&one, &key), ask(&other, &key));
            assert_eq!(left, right, "{key}");
            one.reset(&left).await.ok();
        });
    }
    while let Some(pair) = pairs.join_next().await {
        pair.expect("one lease a key");
    }
    for node in &cluster.nodes {
        Slots::wait_all_free(node, &node.node().http, SECONDS).await;
    }
}

/// Otherwise the one behind would hold the slot that the one before it waits for, and neither would move.
#[tokio::test]
async fn key_served_elsewhere_does_not_wait_in_line() {
    let cluster = Cluster::start(&["node 1 --port 0"]).await;
    let [one, other] = cluster.masters();
    let held = ask(&one, "k").await;
    let asking = other.clone();
    let first = tokio::spawn(async move { ask(&asking, "another").await });
    eventually("somebody waits there", SECONDS, async || waits(&other).await == 1).await;
    assert_eq!(ask(&other, "k").await, held, "what it holds already");
    other.reset(&held).await.ok();
    let served = first.await.expect("the first in line is served");
    other.reset(&served).await.ok();
    Slots::wait_all_free(&cluster.nodes[0], &cluster.nodes[0].node().http, SECONDS).await;
}

#[tokio::test]
async fn client_that_lost_its_answer_asks_the_other_master() {
    let cluster = Cluster::start(&["node 1 --port 0", "node 1 --port 0"]).await;
    let [one, other] = cluster.masters();
    // Both nodes think while the client loses patience.
    for node in &cluster.nodes {
        node.freeze().await;
    }
    let asking = one.clone();
    let client = tokio::spawn(async move { ask(&asking, "k").await });
    eventually("the first master is at it", SECONDS, async || {
        !cluster.redis.query(1, &["KEYS", "webgym:keys:*"]).await.is_empty()
    })
    .await;
    client.abort();
    for node in &cluster.nodes {
        node.resume();
    }
    let lease = ask(&other, "k").await;
    other.probe(&lease).await.ok();
    assert_eq!(ask(&one, "k").await, lease);
    eventually("there is one lease, not two", SECONDS, async || cluster.in_use().await == 1).await;
    // Whoever looks out for lost leases must not take this one away.
    let until = Instant::now() + Duration::from_secs(4);
    while Instant::now() < until {
        other.probe(&lease).await.ok();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    one.reset(&lease).await.ok();
    for node in &cluster.nodes {
        Slots::wait_all_free(node, &node.node().http, SECONDS).await;
    }
}

#[tokio::test]
async fn keys_while_redis_is_away() {
    let mut cluster = Cluster::start(&["node 2 --port 0"]).await;
    cluster.redis.kill().await;
    let [one, other] = cluster.masters();
    let lease = ask(&one, "k").await;
    assert_eq!(ask(&one, "k").await, lease, "each master still knows its own");
    assert_eq!(ask(&other, "k").await, lease, "and a node knows what it gave under a key");
    one.reset(&lease).await.ok();
    Slots::wait_all_free(&cluster.nodes[0], &cluster.nodes[0].node().http, SECONDS).await;
}

/// Takes, uses and gives back until told to stop; counts.
async fn work(master: Farm, rounds: Arc<AtomicUsize>, stop: Arc<AtomicBool>) {
    while !stop.load(Ordering::Relaxed) {
        let lease = master.get().await;
        master.probe(&lease).await.ok();
        master.reset(&lease).await.ok();
        rounds.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn crowd_at_one_master_does_not_starve_the_other() {
    const ROUNDS: usize = 12;
    let cluster = Cluster::start(&["node 2 --port 0"]).await;
    let watch = SlotMonitor::start(&cluster.nodes[0].node().http);
    let [crowded, quiet] = cluster.masters();
    let stop = Arc::<AtomicBool>::default();
    let rounds: [Arc<AtomicUsize>; 2] = Default::default();
    let mut clients = JoinSet::new();
    for _ in 0..10 {
        clients.spawn(work(crowded.clone(), Arc::clone(&rounds[0]), Arc::clone(&stop)));
    }
    eventually("the crowd is at work", SECONDS, async || rounds[0].load(Ordering::Relaxed) > 4).await;
    let started = Instant::now();
    let before = rounds[0].load(Ordering::Relaxed);
    clients.spawn(work(quiet, Arc::clone(&rounds[1]), Arc::clone(&stop)));
    eventually("the lone client is served too", SECONDS * 2, async || {
        rounds[1].load(Ordering::Relaxed) >= ROUNDS
    })
    .await;
    let crowd = rounds[0].load(Ordering::Relaxed) - before;
    println!(
        "{ROUNDS} leases for one client at the quiet master in {:?}, {crowd} for ten at the other",
        started.elapsed()
    );
    stop.store(true, Ordering::Relaxed);
    while let Some(client) = clients.join_next().await {
        client.expect("everybody is served");
    }
    Slots::wait_all_free(&cluster.nodes[0], &cluster.nodes[0].node().http, SECONDS).await;
    watch.assert_consistent().await;
}

#[tokio::test]
async fn keys_of_leases_that_are_over_do_not_pile_up() {
    let cluster = Cluster::start(&["node 2 --port 0"]).await;
    let [one, _] = cluster.masters();
    let keys = async || cluster.redis.query(1, &["KEYS", "webgym:keys:*"]).await;
    for round in 0..5 {
        let lease = ask(&one, &format!("k{round}")).await;
        assert_eq!(
            keys().await.last(),
            Some(&format!("webgym:keys:k{round}")),
            "it is shared while it is held"
        );
        one.reset(&lease).await.ok();
        eventually("its key goes with the lease", SECONDS, async || keys().await.is_empty()).await;
    }
    let again = ask(&one, "k0").await;
    assert_eq!(ask(&one, "k0").await, again, "a key may be used again");
}
