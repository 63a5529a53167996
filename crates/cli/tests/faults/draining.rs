//! Draining nodes: they finish their leases and accept no new ones from any master.

use std::time::Instant;

use rustix::process::Signal;
use serde_json::Value;
use testkit::{Farm, Lease, PythonMaster, Redis, Slots, Tier, Webgym, eventually};
use tokio::{process::Command, task::JoinSet};

use crate::{TIMEOUT, WEBGYM, webgym};

/// Runs `webgym` with these arguments to its end; returns exit code and output.
async fn run_webgym(arguments: &str) -> (Option<i32>, String) {
    let output =
        Command::new(WEBGYM).args(arguments.split_whitespace()).env_remove("WEBGYM_API_KEY").output();
    let output = output.await.expect("the task runs");
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    (output.status.code(), text.concat())
}

async fn master_of(nodes: &[&Webgym]) -> Webgym {
    let named = nodes.iter().map(|node| format!("--node {}", node.url("node"))).collect::<Vec<_>>().join(" ");
    webgym(&format!("master --port 0 {named}")).await
}

async fn node_info(master: &Farm, node: &str) -> Value {
    let info = master.info().await;
    let nodes = info["nodes"].as_array().cloned().unwrap_or_default();
    nodes.into_iter().find(|one| one["hash"] == node).unwrap_or_default()
}

#[tokio::test]
async fn drained_node_gets_no_new_leases() {
    let (leaving, staying) = (webgym("node 2 --port 0").await, webgym("node 1 --port 0").await);
    let fronts = [master_of(&[&leaving, &staying]).await, master_of(&[&leaving, &staying]).await];
    let masters = fronts.each_ref().map(Webgym::master);
    let held = masters[0].get().await;
    assert_eq!(held.node, leaving.url("node"), "the node with more free slots is chosen");
    let arguments = format!("drain {} --master {}", leaving.url("node"), fronts[0].url("master"));
    let (code, text) = run_webgym(&arguments).await;
    assert!(code == Some(0) && text.contains("is draining; leases held there: 1"), "{code:?} {text}");

    // Neither master leases from it, although the other one has not polled it yet.
    for master in &masters {
        let lease = Lease::parse(&master.try_get(&[("wait_secs", "0")]).await.ok());
        assert_eq!(lease.node, staying.url("node"));
        master.try_get(&[("wait_secs", "0")]).await.assert_error(503, "no_capacity", "No available nodes");
        master.probe(&held).await.ok();
        master.reset(&lease).await.ok();
        eventually("the other slot is available again", TIMEOUT, async || {
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
    eventually("the other master knows that it drains", TIMEOUT, async || {
        node_info(&masters[1], &leaving.url("node")).await["draining"] == true
    })
    .await;
    let slots = Slots::fetch(&leaving.node().http).await;
    assert!(slots.is_consistent() && slots.in_use == 1, "{slots:?}");

    let waiting = tokio::spawn(async move { run_webgym(&format!("{arguments} --wait 60")).await });
    masters[1].reset(&held).await.ok();
    let (code, text) = waiting.await.expect("the task runs");
    assert!(code == Some(0) && text.contains("has no leases left"), "{code:?} {text}");

    let (code, text) = run_webgym(&format!("drain {} --undo", leaving.url("node"))).await;
    assert!(code == Some(0) && text.contains("grants leases again"), "{code:?} {text}");
    let leases = [masters[0].get().await, masters[0].get().await, masters[0].get().await];
    assert_eq!(leases.iter().filter(|lease| lease.node == leaving.url("node")).count(), 2, "{leases:?}");
}

#[tokio::test]
async fn drain_requires_key_and_supporting_node() {
    let node = webgym("node 1 --port 0").await;
    let (code, text) = run_webgym(&format!("drain {} --api-key wrong", node.url("node"))).await;
    assert!(code == Some(1) && text.contains("Invalid API Key."), "{code:?} {text}");
    assert_eq!(node.node().info().await.get("draining"), None, "the node is unchanged");
    let python = testkit::PythonNode::start(1).await;
    let front = webgym(&format!("master --port 0 --node {}", python.url)).await;
    let arguments = format!("drain {} --master {}", python.url, front.url("master"));
    let (code, text) = run_webgym(&arguments).await;
    assert!(code == Some(1) && text.contains("cannot be drained"), "{code:?} {text}");
    let (code, text) = run_webgym(&format!("drain elsewhere --master {}", front.url("master"))).await;
    assert!(code == Some(1) && text.contains(&python.url), "{code:?} {text}");
}

#[tokio::test]
async fn sigterm_waits_for_leases() {
    let (mut leaving, staying) = (webgym("node 2 --port 0").await, webgym("node 1 --port 0").await);
    let front = master_of(&[&leaving, &staying]).await;
    let master = front.master();
    let held = master.get().await;
    assert_eq!(held.node, leaving.url("node"));
    leaving.signal(Signal::TERM);
    assert_eq!(leaving.wait_for_event("draining").await["in_use"], 1);
    let own = leaving.node();
    let other = Lease::parse(&master.try_get(&[("wait_secs", "0")]).await.ok());
    assert_eq!(other.node, staying.url("node"), "no new lease from a draining node");
    // Existing leases keep working, and the shutdown cannot be undone.
    master.probe(&held).await.ok();
    own.http.post("/undrain", &[]).await.assert_error(503, "shutting_down", "shutting down");
    master.reset(&held).await.ok();
    assert_eq!(leaving.wait_for_exit(TIMEOUT).await.code(), Some(0), "{}", leaving.log());
    assert_eq!(leaving.leftovers(), Vec::<String>::new());
    master.reset(&other).await.ok();
}

#[tokio::test]
async fn drain_time_is_bounded() {
    let mut bounded = webgym("node 1 --port 0 --drain-secs 1").await;
    bounded.node().get().await;
    bounded.signal(Signal::TERM);
    assert_eq!(bounded.wait_for_exit(TIMEOUT).await.code(), Some(0), "{}", bounded.log());
    assert!(bounded.log().contains("did not end in time"), "{}", bounded.log());

    let mut signalled_twice = webgym("node 1 --port 0").await;
    signalled_twice.node().get().await;
    signalled_twice.signal(Signal::TERM);
    signalled_twice.wait_for_event("draining").await;
    signalled_twice.signal(Signal::TERM);
    assert_eq!(signalled_twice.wait_for_exit(TIMEOUT).await.code(), Some(0), "{}", signalled_twice.log());

    let mut interrupted = webgym("node 1 --port 0").await;
    interrupted.node().get().await;
    interrupted.signal(Signal::INT);
    assert_eq!(interrupted.wait_for_exit(TIMEOUT).await.code(), Some(0), "{}", interrupted.log());
}

/// Leases, uses and releases until stopped; every call must succeed.
async fn lease_in_loop(master: Farm, stop: std::sync::Arc<std::sync::atomic::AtomicBool>) -> usize {
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
async fn rolling_restart_under_load_loses_nothing() {
    let mut nodes = vec![webgym("node 1 --port 0").await, webgym("node 1 --port 0").await];
    let front = master_of(&[&nodes[0], &nodes[1]]).await;
    let stop = std::sync::Arc::default();
    let mut clients = JoinSet::new();
    for _ in 0..4 {
        clients.spawn(lease_in_loop(front.master(), std::sync::Arc::clone(&stop)));
    }
    let started = Instant::now();
    for node in &mut nodes {
        let url = node.url("node");
        node.signal(Signal::TERM);
        assert_eq!(node.wait_for_exit(TIMEOUT * 2).await.code(), Some(0), "{}", node.log());
        let port = url.rsplit(':').next().expect("a port").to_owned();
        *node = webgym(&format!("node 1 --port {port}")).await;
        eventually("the master uses it again", TIMEOUT, async || {
            node_info(&front.master(), &url).await["healthy"] == true
        })
        .await;
    }
    let duration = started.elapsed();
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let mut rounds = 0;
    while let Some(worked) = clients.join_next().await {
        rounds += worked.expect("no call of a client failed");
    }
    println!("rolling restart of two nodes took {duration:?}; {rounds} leases meanwhile, none lost");
    assert!(rounds >= 4);
    for node in &nodes {
        Slots::wait_all_free(node, &node.node().http, TIMEOUT).await;
    }
}

#[tokio::test]
async fn python_master_avoids_draining_node() {
    let redis = std::sync::Arc::new(Redis::start().await);
    let arguments = format!("node 1 --port 0 --no-mirror --redis {}", redis.url());
    let (mut leaving, staying) = (webgym(&arguments).await, webgym(&arguments).await);
    eventually("both are registered", TIMEOUT, async || redis.registered_nodes().await.len() == 2).await;
    let python = PythonMaster::start(std::sync::Arc::clone(&redis)).await;
    let master = Farm::new(Tier::Master, &python.url);
    let mut held = Vec::new();
    for _ in 0..2 {
        held.push(Lease::parse(&master.try_get(&[]).await.ok()));
    }
    let (there, here): (Vec<_>, Vec<_>) =
        held.into_iter().partition(|lease| lease.node == leaving.url("node"));
    leaving.signal(Signal::TERM);
    leaving.wait_for_event("draining").await;
    master.probe(&there[0]).await.ok();
    master.reset(&here[0]).await.ok();
    eventually("the other slot is available again", TIMEOUT, async || {
        Slots::fetch(&staying.node().http).await.is_all_free()
    })
    .await;
    let next = Lease::parse(&master.try_get(&[]).await.ok());
    assert_eq!(next.node, staying.url("node"));
    assert_eq!(master.try_get(&[]).await.status, 503);
    assert_eq!(
        redis.registered_nodes().await.len(),
        2,
        "a draining node stays registered because it still has leases"
    );
    master.reset(&there[0]).await.ok();
    assert_eq!(leaving.wait_for_exit(TIMEOUT).await.code(), Some(0), "{}", leaving.log());
    eventually("it has removed its registry entry", TIMEOUT, async || {
        redis.registered_nodes().await.len() == 1
    })
    .await;
    master.reset(&next).await.ok();
}
