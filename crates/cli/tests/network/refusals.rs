//! Options and sites that are refused.

use serde_json::json;
use testkit::{TlsSite, modern_site::ModernSite};

use crate::common::{World, start_farm};

#[tokio::test(flavor = "multi_thread")]
async fn unusable_archives_are_named_and_take_no_slot() {
    let world = World::start().await;
    for (network, expected) in [
        (json!({"replay": "nothing-here"}), "the archive \"nothing-here\" does not exist"),
        (json!({"record": "../elsewhere"}), "must be the name of a directory below that of --archives"),
        (json!({"replay": "/etc"}), "is not in the directory that the node was started with"),
        (json!({"replay": "a", "record": "b"}), "record and replay together need on_miss"),
    ] {
        let refused = world.farm.try_get_with(&json!({"network": network})).await;
        refused.assert_error(400, "bad_request", expected);
    }
    let lease = world.farm.get().await;
    world.farm.network(&lease).await.assert_error(400, "bad_request", "neither records nor replays");
    let info = world.farm.info().await.to_string();
    assert!(info.contains("\"available\":3"), "{info}");
}

#[tokio::test(flavor = "multi_thread")]
async fn certificate_that_nobody_trusts_is_an_error_in_a_recording_too() {
    let trusted = TlsSite::start("shop.localhost", ModernSite::default().router()).await;
    let other = TlsSite::start("other.localhost", ModernSite::default().router()).await;
    let archives = tempfile::tempdir().unwrap();
    let (_process, farm) = start_farm(archives.path(), &trusted.authority(), "--allow-private-network").await;
    let lease = farm.get_with(&json!({"network": {"record": "shop"}})).await;
    farm.visit(&lease, &trusted.url("/next")).await;
    let refused = farm.execute(&lease, json!({"visit_page": {"url": other.url("/next")}})).await;
    refused.assert_error(422, "navigation_failed", "net::ERR_CERT_AUTHORITY_INVALID");
}

#[tokio::test(flavor = "multi_thread")]
async fn private_addresses_stay_refused_while_recording() {
    let site = TlsSite::start("shop.localhost", ModernSite::default().router()).await;
    let archives = tempfile::tempdir().unwrap();
    let allowed = format!("--allow-host shop.localhost:{}", site.port());
    let (_process, farm) = start_farm(archives.path(), &site.authority(), &allowed).await;
    let lease = farm.get_with(&json!({"network": {"record": "shop"}})).await;
    farm.visit(&lease, &site.url("/next")).await;
    let elsewhere = format!("https://127.0.0.1:{}/next", site.port());
    let refused = farm.execute(&lease, json!({"visit_page": {"url": elsewhere}})).await;
    refused.assert_error(400, "url_refused", "--allow-host");
}
