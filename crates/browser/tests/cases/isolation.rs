//! Isolation: no data of one tenant reaches another, at the same time or later.

use std::time::{Duration, Instant};

use browser::Options;
use serde_json::json;

use crate::common::{
    fixture::{Fixture, with_fixture},
    table::{Eventually, HasText, Logged, by_id},
    tester::Tester,
};

async fn tenant(fixture: &'static Fixture) -> Tester {
    let instance = fixture.host.instance(&Options::default()).await.expect("an instance");
    Tester::new(instance, &fixture.sites)
}

/// Visits `/course/storage` and returns what it found in each kind of storage.
async fn stored_values(tester: &mut Tester, path: &str) -> Vec<(&'static str, String)> {
    const STORAGES: [&str; 7] = ["cookie", "local", "session", "indexeddb", "cache", "http-cache", "http"];
    tester.visit(path).await;
    tester.wait_until("document.getElementById('result').textContent === 'yes'").await;
    let mut all = Vec::new();
    for storage in STORAGES {
        all.push((storage, tester.text(&format!("#seen-{storage}")).await));
    }
    all
}

#[test]
fn storage_is_isolated_and_deleted_with_tenant() {
    with_fixture(async |fixture| {
        let mut owner = tenant(fixture).await;
        stored_values(&mut owner, "/course/storage?set=crumb").await;
        for (storage, value) in stored_values(&mut owner, "/course/storage").await {
            assert_eq!(value, "crumb", "{storage}: the tenant does not see its own value");
        }
        let mut other = tenant(fixture).await;
        for (storage, value) in stored_values(&mut other, "/course/storage").await {
            assert_eq!(value, "none", "{storage}: another tenant sees the value");
        }
        owner.instance.dispose().await.unwrap();
        let mut next = tenant(fixture).await;
        for (storage, value) in stored_values(&mut next, "/course/storage").await {
            assert_eq!(value, "none", "{storage}: the next tenant sees the value");
        }
        assert_eq!(next.text("#seen-history").await, "2", "the initial empty page, and this one");
        other.instance.dispose().await.unwrap();
        next.instance.dispose().await.unwrap();
    });
}

#[test]
fn service_worker_is_isolated_and_deleted_with_tenant() {
    with_fixture(async |fixture| {
        let mut owner = tenant(fixture).await;
        owner.visit("/course/service-worker/").await;
        owner.run_step(&by_id("click_id", "#register")).await;
        owner
            .run_step(&Eventually("document.getElementById('log').textContent.includes('registered')"))
            .await;
        owner.visit("/course/service-worker/").await;
        owner
            .run_step(&Eventually(
                "document.getElementById('result').textContent === 'hello from the worker'",
            ))
            .await;
        let mut other = tenant(fixture).await;
        other.visit("/course/service-worker/").await;
        other.run_step(&HasText("#result", "hello from the server")).await;
        owner.instance.dispose().await.unwrap();
        let mut next = tenant(fixture).await;
        next.visit("/course/service-worker/").await;
        next.run_step(&HasText("#result", "hello from the server")).await;
        next.run_step(&by_id("click_id", "#ask")).await;
        next.run_step(&Logged("hello from the server")).await;
        other.instance.dispose().await.unwrap();
        next.instance.dispose().await.unwrap();
    });
}

#[test]
fn instances_act_concurrently() {
    with_fixture(async |fixture| {
        let act = async |name: &str| {
            let mut tester = tenant(fixture).await;
            tester.visit("/course/keys").await;
            for _ in 0..3 {
                let id = tester.mark("#target").await;
                tester.run(json!({"fill_id": {"id": id, "value": name, "delete_existing": true}})).await;
                assert_eq!(tester.js("target.value").await, name);
            }
            tester.instance.dispose().await.unwrap();
        };
        tokio::join!(act("one"), act("two"), act("three"), act("four"));
    });
}

#[test]
fn dropped_instance_is_disposed() {
    with_fixture(async |_| {
        // A separate browser: the shared one has instances of other tests.
        let host = crate::common::fixture::launch(crate::KIND).await;
        let dropped = host.instance(&Options::default()).await.unwrap();
        let remaining = host.instance(&Options::default()).await.unwrap();
        assert_eq!(remaining.browser_window_count().await.unwrap(), 2);
        drop(dropped);
        let deadline = Instant::now() + Duration::from_secs(20);
        while remaining.browser_window_count().await.unwrap() > 1 {
            assert!(Instant::now() < deadline, "the dropped instance is not disposed");
        }
        remaining.dispose().await.unwrap();
        host.close().await;
    });
}
