//! What becomes of requests that the archive cannot answer.

use serde_json::{Value, json};
use tokio::process::Command;

use crate::common::{WEBGYM, World};

#[tokio::test(flavor = "multi_thread")]
async fn page_that_is_not_in_the_archive_ends_the_lease() {
    let world = World::start().await;
    record_next(&world).await;
    let lease = world.farm.get_with(&json!({"network": {"replay": "shop"}})).await;
    world.farm.visit(&lease, &world.url("/next")).await;
    let missed = world.farm.execute(&lease, json!({"visit_page": {"url": world.url("/account")}})).await;
    missed.assert_error(422, "replay_miss", "has no answer to GET https://shop.localhost");
    let observed = world.farm.observe(&lease, json!({"include": ["metadata"]})).await;
    observed.assert_error(422, "replay_miss", "/account");
    let report = world.farm.network(&lease).await.ok();
    assert_eq!(report["matches"], json!({"exact": 1, "normalised": 0, "scored": 0, "missed": 1}));
    let last = report["requests"].as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
    assert_eq!(
        (last["url"].as_str(), last["match"].as_str()),
        (Some(world.url("/account").as_str()), Some("missed"))
    );
    world.farm.reset(&lease).await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn policy_404_answers_and_goes_on() {
    let world = World::start().await;
    record_next(&world).await;
    let lease = world.farm.get_with(&json!({"network": {"replay": "shop", "on_miss": "404"}})).await;
    world.farm.visit(&lease, &world.url("/account")).await;
    assert!(world.farm.text(&lease).await.contains("the archive has no answer"));
    world.farm.visit(&lease, &world.url("/next")).await;
    assert!(world.farm.text(&lease).await.contains("Next page, version 0"));
    assert_eq!(world.farm.network(&lease).await.ok()["matches"]["missed"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn policy_live_records_what_is_missing_and_diff_reports_what_changed() {
    let world = World::start().await;
    record_next(&world).await;
    world.site.set_version(1);
    // Only what the archive lacks is asked: the page that it has stays as it was.
    let live = json!({"network": {"replay": "shop", "on_miss": "live", "record": "shop-today"}});
    let lease = world.farm.get_with(&live).await;
    world.farm.visit(&lease, &world.url("/next")).await;
    assert!(world.farm.text(&lease).await.contains("version 0"));
    world.farm.visit(&lease, &world.url("/account")).await;
    assert!(world.farm.text(&lease).await.contains("Please log in"));
    let report = world.farm.network(&lease).await.ok();
    assert_eq!((&report["matches"]["missed"], &report["recorded"]), (&json!(1), &json!(1)), "{report}");
    world.farm.reset(&lease).await.ok();
    record_page(&world, "shop-today", "/next").await;
    let differences = diff(&world).await;
    let urls = |kind: &str| {
        let entries = differences[kind].as_array().cloned().unwrap_or_default();
        entries.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    assert!(urls("only_right").contains("/account"), "{differences}");
    assert!(urls("changed").contains("/next"), "{differences}");
}

#[tokio::test(flavor = "multi_thread")]
async fn unreachable_site_stays_missing() {
    let mut world = World::start().await;
    record_next(&world).await;
    world.server = None;
    let lease = world.farm.get_with(&json!({"network": {"replay": "shop", "on_miss": "live"}})).await;
    let visit = |path: &str| json!({"visit_page": {"url": world.url(path)}});
    world.farm.execute(&lease, visit("/account")).await.assert_error(
        422,
        "navigation_failed",
        "ERR_CONNECTION",
    );
    assert_eq!(world.farm.network(&lease).await.ok()["recorded"], 0);
    world.farm.reset(&lease).await.ok();
    let lease = world.farm.get_with(&json!({"network": {"replay": "shop"}})).await;
    world.farm.execute(&lease, visit("/account")).await.assert_error(422, "replay_miss", "/account");
}

#[tokio::test(flavor = "multi_thread")]
async fn similar_recordings_can_be_refused() {
    let world = World::start().await;
    record_page(&world, "shop", "/next?word=lamp&sort=price&page=one").await;
    let visit = |path: &str| json!({"visit_page": {"url": world.url(path)}});
    let other = "/next?word=chair&sort=price&page=one";
    let lease = world.farm.get_with(&json!({"network": {"replay": "shop"}})).await;
    world.farm.execute(&lease, visit(other)).await.ok();
    assert_eq!(world.farm.network(&lease).await.ok()["matches"]["scored"], 1);
    world.farm.reset(&lease).await.ok();
    let lease = world.farm.get_with(&json!({"network": {"replay": "shop", "scored": false}})).await;
    world.farm.execute(&lease, visit(other)).await.assert_error(422, "replay_miss", "word=chair");
}

async fn diff(world: &World) -> Value {
    let folder = |name: &str| world.archives.path().join(name);
    let mut command = Command::new(WEBGYM);
    command.args(["archive", "diff", "--json"]).arg(folder("shop")).arg(folder("shop-today"));
    let output = command.output().await.unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!(
            "{error}: {} {}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )
    })
}

async fn record_next(world: &World) {
    record_page(world, "shop", "/next").await;
}

/// Records one page into an archive.
async fn record_page(world: &World, archive: &str, path: &str) {
    let lease = world.farm.get_with(&json!({"network": {"record": archive}})).await;
    world.farm.visit(&lease, &world.url(path)).await;
    let recorded = async || world.farm.network(&lease).await.ok()["recorded"] == 1;
    testkit::eventually("the page is recorded", std::time::Duration::from_secs(30), recorded).await;
    world.farm.reset(&lease).await.ok();
}
