//! Nodes that are killed, frozen or restarted, and nodes of the Python system.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};
use testkit::{Farm, Lease, NodeFault, PythonNode, SlotMonitor, Slots, Webgym, eventually, open_connections};

use crate::{TIMEOUT, webgym};

/// Returns what the master reports about one node.
async fn node_info(master: &Farm, node: &str) -> Value {
    let info = master.info().await;
    let nodes = info["nodes"].as_array().cloned().unwrap_or_default();
    nodes.into_iter().find(|one| one["hash"] == node).unwrap_or_default()
}

async fn wait_until_healthy(master: &Farm, node: &str, wanted: bool) {
    let what = format!("{node} is {}healthy", if wanted { "" } else { "not " });
    eventually(&what, TIMEOUT, async || node_info(master, node).await["healthy"] == wanted).await;
}

/// Starts two nodes and a master that knows both by URL.
async fn cluster() -> (Webgym, [Webgym; 2]) {
    let nodes = [webgym("node 1 --port 0").await, webgym("node 1 --port 0").await];
    let [first, second] = nodes.each_ref().map(|node| node.url("node"));
    let master = webgym(&format!("master --port 0 --node {first} --node {second}")).await;
    (master, nodes)
}

#[tokio::test]
async fn dead_node_is_skipped() {
    let (front, [first, second]) = cluster().await;
    let master = front.master();
    let leases = [master.get().await, master.get().await];
    let (dead, alive) = (first.url("node"), second.url("node"));
    let lost = leases.iter().find(|lease| lease.node == dead).expect("one lease per node").clone();
    let kept = leases.iter().find(|lease| lease.node == alive).expect("one lease per node").clone();
    let browsers = first.browsers();
    first.signal(Signal::KILL);
    eventually("calls to it fail with node_unreachable", TIMEOUT, async || {
        let reply = master.execute(&lost, json!({"back": {}})).await;
        (reply.status, reply.code().as_str()) == (502, "node_unreachable")
    })
    .await;
    wait_until_healthy(&master, &dead, false).await;
    master.probe(&kept).await.ok();
    master.reset(&kept).await.ok();
    for _ in 0..3 {
        let lease = master.get().await;
        assert_eq!(lease.node, alive, "new leases go to the running node");
        master.reset(&lease).await.ok();
    }
    first.assert_no_leftovers(TIMEOUT).await;
    assert!(browsers.iter().all(testkit::Browser::is_gone));
    let port = dead.rsplit(':').next().expect("a port").to_owned();
    let restarted = webgym(&format!("node 1 --port {port}")).await;
    wait_until_healthy(&master, &dead, true).await;
    master.probe(&lost).await.assert_error(400, "invalid_instance", "Invalid instance UUID");
    let leases = [master.get().await, master.get().await];
    assert!(leases.iter().any(|lease| lease.node == dead), "the restarted node is used again: {leases:?}");
    for lease in leases {
        master.reset(&lease).await.ok();
    }
    Slots::wait_all_free(&restarted, &restarted.node().http, TIMEOUT).await;
    Slots::wait_all_free(&second, &second.node().http, TIMEOUT).await;
}

#[tokio::test]
async fn frozen_node_is_skipped() {
    let (front, [first, second]) = cluster().await;
    let master = front.master();
    let leases = [master.get().await, master.get().await];
    let (frozen, running) = (first.url("node"), second.url("node"));
    let held = leases.iter().find(|lease| lease.node == frozen).expect("one lease per node").clone();
    let other = leases.iter().find(|lease| lease.node == running).expect("one lease per node").clone();
    first.freeze().await;
    let (calling, lease) = (master.clone(), held.clone());
    let waiting = tokio::spawn(async move { calling.probe(&lease).await });
    wait_until_healthy(&master, &frozen, false).await;
    master.reset(&other).await.ok();
    let started = Instant::now();
    let lease = master.get().await;
    assert_eq!(lease.node, running);
    assert!(started.elapsed() < Duration::from_secs(20), "a frozen node must not delay the others");
    master.reset(&lease).await.ok();
    first.resume();
    wait_until_healthy(&master, &frozen, true).await;
    assert_eq!(waiting.await.expect("the task runs").status, 200, "the request sent meanwhile is answered");
    master.probe(&held).await.ok();
    master.reset(&held).await.ok();
    for node in [&first, &second] {
        Slots::wait_all_free(node, &node.node().http, TIMEOUT).await;
    }
}

#[tokio::test]
async fn lease_of_node_frozen_during_get_is_released() {
    let node = webgym("node 2 --port 0").await;
    let front = webgym(&format!("master --port 0 --node {}", node.url("node"))).await;
    let master = front.master();
    let watch = SlotMonitor::start(&node.node().http);
    node.freeze().await;
    let reply = master.try_get(&[("wait_secs", "0")]).await;
    reply.assert_error(503, "no_capacity", "No available nodes");
    node.resume();
    // The node granted a lease after its master had timed out. It must be released before it expires.
    eventually("the abandoned lease is released", TIMEOUT, async || {
        Slots::fetch(&node.node().http).await.in_use == 0
    })
    .await;
    wait_until_healthy(&master, &node.url("node"), true).await;
    Slots::wait_all_free(&node, &node.node().http, TIMEOUT).await;
    let leases = [master.get().await, master.get().await];
    for lease in leases {
        master.reset(&lease).await.ok();
    }
    Slots::wait_all_free(&node, &node.node().http, TIMEOUT).await;
    watch.assert_consistent().await;
}

#[tokio::test]
async fn disconnect_during_get_leaks_no_lease() {
    let node = webgym("node 1 --port 0").await;
    let front = webgym(&format!("master --port 0 --node {}", node.url("node"))).await;
    let master = front.master();
    node.freeze().await;
    let caller = master.clone();
    let client = tokio::spawn(async move { caller.try_get(&[("wait_secs", "0")]).await });
    // There is no sign that the request has reached the frozen node; if it has not, the test is only less strict.
    tokio::time::sleep(Duration::from_millis(300)).await;
    client.abort();
    let port = front.url("master").rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
    eventually("the master has noticed the disconnect", TIMEOUT, async || open_connections(port) == 0).await;
    node.resume();
    Slots::wait_all_free(&node, &node.node().http, TIMEOUT).await;
    let lease = master.get().await;
    master.reset(&lease).await.ok();
}

#[tokio::test]
async fn python_node_works_next_to_ours() {
    let python = PythonNode::start(2).await;
    let ours = webgym("node 1 --port 0").await;
    let front = webgym(&format!("master --port 0 --node {} --node {}", python.url, ours.url("node"))).await;
    let master = front.master();
    let leases = [master.get().await, master.get().await, master.get().await];
    assert_eq!(leases.iter().filter(|lease| lease.node == python.url).count(), 2, "{leases:?}");
    master.try_get(&[("wait_secs", "0")]).await.assert_error(
        503,
        "no_capacity",
        "No available nodes with capacity",
    );
    let lease =
        leases.iter().find(|lease| lease.node == python.url).expect("a lease on the Python node").clone();
    master.execute(&lease, json!({"click_coords": {"x": "3", "y": 4}})).await.ok();
    assert_eq!(python.executed(), [json!({"click_coords": {"x": 3.0, "y": 4.0}})]);
    assert_eq!(master.metadata(&lease).await.ok(), json!({"width": 1280, "height": 768}));
    assert_eq!(master.probe(&lease).await.ok()["message"], "Probe successful");
    let screenshot = master.screenshot(&lease, &[]).await;
    assert_eq!(
        (screenshot.status, screenshot.content_type(), &screenshot.body[1..4]),
        (200, "image/png", &b"PNG"[..])
    );
    python.set_fault(NodeFault::DeadBrowsers);
    let dead = master.screenshot(&lease, &[]).await;
    dead.assert_error(500, "instance_lost", "not an image");
    assert_eq!(dead.json()["status"], "error");
    assert_eq!(master.probe(&lease).await.status, 500);
    assert_eq!(master.execute(&lease, json!({"back": {}})).await.status, 500);
    python.set_fault(NodeFault::None);
    master.reset(&lease).await.ok();
    master.reset(&lease).await.assert_error(400, "not_in_use", "Instance not in use or already released");
    master.probe(&lease).await.assert_error(400, "invalid_instance", "Invalid instance UUID");
    for lease in leases.iter().filter(|one| one.id != lease.id) {
        master.reset(lease).await.ok();
    }
    assert_eq!(python.in_use(), 0);
    let key = [("idempotency_key", "k"), ("wait_secs", "30")];
    let first = Lease::parse(&master.try_get(&key).await.ok());
    assert_eq!(first, Lease::parse(&master.try_get(&key).await.ok()), "although such a node ignores keys");
    assert_eq!(python.in_use(), usize::from(first.node == python.url));
    master.reset(&first).await.ok();
}
