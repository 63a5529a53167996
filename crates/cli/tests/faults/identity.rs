//! Nodes that could be confused with each other: equal names, one machine, changing addresses. No node is lost or counted
//! twice, and leases stay valid.

use std::time::Duration;

use rustix::process::Signal;
use testkit::{Farm, PythonNode, Redis, eventually};

use crate::{TIMEOUT, webgym};

async fn nodes_of(master: &Farm) -> Vec<String> {
    let info = master.info().await;
    let nodes = info["nodes"].as_array().cloned().unwrap_or_default();
    nodes.iter().filter_map(|node| Some(node["hash"].as_str()?.to_owned())).collect()
}

#[tokio::test]
async fn nodes_with_same_id_register_separately() {
    let redis = Redis::start().await;
    let arguments =
        format!("node 1 --port 0 --no-mirror --node-id twin --registry-pace 20 --redis {}", redis.url());
    let (first, second) = tokio::join!(webgym(&arguments), webgym(&arguments));
    eventually("both are registered", TIMEOUT, async || redis.registered_nodes().await.len() == 2).await;
    let front = webgym(&format!("master --port 0 --registry-pace 20 --redis {}", redis.url())).await;
    let master = front.master();
    eventually("both are found", TIMEOUT, async || nodes_of(&master).await.len() == 2).await;
    let names: Vec<String> = redis.registered_nodes().await.into_iter().map(|(name, _)| name).collect();
    assert_eq!(names[0], "twin");
    assert!(names[1].starts_with("twin-"), "{names:?}");
    let leases = [master.get().await, master.get().await];
    assert_ne!(leases[0].node, leases[1].node);
    for lease in &leases {
        master.reset(lease).await.ok();
    }
    // Each node removes only its own entry.
    let leaving = if redis.registered_nodes().await[0].1 == first.url("node") { second } else { first };
    eventually("both are still known", TIMEOUT, async || nodes_of(&master).await.len() == 2).await;
    leaving.stop().await;
    eventually("one entry is left", TIMEOUT, async || redis.registered_nodes().await.len() == 1).await;
    assert_eq!(redis.registered_nodes().await[0].0, "twin");
}

#[tokio::test]
async fn restarted_node_keeps_its_registry_entry() {
    let redis = Redis::start().await;
    let arguments = |port: &str| format!("node 1 --port {port} --no-mirror --redis {}", redis.url());
    let first = webgym(&arguments("0")).await;
    let (url, port) = (first.url("node"), first.url("node").rsplit(':').next().expect("a port").to_owned());
    eventually("it is registered", TIMEOUT, async || redis.registered_nodes().await.len() == 1).await;
    let before = redis.registered_nodes().await;
    first.signal(Signal::KILL);
    first.assert_no_leftovers(TIMEOUT).await;
    let second = webgym(&arguments(&port)).await;
    assert_eq!(second.url("node"), url);
    eventually("the entry belongs to the new process", TIMEOUT, async || {
        let owner = redis.query(1, &["GET", &format!("webgym:owners:{}", before[0].0)]).await;
        let incarnation = second.node().info().await["incarnation"].as_str().unwrap_or_default().to_owned();
        owner == [incarnation]
    })
    .await;
    assert_eq!(redis.registered_nodes().await, before, "one entry with the same name");
    second.stop().await;
    assert!(redis.registered_nodes().await.is_empty());
}

#[tokio::test]
async fn foreign_registry_entry_is_kept() {
    let redis = Redis::start().await;
    let python = PythonNode::start(1).await;
    // A node of the Python system has registered under the id that ours is configured with.
    redis.query(1, &["SET", "omnibox:nodes:worker-7", &python.url, "EX", "120"]).await;
    let arguments = format!("node 1 --port 0 --no-mirror --node-id worker-7 --redis {}", redis.url());
    let ours = webgym(&arguments).await;
    let front = webgym(&format!("master --port 0 --redis {}", redis.url())).await;
    let master = front.master();
    eventually("both are found", TIMEOUT, async || {
        let nodes = nodes_of(&master).await;
        nodes.contains(&python.url) && nodes.contains(&ours.url("node"))
    })
    .await;
}

#[tokio::test]
async fn node_with_two_addresses_counts_once() {
    let node = webgym("node 1 --port 0 --host 127.0.0.1").await;
    let by_name = node.url("node").replace("127.0.0.1", "localhost");
    let front = webgym(&format!("master --port 0 --node {} --node {by_name}", node.url("node"))).await;
    let master = front.master();
    assert_eq!(nodes_of(&master).await.len(), 1);
    let lease = master.get().await;
    let metrics = master.http.get("/metrics", &[]).await.text();
    assert!(metrics.contains("\nwebgym_master_capacity 1\n"), "{metrics}");
    // The master accepts both addresses.
    for name in [node.url("node"), by_name] {
        master.probe(&testkit::Lease { node: name, ..lease.clone() }).await.ok();
    }
    master.reset(&lease).await.ok();
}

#[tokio::test]
async fn address_change_keeps_leases() {
    let redis = Redis::start().await;
    // The registry names the same node first by one address, then by another, as if the machine had got a new address
    // from DHCP.
    let node = webgym("node 1 --port 0 --host 127.0.0.1").await;
    let old = node.url("node");
    let new = old.replace("127.0.0.1", "localhost");
    let entry = "omnibox:nodes:mover";
    redis.query(1, &["SET", entry, &old, "EX", "120"]).await;
    let front = webgym(&format!("master --port 0 --registry-pace 20 --redis {}", redis.url())).await;
    let master = front.master();
    let lease = master.get().await;
    assert_eq!(lease.node, old);
    redis.query(1, &["SET", entry, &new, "EX", "120"]).await;
    eventually("the new address is known", TIMEOUT, async || {
        master.probe(&testkit::Lease { node: new.clone(), ..lease.clone() }).await.status == 200
    })
    .await;
    eventually("it is still one node", TIMEOUT, async || nodes_of(&master).await.len() == 1).await;
    master.probe(&lease).await.ok();
    master.reset(&lease).await.ok();
    tokio::time::timeout(Duration::from_secs(30), node.stop()).await.expect("it stops");
}
