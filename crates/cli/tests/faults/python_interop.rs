//! Clusters of both systems: our nodes under a master that behaves like the Python system's, and registered Python nodes
//! under our master.

use std::sync::Arc;

use serde_json::json;
use testkit::{Farm, Lease, PythonMaster, PythonNode, Redis, Slots, Tier, eventually};

use crate::{TIMEOUT, sites, webgym};

#[tokio::test]
async fn our_nodes_work_under_python_master() {
    let redis = Arc::new(Redis::start().await);
    let arguments = format!("node 1 --port 0 --no-mirror --allow-private-network --redis {}", redis.url());
    let nodes = [webgym(&arguments).await, webgym(&arguments).await];
    eventually("both are registered", TIMEOUT, async || redis.registered_nodes().await.len() == 2).await;
    for (name, url) in redis.registered_nodes().await {
        assert!(nodes.iter().any(|node| node.url("node") == url), "{url}");
        let ttl = redis.number(1, &["TTL", &format!("omnibox:nodes:{name}")]).await;
        assert!((60..=120).contains(&ttl), "{ttl}");
    }
    let python = PythonMaster::start(Arc::clone(&redis)).await;
    let master = Farm::new(Tier::Master, &python.url);
    let leases =
        [Lease::parse(&master.try_get(&[]).await.ok()), Lease::parse(&master.try_get(&[]).await.ok())];
    assert_ne!(leases[0].node, leases[1].node, "the node with more free slots is chosen");
    assert_eq!(master.try_get(&[]).await.status, 503);
    let pages = sites();
    for lease in &leases {
        master.visit(lease, &pages.url("/shop/")).await;
        assert!(master.text(lease).await.len() > 20);
        let screenshot = master.screenshot(lease, &[("interaction_mode", "coordinates")]).await;
        assert_eq!(
            (screenshot.status, screenshot.content_type(), &screenshot.body[1..4]),
            (200, "image/png", &b"PNG"[..])
        );
        assert_eq!(master.metadata(lease).await.ok(), json!({"width": 1280, "height": 768}));
        assert_eq!(master.probe(lease).await.ok()["message"], "Probe successful");
        let info = master.info().await;
        let node =
            info["nodes"].as_array().expect("nodes").iter().find(|node| node["url"] == lease.node.as_str());
        assert_eq!(node.expect("the node is listed")["instances"], json!([lease.id]));
        assert_eq!(master.reset(lease).await.ok(), json!({"status": "success"}));
        let second = master.reset(lease).await;
        assert_eq!((second.status, second.detail()), (400, "Instance not in use or already released".into()));
        let stale = master.probe(lease).await;
        assert_eq!((stale.status, stale.detail()), (400, "Invalid instance UUID".into()));
    }
    for node in &nodes {
        Slots::wait_all_free(node, &node.node().http, TIMEOUT).await;
    }
}

#[tokio::test]
async fn our_master_finds_python_nodes() {
    let redis = Redis::start().await;
    let python = [PythonNode::start(1).await, PythonNode::start(1).await];
    for (index, node) in python.iter().enumerate() {
        redis.query(1, &["SET", &format!("omnibox:nodes:py{index}"), &node.url, "EX", "120"]).await;
    }
    let front = webgym(&format!("master --port 0 --registry-pace 20 --redis {}", redis.url())).await;
    let master = front.master();
    let leases = [master.get().await, master.get().await];
    assert_ne!(leases[0].node, leases[1].node);
    master.try_get(&[("wait_secs", "0")]).await.assert_error(503, "no_capacity", "No available nodes");
    for node in &python {
        // It supports neither waiting nor keys; parameters beyond its contract must not matter.
        assert!(
            node.get_queries().iter().all(|query| query["lifetime_mins"] == "60"),
            "{:?}",
            node.get_queries()
        );
    }
    for lease in &leases {
        master.execute(lease, json!({"page_down": {}})).await.ok();
        master.reset(lease).await.ok();
    }
    // A node without a registry entry that does not respond is removed.
    let [gone, stays] = python;
    redis.number(1, &["DEL", "omnibox:nodes:py0"]).await;
    drop(gone);
    eventually("only one node is left", TIMEOUT, async || {
        let info = master.info().await;
        info["nodes"]
            .as_array()
            .is_some_and(|nodes| nodes.len() == 1 && nodes[0]["url"] == stays.url.as_str())
    })
    .await;
    let lease = master.get().await;
    assert_eq!(lease.node, stays.url);
    master.reset(&lease).await.ok();
}
