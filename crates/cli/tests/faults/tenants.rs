//! Tenants that leave things behind, leave without a word, or leave in the middle.

use std::time::{Duration, Instant};

use serde_json::json;
use testkit::{Farm, Lease, SlotMonitor, Slots, eventually, poll_until};
use tokio::{io::AsyncWriteExt, net::TcpStream};

use crate::{SECONDS, serve, sites};

/// Waits for words on the page.
async fn says(farm: &Farm, lease: &Lease, words: &str) -> String {
    poll_until(&format!("the page says {words:?}"), SECONDS, async || {
        let text = farm.text(lease).await;
        text.contains(words).then_some(text)
    })
    .await
}

async fn click(farm: &Farm, lease: &Lease, name: &str) {
    let seen = farm.observe(lease, json!({"include": ["screenshot", "ac_tree"]})).await.ok();
    let tree = seen["ac_tree"].as_str().unwrap_or_default().to_owned();
    let line = tree.lines().find(|line| line.contains(&format!("text: {name},"))).expect("the button");
    let id = line.trim_start_matches("id: ").split(',').next().expect("a number").to_owned();
    farm.execute(lease, json!({"click_id": {"id": id}})).await.ok();
}

/// Leaves something in every place a page can.
async fn leave_traces(farm: &Farm, lease: &Lease, storage: &str, worker: &str) {
    farm.visit(lease, &format!("{storage}?set=crumb")).await;
    says(farm, lease, "kept crumb").await;
    farm.visit(lease, storage).await;
    let seen = says(farm, lease, "Ready: yes").await;
    assert_eq!(seen.matches("crumb").count(), 7, "the test itself must leave traces: {seen}");
    farm.visit(lease, worker).await;
    click(farm, lease, "Register the worker").await;
    says(farm, lease, "registered").await;
    farm.visit(lease, worker).await;
    says(farm, lease, "hello from the worker").await;
}

async fn find_none(farm: &Farm, lease: &Lease, storage: &str, worker: &str) {
    farm.visit(lease, storage).await;
    let seen = says(farm, lease, "Ready: yes").await;
    assert!(!seen.contains("crumb"), "{seen}");
    let history = seen.lines().find(|line| line.contains("History length")).unwrap_or_default();
    assert!(["1", "2"].iter().any(|short| history.trim().ends_with(short)), "{history:?} in {seen}");
    farm.visit(lease, worker).await;
    let seen = says(farm, lease, "hello from").await;
    assert!(seen.contains("hello from the server"), "{seen}");
}

#[tokio::test]
async fn nothing_of_one_tenant_reaches_the_next() {
    let (webgym, sites) = (serve("2").await, sites());
    let farm = webgym.master();
    let (storage, worker) = (sites.url("/course/storage"), sites.url("/course/service-worker/"));
    let (tenant, neighbour) = (farm.get().await, farm.get().await);
    leave_traces(&farm, &tenant, &storage, &worker).await;
    find_none(&farm, &neighbour, &storage, &worker).await;
    let slot = tenant.id.rsplit(':').next().expect("a slot").to_owned();
    farm.reset(&tenant).await.ok();
    let next = farm.get().await;
    assert!(next.id.ends_with(&slot), "the same slot in the same browser");
    let page = farm.execute(&next, json!({"get_page_metadata": {}})).await.ok();
    assert_eq!(page["url"], "about:blank");
    let none = farm.execute(&next, json!({"get_screenshot_info": {}})).await.ok();
    assert_eq!(none, json!({"error": "No screenshot info available"}));
    find_none(&farm, &next, &storage, &worker).await;
    for lease in [next, neighbour] {
        farm.reset(&lease).await.ok();
    }
    Slots::wait_all_free(&webgym, &farm.http, SECONDS).await;
}

#[tokio::test]
async fn client_vanished_mid_lease() {
    let webgym = serve("2 --lease-minute 0.5").await;
    let farm = webgym.master();
    let watch = SlotMonitor::start(&farm.http);
    let gone = Lease::parse(&farm.try_get(&[("lifetime_mins", "3")]).await.ok());
    let busy = Lease::parse(&farm.try_get(&[("lifetime_mins", "3")]).await.ok());
    // One operation longer than the lifetime counts as use from beginning to end.
    let (working, other) = (farm.clone(), busy.clone());
    let long = tokio::spawn(async move { working.execute(&other, json!({"sleep": {"duration": 4}})).await });
    eventually("the slot of the vanished client is free again", SECONDS, async || {
        let slots = Slots::fetch(&farm.http).await;
        slots.available == 1 && slots.in_use == 1 && slots.expired == 1
    })
    .await;
    farm.probe(&gone).await.assert_error(400, "invalid_instance", "Invalid instance UUID");
    farm.reset(&gone).await.assert_error(400, "not_in_use", "not in use");
    long.await.expect("it runs").ok();
    let kept = Instant::now();
    while kept.elapsed() < Duration::from_secs(3) {
        farm.probe(&busy).await.ok();
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    farm.reset(&busy).await.ok();
    Slots::wait_all_free(&webgym, &farm.http, SECONDS).await;
    watch.assert_consistent().await;
}

/// Sends a command and cuts the connection after a while, without reading.
async fn hang_up(farm: &Farm, lease: &Lease, command: &str, after: Duration) {
    let address = farm.http.base().trim_start_matches("http://").to_owned();
    let body = format!("{{\"node\":\"{}\",\"instance_id\":\"{}\",{command}}}", lease.node, lease.id);
    let mut stream = TcpStream::connect(&address).await.expect("a connection");
    let head = format!("POST /execute HTTP/1.1\r\nhost: {address}\r\nx-api-key: default_key\r\n");
    let request = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).await.expect("it is sent");
    tokio::time::sleep(after).await;
}

#[tokio::test]
async fn client_hangs_up_mid_request() {
    let (webgym, sites) = (serve("1").await, sites());
    let farm = webgym.master();
    let lease = farm.get().await;
    farm.visit(&lease, &sites.url("/course/inputs")).await;
    let seen = farm.observe(&lease, json!({"include": ["screenshot", "ac_tree"]})).await.ok();
    let tree = seen["ac_tree"].as_str().unwrap_or_default().to_owned();
    let line = tree.lines().find(|line| line.contains("text: Placeholder,")).expect("the field");
    let id = line.trim_start_matches("id: ").split(',').next().expect("a number").to_owned();
    let mut finished = 0;
    for (round, letter) in "qzjvkw".chars().enumerate() {
        let value = letter.to_string().repeat(60);
        let command = format!(
            "\"fill_id\":{{\"id\":\"{id}\",\"value\":\"{value}\",\"press_enter\":false,\"delete_existing\":true}}"
        );
        hang_up(&farm, &lease, &command, Duration::from_millis(10 * round as u64)).await;
        // What has begun is finished, what has not never begins: the whole text is there, or nothing of it.
        let text = farm.text(&lease).await;
        let begun = text.contains(&format!("input empty {letter}"));
        assert_eq!(begun, text.contains(&value), "half of it was typed: {text}");
        finished += usize::from(begun);
    }
    assert!(finished > 0, "no operation had begun when its client hung up");
    farm.reset(&lease).await.ok();
    Slots::wait_all_free(&webgym, &farm.http, SECONDS).await;
}

#[tokio::test]
async fn reset_while_an_operation_hangs() {
    let (webgym, sites) = (serve("1").await, sites());
    let farm = webgym.master();
    let lease = farm.get().await;
    let (busy, held, never) = (farm.clone(), lease.clone(), sites.url("/course/never"));
    let hanging =
        tokio::spawn(async move { busy.execute(&held, json!({"visit_page": {"url": never}})).await });
    eventually("it hangs", SECONDS, async || !hanging.is_finished()).await;
    let started = Instant::now();
    farm.reset(&lease).await.ok();
    let next = farm.get().await;
    farm.probe(&next).await.ok();
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    hanging.await.expect("it is answered").assert_error(400, "invalid_instance", "Invalid instance UUID");
    farm.reset(&next).await.ok();
    Slots::wait_all_free(&webgym, &farm.http, SECONDS).await;
}
