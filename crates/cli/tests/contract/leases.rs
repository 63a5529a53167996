//! `/get`, `/reset`, `/info`: instance ids, their format and their validity.

use serde_json::json;
use testkit::{Farm, Lease, Tier};

use crate::{Context, checks};

checks![
    get_returns_id_in_tier_format,
    second_reset_is_refused,
    stale_lease_is_refused_everywhere,
    invalid_ids_are_refused_everywhere,
    unknown_node_is_refused,
    invalid_lifetimes_are_refused,
    invalid_waits_are_refused,
    same_key_returns_same_lease,
    info_lists_leases,
];

fn is_uuid(text: &str) -> bool {
    text.len() == 36 && text.chars().all(|c| c == '-' || c.is_ascii_hexdigit() && !c.is_ascii_uppercase())
}

async fn get_returns_id_in_tier_format(context: Context) {
    let farm = &context.farm;
    let mut answer = farm.try_get(&[("lifetime_mins", "5"), ("wait_secs", "120")]).await.ok();
    let mut take = |field: &str| answer.as_object_mut().and_then(|answer| answer.remove(field)).expect(field);
    let (cdp_url, live_url, control_url) = (take("cdp_url"), take("live_url"), take("live_control_url"));
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
    if context.is_tier(Tier::Node) {
        assert_eq!(answer, json!({"instance_id": lease.id}));
    }
    if context.is_tier(Tier::Master) {
        assert_eq!(answer, json!({"instance_id": lease.id, "node": lease.node}));
        assert!(lease.node.starts_with("http://127.0.0.1:"), "{answer}");
    }
    for (url, endpoint) in [(&cdp_url, "cdp"), (&live_url, "live"), (&control_url, "live")] {
        let start = format!("{}/{endpoint}/{}.", farm.http.base(), lease.id);
        assert!(url.as_str().is_some_and(|url| url.starts_with(&start)), "{url}");
    }
    assert_eq!(cdp_url, farm.cdp_url(&lease).await);
    assert_eq!(live_url, farm.live_url(&lease).await);
    assert_eq!(control_url, farm.live_control_url(&lease).await);
    assert_eq!(farm.reset(&lease).await.ok(), json!({"status": "success"}));
    let next = farm.get().await;
    assert_ne!(next.id, lease.id, "a new lease has a new id");
    farm.reset(&next).await.ok();
}

async fn second_reset_is_refused(context: Context) {
    let farm = &context.farm;
    for _ in 0..4 {
        let lease = farm.get().await;
        farm.reset(&lease).await.ok();
        farm.reset(&lease).await.assert_error(400, "not_in_use", "Instance not in use or already released");
    }
}

/// Makes every call that takes an instance id, with the same lease.
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

async fn stale_lease_is_refused_everywhere(context: Context) {
    let farm = &context.farm;
    let stale = farm.get().await;
    for (name, reply) in every_call(farm, &stale).await {
        assert_eq!(reply.status, 200, "{name}: {}", reply.text());
    }
    farm.reset(&stale).await.ok();
    let tenant = farm.get().await;
    farm.visit(&tenant, &context.page("/course/buttons")).await;
    for (name, reply) in every_call(farm, &stale).await {
        assert_eq!(reply.status, 400, "{name}");
        reply.assert_error(400, "invalid_instance", "Invalid instance UUID");
        if context.is_tier(Tier::Master) && matches!(name, "execute" | "screenshot") {
            let body = reply.json();
            assert_eq!((&body["status"], &body["message"]), (&json!("error"), &body["detail"]), "{body}");
        }
    }
    farm.reset(&stale).await.assert_error(400, "not_in_use", "not in use");
    let page = farm.execute(&tenant, json!({"get_page_metadata": {}})).await.ok();
    assert_eq!(page["url"], context.page("/course/buttons"), "the next tenant is not affected");
    farm.reset(&tenant).await.ok();
}

async fn invalid_ids_are_refused_everywhere(context: Context) {
    let farm = &context.farm;
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
    let empty = Lease { id: String::new(), node: real.node.clone() };
    farm.probe(&empty).await.assert_error(400, "bad_request", "instance_id");
    farm.probe(&real).await.ok();
    farm.reset(&real).await.ok();
}

async fn unknown_node_is_refused(context: Context) {
    if !context.is_tier(Tier::Master) {
        return;
    }
    let farm = &context.farm;
    let real = farm.get().await;
    let wrong_node = Lease { node: "http://10.1.2.3:8080".into(), ..real.clone() };
    for (_, reply) in every_call(farm, &wrong_node).await {
        reply.assert_error(400, "unknown_node", "Node http://10.1.2.3:8080 is not found");
    }
    farm.reset(&wrong_node).await.assert_error(400, "unknown_node", "is not found");
    let without_node = farm.http.get("/probe", &[("instance_id", &real.id)]).await;
    without_node.assert_error(400, "bad_request", "node");
    farm.reset(&real).await.ok();
}

async fn invalid_lifetimes_are_refused(context: Context) {
    for bad in ["abc", "-5", "9999", "1.5", "1e3", "99999999999999999999"] {
        let reply = context.farm.try_get(&[("lifetime_mins", bad), ("wait_secs", "60")]).await;
        reply.assert_error(400, "bad_request", "lifetime_mins");
    }
    for good in ["0", "1", "60"] {
        let answer = context.farm.try_get(&[("lifetime_mins", good), ("wait_secs", "120")]).await.ok();
        context.farm.reset(&Lease::parse(&answer)).await.ok();
    }
}

async fn invalid_waits_are_refused(context: Context) {
    for bad in ["abc", "-1", "NaN", "inf", "4000"] {
        context.farm.try_get(&[("wait_secs", bad)]).await.assert_error(400, "bad_request", "wait_secs");
    }
    let long = "k".repeat(201);
    let reply = context.farm.try_get(&[("idempotency_key", &long)]).await;
    reply.assert_error(400, "bad_request", "idempotency_key");
}

async fn same_key_returns_same_lease(context: Context) {
    let farm = &context.farm;
    let key = format!("key of {}", std::process::id());
    let query = [("idempotency_key", key.as_str()), ("wait_secs", "120")];
    let first = farm.try_get(&query).await.ok();
    let repeated = farm.try_get(&query).await.ok();
    assert_eq!(first, repeated);
    farm.reset(&Lease::parse(&first)).await.ok();
    let next = farm.try_get(&query).await.ok();
    assert_ne!(first, next, "after the lease has ended, the key gets a new one");
    farm.reset(&Lease::parse(&next)).await.ok();
}

async fn info_lists_leases(context: Context) {
    let farm = &context.farm;
    let lease = farm.get().await;
    let info = farm.info().await;
    match farm.tier {
        Tier::Instance => assert_eq!(info, json!({"in_lease": true, "ready": true})),
        Tier::Node => {
            let leases = info["in_use"].as_array().expect("a list");
            assert!(leases.contains(&json!(lease.id)), "{info}");
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
