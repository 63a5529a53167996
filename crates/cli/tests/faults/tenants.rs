//! Tenants that leave data behind, vanish, or disconnect during a request.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::json;
use testkit::{Farm, Lease, RecordingServer, Served, SlotMonitor, Slots, eventually, poll_until};
use tokio::{io::AsyncWriteExt, net::TcpStream, sync::Notify};

use crate::{TIMEOUT, serve, sites};

/// Waits until the page contains this text and returns its whole text.
async fn wait_for_text(farm: &Farm, lease: &Lease, expected: &str) -> String {
    poll_until(&format!("the page contains {expected:?}"), TIMEOUT, async || {
        let text = farm.text(lease).await;
        text.contains(expected).then_some(text)
    })
    .await
}

async fn click(farm: &Farm, lease: &Lease, name: &str) {
    let seen = farm.observe(lease, json!({"include": ["screenshot", "ac_tree"]})).await.ok();
    let tree = seen["ac_tree"].as_str().unwrap_or_default().to_owned();
    let line = tree.lines().find(|line| line.contains(&format!("text: {name},"))).expect("the button");
    let id = line.trim_start_matches("id: ").split(',').next().expect("an id").to_owned();
    farm.execute(lease, json!({"click_id": {"id": id}})).await.ok();
}

/// Stores data in every way that a page can.
async fn leave_traces(farm: &Farm, lease: &Lease, storage: &str, worker: &str) {
    farm.visit(lease, &format!("{storage}?set=crumb")).await;
    wait_for_text(farm, lease, "kept crumb").await;
    farm.visit(lease, storage).await;
    let seen = wait_for_text(farm, lease, "Ready: yes").await;
    assert_eq!(seen.matches("crumb").count(), 7, "the page must have stored its data: {seen}");
    farm.visit(lease, worker).await;
    click(farm, lease, "Register the worker").await;
    wait_for_text(farm, lease, "registered").await;
    farm.visit(lease, worker).await;
    wait_for_text(farm, lease, "hello from the worker").await;
}

async fn assert_no_traces(farm: &Farm, lease: &Lease, storage: &str, worker: &str) {
    farm.visit(lease, storage).await;
    let seen = wait_for_text(farm, lease, "Ready: yes").await;
    assert!(!seen.contains("crumb"), "{seen}");
    let history = seen.lines().find(|line| line.contains("History length")).unwrap_or_default();
    assert!(["1", "2"].iter().any(|short| history.trim().ends_with(short)), "{history:?} in {seen}");
    farm.visit(lease, worker).await;
    let seen = wait_for_text(farm, lease, "hello from").await;
    assert!(seen.contains("hello from the server"), "{seen}");
}

#[tokio::test]
async fn tenants_share_no_state() {
    let (webgym, sites) = (serve("2").await, sites());
    let farm = webgym.master();
    let (storage, worker) = (sites.url("/course/storage"), sites.url("/course/service-worker/"));
    let (tenant, neighbour) = (farm.get().await, farm.get().await);
    leave_traces(&farm, &tenant, &storage, &worker).await;
    assert_no_traces(&farm, &neighbour, &storage, &worker).await;
    let slot = tenant.id.rsplit(':').next().expect("a slot").to_owned();
    farm.reset(&tenant).await.ok();
    let next = farm.get().await;
    assert!(next.id.ends_with(&slot), "the lease gets the same slot");
    let page = farm.execute(&next, json!({"get_page_metadata": {}})).await.ok();
    assert_eq!(page["url"], "about:blank");
    let none = farm.execute(&next, json!({"get_screenshot_info": {}})).await.ok();
    assert_eq!(none, json!({"error": "No screenshot info available"}));
    assert_no_traces(&farm, &next, &storage, &worker).await;
    for lease in [next, neighbour] {
        farm.reset(&lease).await.ok();
    }
    Slots::wait_all_free(&webgym, &farm.http, TIMEOUT).await;
}

#[tokio::test]
async fn vanished_client_lease_expires() {
    // A lifetime of three "minutes" is three seconds.
    let webgym = serve("2 --lease-minute 1").await;
    let farm = webgym.master();
    let watch = SlotMonitor::start(&farm.http);
    let gone = Lease::parse(&farm.try_get(&[("lifetime_mins", "3")]).await.ok());
    let busy = Lease::parse(&farm.try_get(&[("lifetime_mins", "3")]).await.ok());
    // An operation longer than the lifetime counts as use from beginning to end, and so do short ones after it.
    let (client, lease) = (farm.clone(), busy.clone());
    let use_lease = tokio::spawn(async move {
        client.execute(&lease, json!({"sleep": {"duration": 6}})).await.ok();
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(6) {
            client.probe(&lease).await.ok();
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    });
    eventually("the lease of the vanished client has expired", TIMEOUT, async || {
        let slots = Slots::fetch(&farm.http).await;
        slots.available == 1 && slots.in_use == 1 && slots.expired == 1
    })
    .await;
    farm.probe(&gone).await.assert_error(400, "invalid_instance", "Invalid instance UUID");
    farm.reset(&gone).await.assert_error(400, "not_in_use", "not in use");
    use_lease.await.expect("the lease in use did not expire");
    farm.reset(&busy).await.ok();
    Slots::wait_all_free(&webgym, &farm.http, TIMEOUT).await;
    watch.assert_consistent().await;
}

/// Sends a command and closes the connection after a while, without reading the response.
async fn send_and_disconnect(farm: &Farm, lease: &Lease, command: &str, after: Duration) {
    let address = farm.http.base().trim_start_matches("http://").to_owned();
    let body = format!("{{\"node\":\"{}\",\"instance_id\":\"{}\",{command}}}", lease.node, lease.id);
    let mut stream = TcpStream::connect(&address).await.expect("a connection");
    let head = format!("POST /execute HTTP/1.1\r\nhost: {address}\r\nx-api-key: default_key\r\n");
    let request = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).await.expect("the request is sent");
    tokio::time::sleep(after).await;
}

#[tokio::test]
async fn disconnect_leaves_no_command_half_done() {
    let (webgym, sites) = (serve("1").await, sites());
    let farm = webgym.master();
    let lease = farm.get().await;
    farm.visit(&lease, &sites.url("/course/inputs")).await;
    let seen = farm.observe(&lease, json!({"include": ["screenshot", "ac_tree"]})).await.ok();
    let tree = seen["ac_tree"].as_str().unwrap_or_default().to_owned();
    let line = tree.lines().find(|line| line.contains("text: Placeholder,")).expect("the field");
    let id = line.trim_start_matches("id: ").split(',').next().expect("an id").to_owned();
    let mut finished = 0;
    for (round, letter) in "qzjvkw".chars().enumerate() {
        let value = letter.to_string().repeat(60);
        let command = format!(
            "\"fill_id\":{{\"id\":\"{id}\",\"value\":\"{value}\",\"press_enter\":false,\"delete_existing\":true}}"
        );
        send_and_disconnect(&farm, &lease, &command, Duration::from_millis(10 * round as u64)).await;
        // A command that has started is finished, any other never starts: all of the text is there, or none of it.
        let text = farm.text(&lease).await;
        let begun = text.contains(&format!("input empty {letter}"));
        assert_eq!(begun, text.contains(&value), "a part of the text was typed: {text}");
        finished += usize::from(begun);
    }
    assert!(finished > 0, "no command had started when its client disconnected");
    farm.reset(&lease).await.ok();
    Slots::wait_all_free(&webgym, &farm.http, TIMEOUT).await;
}

#[tokio::test]
async fn reset_interrupts_hanging_operation() {
    let (webgym, site) = (serve("1").await, RecordingServer::start().await);
    let farm = webgym.master();
    let lease = farm.get().await;
    site.serve("/never", Served::Held(Arc::new(Notify::new())));
    let (client, held, never) = (farm.clone(), lease.clone(), format!("http://{}/never", site.address));
    let hanging =
        tokio::spawn(async move { client.execute(&held, json!({"visit_page": {"url": never}})).await });
    eventually("the page is requested", TIMEOUT, async || !site.requests().is_empty()).await;
    let started = Instant::now();
    farm.reset(&lease).await.ok();
    let next = farm.get().await;
    farm.probe(&next).await.ok();
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    hanging.await.expect("the request is answered").assert_error(
        400,
        "invalid_instance",
        "Invalid instance UUID",
    );
    farm.reset(&next).await.ok();
    Slots::wait_all_free(&webgym, &farm.http, TIMEOUT).await;
}
