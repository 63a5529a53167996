//! Nothing of one tenant reaches another, at the same time or later.

use std::time::{Duration, Instant};

use browser::Options;
use serde_json::json;

use crate::common::{
    stage::{Stage, with_stage},
    table::{Later, Says, Shows, on},
    tester::Tester,
};

async fn tenant(stage: &'static Stage) -> Tester {
    let instance = stage.host.instance(&Options::default()).await.expect("an instance");
    Tester::new(instance, &stage.sites)
}

/// What `/course/storage` found on load, place by place.
async fn found(tester: &mut Tester, path: &str) -> Vec<(&'static str, String)> {
    const PLACES: [&str; 7] = ["cookie", "local", "session", "indexeddb", "cache", "http-cache", "http"];
    tester.visit(path).await;
    tester.until("document.getElementById('result').textContent === 'yes'").await;
    let mut all = Vec::new();
    for place in PLACES {
        all.push((place, tester.text(&format!("#seen-{place}")).await));
    }
    all
}

#[test]
fn storage_stays_with_its_tenant_and_ends_with_it() {
    with_stage(async |stage| {
        let mut keeper = tenant(stage).await;
        found(&mut keeper, "/course/storage?set=crumb").await;
        for (place, value) in found(&mut keeper, "/course/storage").await {
            assert_eq!(value, "crumb", "{place}: the keeper sees its own");
        }
        let mut neighbour = tenant(stage).await;
        for (place, value) in found(&mut neighbour, "/course/storage").await {
            assert_eq!(value, "none", "{place}: a neighbour sees nothing");
        }
        keeper.instance.dispose().await.unwrap();
        let mut next = tenant(stage).await;
        for (place, value) in found(&mut next, "/course/storage").await {
            assert_eq!(value, "none", "{place}: the next tenant sees nothing");
        }
        assert_eq!(next.text("#seen-history").await, "2", "the empty page it was born on, and this one");
        neighbour.instance.dispose().await.unwrap();
        next.instance.dispose().await.unwrap();
    });
}

#[test]
fn a_service_worker_serves_its_tenant_only_and_dies_with_it() {
    with_stage(async |stage| {
        let mut keeper = tenant(stage).await;
        keeper.visit("/course/service-worker/").await;
        keeper.take(&on("click_id", "#register")).await;
        keeper.take(&Later("document.getElementById('log').textContent.includes('registered')")).await;
        keeper.visit("/course/service-worker/").await;
        keeper
            .take(&Later("document.getElementById('result').textContent === 'hello from the worker'"))
            .await;
        let mut neighbour = tenant(stage).await;
        neighbour.visit("/course/service-worker/").await;
        neighbour.take(&Shows("#result", "hello from the server")).await;
        keeper.instance.dispose().await.unwrap();
        let mut next = tenant(stage).await;
        next.visit("/course/service-worker/").await;
        next.take(&Shows("#result", "hello from the server")).await;
        next.take(&on("click_id", "#ask")).await;
        next.take(&Says("hello from the server")).await;
        neighbour.instance.dispose().await.unwrap();
        next.instance.dispose().await.unwrap();
    });
}

#[test]
fn tenants_act_side_by_side() {
    with_stage(async |stage| {
        let act = async |name: &str| {
            let mut tester = tenant(stage).await;
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
fn an_instance_that_is_dropped_is_disposed_of() {
    with_stage(async |_| {
        // A browser of its own: others come and go in the shared one.
        let host = crate::common::stage::launch(crate::KIND).await;
        let dropped = host.instance(&Options::default()).await.unwrap();
        let watcher = host.instance(&Options::default()).await.unwrap();
        assert_eq!(watcher.browser_window_count().await.unwrap(), 2);
        drop(dropped);
        let end = Instant::now() + Duration::from_secs(20);
        while watcher.browser_window_count().await.unwrap() > 1 {
            assert!(Instant::now() < end, "the dropped instance stays");
        }
        watcher.dispose().await.unwrap();
        host.close().await;
    });
}
