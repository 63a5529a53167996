//! Hostile clients: without the key, with foreign ids, with malformed bodies, and many at once.

use std::sync::Arc;

use hyper::Method;
use serde_json::json;
use testkit::{ENDPOINTS, Lease, Slots, eventually};
use tokio::io::AsyncWriteExt;

use crate::{
    TIMEOUT, attacks,
    environment::{Environment, within},
    raw_http::{connect, queue_length, read_response},
};

attacks![
    every_endpoint_requires_key,
    foreign_host_names_are_refused,
    malformed_bodies_are_refused,
    guessed_ids_are_refused,
    replayed_ids_are_refused,
    disconnected_waiters_leave_queue,
];

/// Returns every protected endpoint of the master and its nodes.
fn endpoints() -> impl Iterator<Item = (&'static str, Method)> {
    ENDPOINTS.into_iter().chain([("/drain", Method::POST), ("/undrain", Method::POST)])
}

async fn every_endpoint_requires_key(env: Arc<Environment>) {
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
    for farm in [&env.farm, &env.webgym.node()] {
        for (path, method) in endpoints() {
            // The key is accepted only in its header, because query parameters end up in logs.
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
            // Bytes that are not text, and a right key after a wrong one.
            let mut stream = connect(farm).await;
            let head = format!(
                "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 0\r\n"
            );
            let keys = b"x-api-key: \xff\xfe\x80\r\nx-api-key: default_key\r\n\r\n";
            stream.write_all(&[head.as_bytes(), keys].concat()).await.expect("the request is sent");
            let response = read_response(&mut stream).await;
            assert!(response.starts_with("HTTP/1.1 40"), "{path}: {response}");
        }
    }
    let slots = Slots::fetch(&env.webgym.node().http).await;
    assert!(slots.is_consistent(), "{slots:?}");
    assert!(env.webgym.node().info().await["draining"] != true);
}

/// DNS rebinding: a web page in a user's own browser, whose host name was made to point at this machine, knows the built-in
/// key.
async fn foreign_host_names_are_refused(env: Arc<Environment>) {
    for farm in [&env.farm, &env.webgym.node()] {
        for host in ["evil.test", "localhost.evil.test:7000", "127.0.0.1.evil.test"] {
            for (path, method) in endpoints() {
                let reply = farm.http.send(method, path, &[], "", &[("host", host)]).await;
                reply.assert_error(401, "wrong_key", "Invalid API Key.");
            }
        }
        for (path, _) in endpoints() {
            let preflight = [
                ("origin", "http://evil.test"),
                ("access-control-request-method", "POST"),
                ("access-control-request-headers", "x-api-key"),
            ];
            let reply = farm.http.send(Method::OPTIONS, path, &[], "", &preflight).await;
            let allowed =
                reply.headers.keys().filter(|name| name.as_str().starts_with("access-control-")).count();
            assert!(allowed == 0 && !(200..300).contains(&reply.status), "{path}: {reply:?}");
        }
        assert_eq!(
            farm.http.send(Method::GET, "/info", &[], "", &[("host", "localhost:1")]).await.status,
            200
        );
    }
    let own = crate::environment::serve("serve 1 --api-key a-configured-key").await;
    let http = own.master().http.with_key(Some("a-configured-key"));
    let named = http.send(Method::GET, "/info", &[], "", &[("host", "farm.example.org")]).await;
    assert_eq!(named.status, 200, "with a configured key the host name does not matter");
    own.stop().await;
}

async fn malformed_bodies_are_refused(env: Arc<Environment>) {
    let lease = env.lease_on(&env.plain_page()).await;
    let node = env.webgym.node();
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
    for path in ["/execute", "/observe", "/step", "/computer"] {
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
                let start = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
                assert_eq!(
                    (reply.status, reply.code().as_str()),
                    (400, "bad_request"),
                    "{path} {start:?} as {kind}: {}",
                    reply.text()
                );
            }
        }
        for encoding in ["gzip", "br", "deflate", "x-nonsense"] {
            let body = b"\x1f\x8b\x08\0\0\0\0\0\0\x03".repeat(100);
            let reply = node
                .http
                .send(
                    Method::POST,
                    path,
                    &[("instance_id", &lease.id)],
                    body,
                    &[("content-encoding", encoding)],
                )
                .await;
            assert_eq!(reply.status, 400, "{path} {encoding}: {}", reply.text());
        }
    }
    let huge = env.farm.http.try_send(Method::POST, "/execute", &[], vec![b' '; 8 << 20], &[]).await;
    assert!(huge.as_ref().map_or(true, |reply| reply.status == 413), "{huge:?}");
    env.assert_usable(&lease).await;
    env.farm.reset(&lease).await.ok();
}

async fn guessed_ids_are_refused(env: Arc<Environment>) {
    let (own, other) = (env.lease_on(&env.plain_page()).await, env.lease_on(&env.plain_page()).await);
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
            env.farm.probe(&guess).await,
            env.farm.metadata(&guess).await,
            env.farm.screenshot(&guess, &[]).await,
            env.farm.execute(&guess, json!({"back": {}})).await,
            env.farm.observe(&guess, json!({})).await,
            env.farm.reset(&guess).await,
        ] {
            assert!(reply.status == 400, "{id:?}: {} {}", reply.status, reply.text());
        }
        let wrong_node = Lease { id: own.id.clone(), node: id };
        assert_eq!(env.farm.execute(&wrong_node, json!({"back": {}})).await.status, 400);
    }
    for lease in [own, other] {
        assert!(env.farm.text(&lease).await.contains("a plain page"), "no other tenant was reached");
        env.farm.reset(&lease).await.ok();
    }
}

async fn replayed_ids_are_refused(_: Arc<Environment>) {
    let env = Environment::with("serve 1 --allow-private-network").await;
    let mut stale = Vec::new();
    for _ in 0..5 {
        let lease = env.lease_on(&env.plain_page()).await;
        for old in &stale {
            for command in
                [json!({"visit_page": {"url": env.url("/stolen")}}), json!({"get_webpage_text": {}})]
            {
                env.farm.execute(old, command).await.assert_error(
                    400,
                    "invalid_instance",
                    "Invalid instance UUID",
                );
            }
            env.farm.screenshot(old, &[]).await.assert_error(
                400,
                "invalid_instance",
                "Invalid instance UUID",
            );
            env.farm.reset(old).await.assert_error(400, "not_in_use", "not in use");
        }
        assert!(env.farm.text(&lease).await.contains("a plain page"));
        env.farm.reset(&lease).await.ok();
        stale.push(lease);
    }
    assert!(!env.site.requests().iter().any(|one| one.contains("/stolen")));
    Environment::stop(env, true).await;
}

async fn disconnected_waiters_leave_queue(_: Arc<Environment>) {
    let env = Environment::with("serve 1 --allow-private-network").await;
    let held = env.farm.get().await;
    for farm in [&env.farm, &env.webgym.node()] {
        let mut waiting = Vec::new();
        for number in 0..1000 {
            let mut stream = connect(farm).await;
            let key = if number % 2 == 0 { format!("&idempotency_key=k{number}") } else { String::new() };
            let request = format!(
                "POST /get?wait_secs=600{key} HTTP/1.1\r\nhost: localhost\r\nx-api-key: default_key\r\ncontent-length: 0\r\n\r\n"
            );
            stream.write_all(request.as_bytes()).await.expect("the request is sent");
            waiting.push(stream);
        }
        eventually("all thousand are queued", TIMEOUT, async || queue_length(farm).await == 1000).await;
        // Other clients are served meanwhile.
        within(TIMEOUT, "the lease holder keeps working", env.assert_usable(&held)).await;
        drop(waiting);
        eventually("the queue is empty again", TIMEOUT, async || queue_length(farm).await == 0).await;
    }
    env.farm.reset(&held).await.ok();
    let next = env.farm.get().await;
    env.farm.reset(&next).await.ok();
    Environment::stop(env, true).await;
}
