//! Clients that ask for what is not theirs, in every wrong way, and in crowds.

use std::{sync::Arc, time::Duration};

use hyper::Method;
use serde_json::json;
use testkit::{ENDPOINTS, Lease, Slots, eventually};
use tokio::io::AsyncWriteExt;

use crate::{
    SECONDS, attacks,
    raw::{answers, connect, in_line},
    world::{World, within},
};

attacks![
    tries_every_door_without_the_key,
    comes_by_a_name_that_points_here,
    sends_bodies_that_are_none,
    guesses_and_borrows_ids,
    replays_ids_after_a_reset,
    a_thousand_waiters_hang_up,
];

/// Every door of the master and its nodes.
fn doors() -> impl Iterator<Item = (&'static str, Method)> {
    ENDPOINTS.into_iter().chain([("/drain", Method::POST), ("/undrain", Method::POST)])
}

async fn tries_every_door_without_the_key(world: Arc<World>) {
    let long = "k".repeat(60_000);
    let keys = [
        "",
        " ",
        "default_ke",
        "default_keyy",
        "DEFAULT_KEY",
        "default_key, default_key",
        "null",
        "' or 1=1",
        &long[..200],
        &long,
    ];
    for farm in [&world.farm, &world.webgym.node()] {
        for (path, method) in doors() {
            // A key belongs into its header: elsewhere it would be written into logs on the way.
            let query = [("x-api-key", "default_key"), ("api_key", "default_key")];
            let none = farm.http.with_key(None).send(method.clone(), path, &query, "", &[]).await;
            none.assert_error(401, "missing_key", "API Key is missing");
            for key in keys {
                let reply = farm.http.with_key(Some(key)).try_send(method.clone(), path, &[], "", &[]).await;
                let reply = reply.unwrap_or_else(|error| panic!("{path}: {error}"));
                assert!(
                    [401, 431].contains(&reply.status),
                    "{path} with {} bytes: {}",
                    key.len(),
                    reply.status
                );
            }
            // Bytes that are no text, and a right key behind a wrong one.
            let mut stream = connect(farm).await;
            let head = format!(
                "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 0\r\n"
            );
            let keys = b"x-api-key: \xff\xfe\x80\r\nx-api-key: default_key\r\n\r\n";
            stream.write_all(&[head.as_bytes(), keys].concat()).await.expect("it is sent");
            let said = answers(&mut stream).await;
            assert!(said.starts_with("HTTP/1.1 40"), "{path}: {said}");
        }
    }
    let slots = Slots::fetch(&world.webgym.node().http).await;
    assert!(slots.is_consistent(), "{slots:?}");
    assert!(world.webgym.node().info().await["draining"] != true);
}

/// A web page in somebody's own browser, whose name was made to point at this machine, knows the built-in key as well as
/// everyone does.
async fn comes_by_a_name_that_points_here(world: Arc<World>) {
    for farm in [&world.farm, &world.webgym.node()] {
        for host in ["evil.test", "localhost.evil.test:7000", "127.0.0.1.evil.test"] {
            for (path, method) in doors() {
                let reply = farm.http.send(method, path, &[], "", &[("host", host)]).await;
                reply.assert_error(401, "wrong_key", "Invalid API Key.");
            }
        }
        for (path, _) in doors() {
            let asks = [
                ("origin", "http://evil.test"),
                ("access-control-request-method", "POST"),
                ("access-control-request-headers", "x-api-key"),
            ];
            let reply = farm.http.send(Method::OPTIONS, path, &[], "", &asks).await;
            let allowed =
                reply.headers.keys().filter(|name| name.as_str().starts_with("access-control-")).count();
            assert!(allowed == 0 && !(200..300).contains(&reply.status), "{path}: {reply:?}");
        }
        assert_eq!(
            farm.http.send(Method::GET, "/info", &[], "", &[("host", "localhost:1")]).await.status,
            200
        );
    }
    let own = crate::world::serve("serve 1 --api-key a-key-of-ones-own").await;
    let http = own.master().http.with_key(Some("a-key-of-ones-own"));
    let named = http.send(Method::GET, "/info", &[], "", &[("host", "farm.example.org")]).await;
    assert_eq!(named.status, 200, "with a key of one's own the name does not matter");
    own.stop().await;
}

async fn sends_bodies_that_are_none(world: Arc<World>) {
    let lease = world.visiting(&world.innocent()).await;
    let node = world.webgym.node();
    let nested = format!("{{\"visit_page\": {}1{}}}", "{\"url\": ".repeat(50_000), "}".repeat(50_000));
    let wide = format!("{{{}}}", (0..50_000).map(|n| format!("\"k{n}\": 0")).collect::<Vec<_>>().join(","));
    let bodies: [&[u8]; 14] = [
        b"",
        b"{",
        b"{\"back\"",
        b"{\"back\": {}",
        b"[]",
        b"null",
        b"1e999",
        b"{\"back\": {}}{\"back\": {}}",
        b"\xef\xbb\xbf{}",
        b"\xff\xfe\x00",
        b"back={}",
        b"{\"visit_page\": {\"url\": \"\\ud800\"}}",
        nested.as_bytes(),
        wide.as_bytes(),
    ];
    for path in ["/execute", "/observe", "/step"] {
        for body in bodies {
            for kind in [
                "application/json",
                "text/plain",
                "application/x-www-form-urlencoded",
                "multipart/form-data",
                "application/json; charset=utf-16",
                "\u{7f}",
            ] {
                let query = [("instance_id", lease.id.as_str())];
                let headers = [("content-type", kind)];
                let headers = if kind == "\u{7f}" { &headers[1..] } else { &headers[..] };
                let reply = node.http.send(Method::POST, path, &query, body.to_vec(), headers).await;
                let shown = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
                assert_eq!(
                    (reply.status, reply.code().as_str()),
                    (400, "bad_request"),
                    "{path} {shown:?} as {kind}: {}",
                    reply.text()
                );
            }
        }
        for packed in ["gzip", "br", "deflate", "x-nonsense"] {
            let body = b"\x1f\x8b\x08\0\0\0\0\0\0\x03".repeat(100);
            let reply = node
                .http
                .send(
                    Method::POST,
                    path,
                    &[("instance_id", &lease.id)],
                    body,
                    &[("content-encoding", packed)],
                )
                .await;
            assert_eq!(reply.status, 400, "{path} {packed}: {}", reply.text());
        }
    }
    let huge = world.farm.http.try_send(Method::POST, "/execute", &[], vec![b' '; 8 << 20], &[]).await;
    assert!(huge.as_ref().map_or(true, |reply| reply.status == 413), "{huge:?}");
    world.is_well(&lease).await;
    world.farm.reset(&lease).await.ok();
}

async fn guesses_and_borrows_ids(world: Arc<World>) {
    let (own, other) = (world.visiting(&world.innocent()).await, world.visiting(&world.innocent()).await);
    let (own_uuid, own_slot) = own.id.split_once(':').expect("a uuid and a slot");
    let (other_uuid, other_slot) = other.id.split_once(':').expect("a uuid and a slot");
    let long = "9".repeat(5000);
    let guesses = [
        format!("{own_uuid}:{other_slot}"),
        format!("{other_uuid}:{own_slot}"),
        format!("{own_uuid}:0"),
        format!("{own_uuid}:65535"),
        format!("{own_uuid}:99999999"),
        format!("{own_uuid}:-1"),
        own_uuid.to_owned(),
        format!(":{own_slot}"),
        format!("{} ", own.id),
        format!("00000000-0000-0000-0000-000000000000:{own_slot}"),
        "../../etc/passwd".to_owned(),
        "%00".to_owned(),
        "\u{0}\u{202e}".to_owned(),
        long,
    ];
    for id in guesses {
        let guess = Lease { id: id.clone(), node: own.node.clone() };
        for reply in [
            world.farm.probe(&guess).await,
            world.farm.metadata(&guess).await,
            world.farm.screenshot(&guess, &[]).await,
            world.farm.execute(&guess, json!({"back": {}})).await,
            world.farm.observe(&guess, json!({})).await,
            world.farm.reset(&guess).await,
        ] {
            assert!(reply.status == 400, "{id:?}: {} {}", reply.status, reply.text());
        }
        let lost = Lease { id: own.id.clone(), node: id };
        assert_eq!(world.farm.execute(&lost, json!({"back": {}})).await.status, 400);
    }
    for lease in [own, other] {
        assert!(world.farm.text(&lease).await.contains("an innocent page"), "nobody else was reached");
        world.farm.reset(&lease).await.ok();
    }
}

async fn replays_ids_after_a_reset(_: Arc<World>) {
    let world = World::with("serve 1 --allow-private-network").await;
    let mut stale = Vec::new();
    for _ in 0..5 {
        let lease = world.visiting(&world.innocent()).await;
        for old in &stale {
            for command in
                [json!({"visit_page": {"url": world.url("/stolen")}}), json!({"get_webpage_text": {}})]
            {
                world.farm.execute(old, command).await.assert_error(
                    400,
                    "invalid_instance",
                    "Invalid instance UUID",
                );
            }
            world.farm.screenshot(old, &[]).await.assert_error(
                400,
                "invalid_instance",
                "Invalid instance UUID",
            );
            world.farm.reset(old).await.assert_error(400, "not_in_use", "not in use");
        }
        assert!(world.farm.text(&lease).await.contains("an innocent page"));
        world.farm.reset(&lease).await.ok();
        stale.push(lease);
    }
    assert!(!world.site.requests().iter().any(|one| one.contains("/stolen")));
    World::stop(world, true).await;
}

async fn a_thousand_waiters_hang_up(_: Arc<World>) {
    let world = World::with("serve 1 --allow-private-network").await;
    let held = world.farm.get().await;
    for farm in [&world.farm, &world.webgym.node()] {
        let mut waiting = Vec::new();
        for number in 0..1000 {
            let mut stream = connect(farm).await;
            let key = if number % 2 == 0 { format!("&idempotency_key=k{number}") } else { String::new() };
            let ask = format!(
                "POST /get?wait_secs=600{key} HTTP/1.1\r\nhost: localhost\r\nx-api-key: default_key\r\ncontent-length: 0\r\n\r\n"
            );
            stream.write_all(ask.as_bytes()).await.expect("it is sent");
            waiting.push(stream);
        }
        eventually("all thousand wait", SECONDS, async || in_line(farm).await == 1000).await;
        // Others are served meanwhile.
        within(Duration::from_secs(20), "the holder goes on", world.is_well(&held)).await;
        drop(waiting);
        eventually("the line is empty again", SECONDS, async || in_line(farm).await == 0).await;
    }
    world.farm.reset(&held).await.ok();
    let next = world.farm.get().await;
    world.farm.reset(&next).await.ok();
    World::stop(world, true).await;
}
