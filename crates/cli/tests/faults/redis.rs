//! The Redis registry: masters find nodes through it, and Redis may disappear and come back.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;
use testkit::{Farm, Redis, SlotMonitor, Slots, eventually};

use crate::{TIMEOUT, webgym};

async fn nodes_of(master: &Farm) -> usize {
    master.info().await["nodes"].as_array().map_or(0, Vec::len)
}

#[tokio::test]
async fn farm_survives_redis_restart() {
    let mut redis = Redis::start().await;
    let node = webgym(&format!("node 2 --port 0 --redis {}", redis.url())).await;
    let front = webgym(&format!("master --port 0 --redis {}", redis.url())).await;
    let (master, own) = (front.master(), node.node());
    let watch = SlotMonitor::start(&own.http);
    let lease = master.get().await;
    redis.wait_for_members(0, "in_use", vec![lease.id.clone()]).await;
    let free = if lease.id.ends_with("9000") { "9001" } else { "9000" };
    redis.wait_for_members(0, "available", vec![free.to_owned()]).await;
    let names = redis.query(1, &["KEYS", "omnibox:nodes:*"]).await;
    assert_eq!(names.len(), 1);
    assert_eq!(redis.query(1, &["GET", &names[0]]).await, [node.url("node")]);
    let ttl = redis.number(1, &["TTL", &names[0]]).await;
    assert!((85..=120).contains(&ttl), "{ttl}");
    redis.kill().await;
    // The farm keeps working without Redis.
    master.probe(&lease).await.ok();
    let second = master.get().await;
    master.try_get(&[("wait_secs", "0")]).await.assert_error(503, "no_capacity", "No available nodes");
    assert_ne!(second.id, lease.id);
    redis.restart().await;
    // Redis has lost its data; the node writes it again.
    redis.wait_for_members(0, "in_use", vec![lease.id.clone(), second.id.clone()]).await;
    eventually("the node is registered again", TIMEOUT, async || {
        redis.query(1, &["KEYS", "omnibox:nodes:*"]).await.len() == 1
    })
    .await;
    assert_eq!(nodes_of(&master).await, 1, "the master still knows the node");
    for lease in [lease, second] {
        master.reset(&lease).await.ok();
    }
    redis.wait_for_members(0, "available", vec!["9000".into(), "9001".into()]).await;
    Slots::wait_all_free(&node, &own.http, TIMEOUT).await;
    watch.assert_consistent().await;
    node.stop().await;
    assert!(
        redis.query(1, &["KEYS", "omnibox:nodes:*"]).await.is_empty(),
        "a node that stops removes its registry entry"
    );
    redis.wait_for_members(0, "available", Vec::new()).await;
}

#[tokio::test]
async fn nodes_with_same_name_register_separately() {
    let redis = Redis::start().await;
    let arguments = format!("node 1 --port 0 --redis {}", redis.url());
    let plain = arguments.clone() + " --no-mirror";
    let (first, second) = tokio::join!(webgym(&arguments), webgym(&plain));
    let front = webgym(&format!("master --port 0 --redis {}", redis.url())).await;
    let master = front.master();
    eventually("the master finds both nodes", TIMEOUT, async || nodes_of(&master).await == 2).await;
    let leases = [master.get().await, master.get().await];
    assert_ne!(leases[0].node, leases[1].node);
    let mirrored = leases.iter().find(|lease| lease.node == first.url("node")).expect("one lease per node");
    redis.wait_for_members(0, "in_use", vec![mirrored.id.clone()]).await;
    for lease in &leases {
        master.reset(lease).await.ok();
    }
    // A killed node is removed when it neither responds nor has a registry entry.
    second.signal(Signal::KILL);
    let killed = second.url("node");
    for name in redis.query(1, &["KEYS", "omnibox:nodes:*"]).await {
        if redis.query(1, &["GET", &name]).await == [killed.clone()] {
            redis.number(1, &["DEL", &name]).await;
        }
    }
    eventually("the killed node is removed", TIMEOUT, async || nodes_of(&master).await == 1).await;
    let wrong_node = testkit::Lease { node: killed, ..leases[0].clone() };
    master.execute(&wrong_node, json!({"back": {}})).await.assert_error(400, "unknown_node", "is not found");
}

#[tokio::test]
async fn farm_starts_without_redis() {
    let mut redis = Redis::start().await;
    let url = redis.url();
    redis.kill().await;
    let node = webgym(&format!("node 1 --port 0 --redis {url}")).await;
    let front = webgym(&format!("master --port 0 --redis {url} --node {}", node.url("node"))).await;
    let master = front.master();
    let lease = master.get().await;
    master.reset(&lease).await.ok();
    redis.restart().await;
    eventually("the node registers when Redis is available", TIMEOUT, async || {
        !redis.query(1, &["KEYS", "omnibox:nodes:*"]).await.is_empty()
    })
    .await;
    redis.wait_for_members(0, "available", vec!["9000".into()]).await;
    tokio::time::timeout(Duration::from_secs(30), node.stop()).await.expect("it stops");
}

#[tokio::test]
async fn options_of_the_python_system_name_the_same_redis() {
    let redis = Redis::start().await;
    let port = redis.url().rsplit(':').next().unwrap_or_default().to_owned();
    let arguments = format!("--master-redis-host 127.0.0.1 --master-redis-port {port} --redis-port {port}");
    let node = webgym(&format!("serve 1 --mode worker --node-port 0 {arguments}")).await;
    redis.wait_for_members(0, "available", vec!["9000".to_owned()]).await;
    assert!(redis.registered_nodes().await.iter().any(|(_, url)| *url == node.url("node")));
}
