//! `/get`, `/reset`, `/info`: ids, their shapes, and what becomes of them.

use serde_json::json;
use testkit::{Farm, Lease, Tier};

use crate::{World, checks};

checks![
    get_gives_an_id_in_its_tiers_shape,
    reset_twice_is_refused_and_leaks_nothing,
    stale_lease_refused_everywhere,
    garbage_ids_are_refused_everywhere,
    unknown_nodes_are_named,
    lifetimes_are_checked,
    waits_are_checked,
    the_same_key_gives_the_same_lease,
    info_tells_what_is_leased,
];

fn is_uuid(text: &str) -> bool {
    text.len() == 36 && text.chars().all(|c| c == '-' || c.is_ascii_hexdigit() && !c.is_ascii_uppercase())
}

async fn get_gives_an_id_in_its_tiers_shape(world: World) {
    let farm = &world.farm;
    let answer = farm.try_get(&[("lifetime_mins", "5"), ("wait_secs", "120")]).await.ok();
    let lease = Lease::parse(&answer);
    match farm.tier {
        Tier::Instance => {
            assert!(is_uuid(&lease.id), "{answer}");
            assert_eq!(answer, json!({"instance_id": lease.id}));
        }
        Tier::Node | Tier::Master => {
            let (uuid, port) = lease.id.split_once(':').expect("uuid:port");
            assert!(is_uuid(uuid) && port.parse::<u16>().is_ok_and(|port| port >= 9000), "{answer}");
        }
    }
    if world.is(Tier::Node) {
        assert_eq!(answer, json!({"instance_id": lease.id}));
    }
    if world.is(Tier::Master) {
        assert_eq!(answer, json!({"instance_id": lease.id, "node": lease.node}));
        assert!(lease.node.starts_with("http://127.0.0.1:"), "{answer}");
    }
    assert_eq!(farm.reset(&lease).await.ok(), json!({"status": "success"}));
    let next = farm.get().await;
    assert_ne!(next.id, lease.id, "a new tenancy has a new id");
    farm.reset(&next).await.ok();
}

async fn reset_twice_is_refused_and_leaks_nothing(world: World) {
    let farm = &world.farm;
    for _ in 0..4 {
        let lease = farm.get().await;
        farm.reset(&lease).await.ok();
        farm.reset(&lease).await.assert_error(400, "not_in_use", "Instance not in use or already released");
    }
}

/// Every call that names an instance, with the same lease.
async fn every_call(farm: &Farm, lease: &Lease) -> Vec<(&'static str, testkit::Reply)> {
    vec![
        ("execute", farm.execute(lease, json!({"get_page_metadata": {}})).await),
        ("screenshot", farm.screenshot(lease, &[]).await),
        ("metadata", farm.metadata(lease).await),
        ("probe", farm.probe(lease).await),
        ("observe", farm.observe(lease, json!({})).await),
        ("step", farm.step(lease, json!({"command": {"back": {}}})).await),
    ]
}

async fn stale_lease_refused_everywhere(world: World) {
    let farm = &world.farm;
    let stale = farm.get().await;
    for (name, reply) in every_call(farm, &stale).await {
        assert_eq!(reply.status, 200, "{name}: {}", reply.text());
    }
    farm.reset(&stale).await.ok();
    let tenant = farm.get().await;
    farm.visit(&tenant, &world.page("/course/buttons")).await;
    for (name, reply) in every_call(farm, &stale).await {
        assert_eq!(reply.status, 400, "{name}");
        reply.assert_error(400, "invalid_instance", "Invalid instance UUID");
        if world.is(Tier::Master) && matches!(name, "execute" | "screenshot") {
            let body = reply.json();
            assert_eq!((&body["status"], &body["message"]), (&json!("error"), &body["detail"]), "{body}");
        }
    }
    farm.reset(&stale).await.assert_error(400, "not_in_use", "not in use");
    let page = farm.execute(&tenant, json!({"get_page_metadata": {}})).await.ok();
    assert_eq!(page["url"], world.page("/course/buttons"), "the next tenant was not disturbed");
    farm.reset(&tenant).await.ok();
}

async fn garbage_ids_are_refused_everywhere(world: World) {
    let farm = &world.farm;
    let real = farm.get().await;
    let (uuid, port) = real.id.split_once(':').unwrap_or((&real.id, "9000"));
    let other = "00000000-0000-4000-8000-000000000000";
    let garbage =
        ["x".to_owned(), "9000".into(), format!("{other}:{port}"), format!("{uuid}:65535"), "a".repeat(5000)];
    let ids = garbage.iter().map(String::as_str).chain(["🦆:9000", "' OR 1=1 --", "../../etc/passwd", "%00"]);
    for id in ids {
        let lease = Lease { id: id.to_owned(), node: real.node.clone() };
        for (name, reply) in every_call(farm, &lease).await {
            assert_eq!(
                (reply.status, reply.code().as_str()),
                (400, "invalid_instance"),
                "{name} {id}: {}",
                reply.text()
            );
        }
        let reply = farm.reset(&lease).await;
        assert_eq!(reply.status, 400, "{id}");
        assert!(
            ["invalid_instance", "not_in_use"].contains(&reply.code().as_str()),
            "{id}: {}",
            reply.text()
        );
    }
    let nobody = Lease { id: String::new(), node: real.node.clone() };
    farm.probe(&nobody).await.assert_error(400, "bad_request", "instance_id");
    farm.probe(&real).await.ok();
    farm.reset(&real).await.ok();
}

async fn unknown_nodes_are_named(world: World) {
    if !world.is(Tier::Master) {
        return;
    }
    let farm = &world.farm;
    let real = farm.get().await;
    let astray = Lease { node: "http://10.1.2.3:8080".into(), ..real.clone() };
    for (_, reply) in every_call(farm, &astray).await {
        reply.assert_error(400, "unknown_node", "Node http://10.1.2.3:8080 is not found");
    }
    farm.reset(&astray).await.assert_error(400, "unknown_node", "is not found");
    let nowhere = farm.http.get("/probe", &[("instance_id", &real.id)]).await;
    nowhere.assert_error(400, "bad_request", "node");
    farm.reset(&real).await.ok();
}

async fn lifetimes_are_checked(world: World) {
    for bad in ["abc", "0", "-5", "9999", "1.5", "1e3", "99999999999999999999"] {
        let reply = world.farm.try_get(&[("lifetime_mins", bad), ("wait_secs", "60")]).await;
        reply.assert_error(400, "bad_request", "lifetime_mins");
    }
    for good in ["1", "60"] {
        let answer = world.farm.try_get(&[("lifetime_mins", good), ("wait_secs", "120")]).await.ok();
        world.farm.reset(&Lease::parse(&answer)).await.ok();
    }
}

async fn waits_are_checked(world: World) {
    for bad in ["abc", "-1", "NaN", "inf", "4000"] {
        world.farm.try_get(&[("wait_secs", bad)]).await.assert_error(400, "bad_request", "wait_secs");
    }
    let long = "k".repeat(201);
    let reply = world.farm.try_get(&[("idempotency_key", &long)]).await;
    reply.assert_error(400, "bad_request", "idempotency_key");
}

async fn the_same_key_gives_the_same_lease(world: World) {
    let farm = &world.farm;
    let key = format!("key of {}", std::process::id());
    let asked = [("idempotency_key", key.as_str()), ("wait_secs", "120")];
    let first = farm.try_get(&asked).await.ok();
    let again = farm.try_get(&asked).await.ok();
    assert_eq!(first, again);
    farm.reset(&Lease::parse(&first)).await.ok();
    let fresh = farm.try_get(&asked).await.ok();
    assert_ne!(first, fresh, "after the lease has ended the key means a new one");
    farm.reset(&Lease::parse(&fresh)).await.ok();
}

async fn info_tells_what_is_leased(world: World) {
    let farm = &world.farm;
    let lease = farm.get().await;
    let info = farm.info().await;
    match farm.tier {
        Tier::Instance => assert_eq!(info, json!({"in_lease": true, "ready": true})),
        Tier::Node => {
            let held = info["in_use"].as_array().expect("a list");
            assert!(held.contains(&json!(lease.id)), "{info}");
            assert!(info["available"].is_u64() && info["capacity"].is_u64(), "{info}");
        }
        Tier::Master => {
            let nodes = info["nodes"].as_array().expect("a list");
            let node = nodes.iter().find(|node| node["hash"] == lease.node).expect("the node of the lease");
            assert_eq!((&node["url"], &node["healthy"]), (&json!(lease.node), &json!(true)), "{node}");
            assert!(
                node["instances"].as_array().is_some_and(|held| held.contains(&json!(lease.id))),
                "{node}"
            );
            let count = |name: &str| node[name].as_u64().expect("a count");
            let held = node["instances"].as_array().map_or(0, Vec::len) as u64;
            assert_eq!(
                count("available") + held + count("starting") + count("dead"),
                count("capacity"),
                "{node}"
            );
        }
    }
    farm.reset(&lease).await.ok();
}
