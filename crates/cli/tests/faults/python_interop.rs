//! Clusters of both systems: our nodes under a master that behaves like the Python system's, and registered Python nodes
//! under our master.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use serde_json::json;
use store::{IterationFile, IterationId, SavePath, Split};
use testkit::{
    Farm, Lease, PythonMaster, PythonNode, Redis, Slots, Tier, Webgym, eventually,
    sim_model::{ModelReply, SimModel},
};

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

/// The master advertises `/step`, which only our node has.
#[tokio::test]
async fn collector_works_with_nodes_of_both_kinds() {
    let (python, ours) =
        (PythonNode::start(1).await, webgym("node 1 --port 0 --allow-private-network").await);
    let front = webgym(&format!("master --port 0 --node {} --node {}", python.url, ours.url("node"))).await;
    let (pages, folder) = (sites(), tempfile::tempdir().unwrap());
    let task = |id: usize| {
        json!({
            "task_id": id, "task_name": format!("task {id}"), "website": pages.url("/shop/"), "domain": "d",
            "subdomain": "s", "difficulty": 1, "evaluator_reference": ["seen"], "definite_answer": "42",
        })
        .to_string()
    };
    std::fs::write(folder.path().join("tasks.jsonl"), [task(0), task(1)].join("\n")).unwrap();
    // No episode ends before both have started, so that both nodes are used.
    let started = Mutex::new(BTreeSet::new());
    let policy = SimModel::start(move |request| {
        let mut started = started.lock().unwrap();
        started.insert(request.task().to_owned());
        match (request.step(), started.len()) {
            (1, _) => ModelReply::call("computer_use", &json!({"action": "scroll", "direction": "down"})),
            (_, 1) => ModelReply::call("computer_use", &json!({"action": "wait", "time": 1})),
            _ => ModelReply::answer("42"),
        }
    })
    .await;
    let root = folder.path().join("run");
    let master: std::net::SocketAddr = front.url("master").trim_start_matches("http://").parse().unwrap();
    let arguments = [
        "--quiet rollout --config-name=rollout_test env_config.test_tasks=tasks.jsonl judge=reference"
            .to_owned(),
        "env_config.test_tasks_rollout_size=0 env_config.test_tasks_repeat_times=1 env_config.server_size=2"
            .to_owned(),
        format!("save_path={} data_path={}", root.display(), folder.path().display()),
        format!("env_config.vllm_server_url={} env_config.host_ip={}", policy.url(), master.ip()),
        format!("env_config.master_port={}", master.port()),
    ]
    .join(" ");
    let arguments: Vec<&str> = arguments.split(' ').collect();
    let mut run = Webgym::spawn(env!("CARGO_BIN_EXE_webgym"), &arguments);
    let status = run.wait_for_exit(TIMEOUT).await;
    assert_eq!(status.code(), Some(0), "{}", run.log());
    let file = SavePath::new(&root).iteration_file(IterationId::new(Split::Test, 0));
    let file = IterationFile::open(&file).unwrap();
    assert!(file.summaries().iter().all(|summary| summary.reward == 1), "{:?}", file.summaries());
    let of_python = python.executed();
    assert!(of_python.iter().any(|body| body.get("page_down").is_some()), "{of_python:?}");
    let titles: Vec<String> =
        (0..2).map(|index| file.read(index).unwrap().steps[1].observation.title.clone()).collect();
    assert!(
        titles.contains(&"A page".to_owned()) && titles.iter().any(|title| title != "A page"),
        "{titles:?}"
    );
    assert_eq!(python.in_use(), 0);
}
