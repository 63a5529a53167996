//! Nodes that are told to go: they finish what they have, and get nothing new from anybody.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use testkit::{Farm, Lease, PythonMaster, Redis, Slots, Tier, Webgym, eventually};
use tokio::{process::Command, task::JoinSet};

use crate::{SECONDS, WEBGYM, webgym};

/// `webgym` with these words, run to its end: its exit code and everything it said.
async fn said(words: &str) -> (Option<i32>, String) {
    let output = Command::new(WEBGYM).args(words.split_whitespace()).env_remove("WEBGYM_API_KEY").output();
    let output = output.await.expect("it runs");
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    (output.status.code(), said.concat())
}

async fn master_of(nodes: &[&Webgym]) -> Webgym {
    let named: String = nodes.iter().map(|node| format!(" --node {}", node.url("node"))).collect();
    webgym(&format!("master --port 0{named}")).await
}

async fn told(master: &Farm, node: &str) -> Value {
    let info = master.info().await;
    let nodes = info["nodes"].as_array().cloned().unwrap_or_default();
    nodes.into_iter().find(|one| one["hash"] == node).unwrap_or_default()
}

#[tokio::test]
async fn node_drained_through_a_master() {
    let (leaving, staying) = (webgym("node 2 --port 0").await, webgym("node 1 --port 0").await);
    let fronts = [master_of(&[&leaving, &staying]).await, master_of(&[&leaving, &staying]).await];
    let masters = fronts.each_ref().map(Webgym::master);
    let held = masters[0].get().await;
    assert_eq!(held.node, leaving.url("node"), "the freest");
    let words = format!("drain {} --master {}", leaving.url("node"), fronts[0].url("master"));
    let (code, text) = said(&words).await;
    assert!(code == Some(0) && text.contains("is draining; leases held there: 1"), "{code:?} {text}");

    // Neither master sends anybody there, though the other has not heard of it yet.
    for master in &masters {
        let lease = Lease::parse(&master.try_get(&[("wait_secs", "0")]).await.ok());
        assert_eq!(lease.node, staying.url("node"));
        master.try_get(&[("wait_secs", "0")]).await.assert_error(503, "no_capacity", "No available nodes");
        master.probe(&held).await.ok();
        master.reset(&lease).await.ok();
        eventually("the other slot is clean again", SECONDS, async || {
            Slots::fetch(&staying.node().http).await.is_all_free()
        })
        .await;
    }
    let info = leaving.node().info().await;
    assert_eq!(
        (&info["available"], &info["capacity"], &info["draining"]),
        (&0.into(), &2.into(), &true.into())
    );
    let own = leaving.node().try_get(&[]).await;
    own.assert_error(503, "no_capacity", "No available nodes with capacity to create new instance");
    assert_eq!(leaving.node().http.get("/readyz", &[]).await.status, 503);
    assert_eq!(told(&masters[1], &leaving.url("node")).await["draining"], true);
    let slots = Slots::fetch(&leaving.node().http).await;
    assert!(slots.is_consistent() && slots.in_use == 1, "{slots:?}");

    let waiting = tokio::spawn(async move { said(&format!("{words} --wait 60")).await });
    masters[1].reset(&held).await.ok();
    let (code, text) = waiting.await.expect("it runs");
    assert!(code == Some(0) && text.contains("holds no lease any more"), "{code:?} {text}");

    let (code, text) = said(&format!("drain {} --undo", leaving.url("node"))).await;
    assert!(code == Some(0) && text.contains("gives leases again"), "{code:?} {text}");
    let leases = [masters[0].get().await, masters[0].get().await, masters[0].get().await];
    assert_eq!(leases.iter().filter(|lease| lease.node == leaving.url("node")).count(), 2, "{leases:?}");
}

#[tokio::test]
async fn draining_needs_the_key_and_a_node_that_can() {
    let node = webgym("node 1 --port 0").await;
    let (code, text) = said(&format!("drain {} --api-key wrong", node.url("node"))).await;
    assert!(code == Some(1) && text.contains("Invalid API Key."), "{code:?} {text}");
    assert_eq!(node.node().info().await.get("draining"), None, "nothing happened");
    let python = testkit::PythonNode::start(1).await;
    let front = webgym(&format!("master --port 0 --node {}", python.url)).await;
    let words = format!("drain {} --master {}", python.url, front.url("master"));
    let (code, text) = said(&words).await;
    assert!(code == Some(1) && text.contains("cannot be drained"), "{code:?} {text}");
    let (code, text) = said(&format!("drain elsewhere --master {}", front.url("master"))).await;
    assert!(code == Some(1) && text.contains(&python.url), "{code:?} {text}");
}

#[tokio::test]
async fn sigterm_lets_the_leases_of_a_node_end() {
    let (mut leaving, staying) = (webgym("node 2 --port 0").await, webgym("node 1 --port 0").await);
    let front = master_of(&[&leaving, &staying]).await;
    let master = front.master();
    let held = master.get().await;
    assert_eq!(held.node, leaving.url("node"));
    leaving.signal(Signal::TERM);
    assert_eq!(leaving.wait_for_event("draining").await["in_use"], 1);
    let own = leaving.node();
    let other = Lease::parse(&master.try_get(&[("wait_secs", "0")]).await.ok());
    assert_eq!(other.node, staying.url("node"), "no new lease where one leaves");
    // What is held goes on as before, and nobody can call the leaving off.
    master.probe(&held).await.ok();
    own.http.post("/undrain", &[]).await.assert_error(503, "shutting_down", "shutting down");
    master.reset(&held).await.ok();
    assert_eq!(leaving.wait_for_exit(SECONDS).await.code(), Some(0), "{}", leaving.log());
    assert_eq!(leaving.leftovers(), Vec::<String>::new());
    master.reset(&other).await.ok();
}

#[tokio::test]
async fn leases_that_never_end_do_not_hold_a_node_for_ever() {
    let mut bounded = webgym("node 1 --port 0 --drain-secs 1").await;
    bounded.node().get().await;
    bounded.signal(Signal::TERM);
    assert_eq!(bounded.wait_for_exit(SECONDS).await.code(), Some(0), "{}", bounded.log());
    assert!(bounded.log().contains("did not end in time"), "{}", bounded.log());

    let mut pressed = webgym("node 1 --port 0").await;
    pressed.node().get().await;
    pressed.signal(Signal::TERM);
    pressed.wait_for_event("draining").await;
    pressed.signal(Signal::TERM);
    assert_eq!(pressed.wait_for_exit(SECONDS).await.code(), Some(0), "{}", pressed.log());

    let mut interrupted = webgym("node 1 --port 0").await;
    interrupted.node().get().await;
    interrupted.signal(Signal::INT);
    assert_eq!(interrupted.wait_for_exit(SECONDS).await.code(), Some(0), "{}", interrupted.log());
}

/// Takes, uses and gives back, again and again until told to stop; every answer must be a good one.
async fn work(master: Farm, stop: std::sync::Arc<std::sync::atomic::AtomicBool>) -> usize {
    let mut rounds = 0;
    while !stop.load(std::sync::atomic::Ordering::Relaxed) {
        let lease = master.get().await;
        for _ in 0..3 {
            master.probe(&lease).await.ok();
        }
        master.reset(&lease).await.ok();
        rounds += 1;
    }
    rounds
}

#[tokio::test]
async fn rolling_restart_under_load() {
    let mut nodes = vec![webgym("node 1 --port 0").await, webgym("node 1 --port 0").await];
    let front = master_of(&[&nodes[0], &nodes[1]]).await;
    let stop = std::sync::Arc::default();
    let mut clients = JoinSet::new();
    for _ in 0..4 {
        clients.spawn(work(front.master(), std::sync::Arc::clone(&stop)));
    }
    let started = Instant::now();
    for place in 0..nodes.len() {
        let url = nodes[place].url("node");
        let node = &mut nodes[place];
        node.signal(Signal::TERM);
        assert_eq!(node.wait_for_exit(SECONDS * 2).await.code(), Some(0), "{}", node.log());
        let port = url.rsplit(':').next().expect("a port").to_owned();
        nodes[place] = webgym(&format!("node 1 --port {port}")).await;
        eventually("the master uses it again", SECONDS, async || {
            told(&front.master(), &url).await["healthy"] == true
        })
        .await;
    }
    let took = started.elapsed();
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let mut rounds = 0;
    while let Some(worked) = clients.join_next().await {
        rounds += worked.expect("no client had a failure");
    }
    println!("rolling restart of two nodes took {took:?}; {rounds} leases meanwhile, none lost");
    assert!(rounds >= 4);
    for node in &nodes {
        Slots::wait_all_free(node, &node.node().http, SECONDS).await;
    }
}

#[tokio::test]
async fn python_master_leaves_a_draining_node_alone() {
    let redis = std::sync::Arc::new(Redis::start().await);
    let words = format!("node 1 --port 0 --no-mirror --redis {}", redis.url());
    let (mut leaving, staying) = (webgym(&words).await, webgym(&words).await);
    eventually("both are registered", SECONDS, async || redis.registered_nodes().await.len() == 2).await;
    let python = PythonMaster::start(std::sync::Arc::clone(&redis)).await;
    let master = Farm::new(Tier::Master, &python.url);
    let leases = [0, 1].map(|_| ());
    let mut held = Vec::new();
    for () in leases {
        held.push(Lease::parse(&master.try_get(&[]).await.ok()));
    }
    let (there, here): (Vec<_>, Vec<_>) =
        held.into_iter().partition(|lease| lease.node == leaving.url("node"));
    leaving.signal(Signal::TERM);
    leaving.wait_for_event("draining").await;
    master.probe(&there[0]).await.ok();
    master.reset(&here[0]).await.ok();
    eventually("the other slot is clean again", SECONDS, async || {
        Slots::fetch(&staying.node().http).await.is_all_free()
    })
    .await;
    let next = Lease::parse(&master.try_get(&[]).await.ok());
    assert_eq!(next.node, staying.url("node"));
    assert_eq!(master.try_get(&[]).await.status, 503);
    assert_eq!(
        redis.registered_nodes().await.len(),
        2,
        "who drains is still to be found: leases are held there"
    );
    master.reset(&there[0]).await.ok();
    assert_eq!(leaving.wait_for_exit(SECONDS).await.code(), Some(0), "{}", leaving.log());
    eventually("it has taken its name out", Duration::from_secs(10), async || {
        redis.registered_nodes().await.len() == 1
    })
    .await;
    master.reset(&next).await.ok();
}
