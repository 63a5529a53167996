//! Viewers of live views that are slow, stay for ever or watch a page that crashes; and what happens while nobody watches.

use std::{
    os::unix::fs::PermissionsExt,
    time::{Duration, Instant},
};

use cdp::find_browser;
use rustix::process::Signal;
use serde_json::json;
use testkit::{Farm, Lease, LiveClient, LiveMessage, Webgym, eventually, signal};

use crate::{TIMEOUT, WEBGYM, serve};

/// A page that never stops changing.
const ANIMATION: &str = "data:text/html,<title>animation</title><h1 id=n>0</h1><script>let n = 0; \
     (function draw() { document.getElementById('n').textContent = n++; requestAnimationFrame(draw); })()</script>";

async fn short_lease(farm: &Farm) -> Lease {
    Lease::parse(&farm.try_get(&[("lifetime_mins", "2"), ("wait_secs", "60")]).await.ok())
}

async fn is_leased(farm: &Farm) -> bool {
    farm.http.get("/info", &[]).await.ok()["nodes"][0]["instances"] != json!([])
}

async fn viewers(farm: &Farm) -> usize {
    let metrics = farm.http.get("/metrics", &[]).await.text();
    let line = metrics.lines().find_map(|line| line.strip_prefix("webgym_live_viewers "));
    line.and_then(|count| count.parse().ok()).expect("the metric exists")
}

#[tokio::test]
async fn watching_does_not_keep_a_lease() {
    let webgym = serve("1 --lease-minute 0.5").await;
    let farm = webgym.master();
    let lease = short_lease(&farm).await;
    let mut viewer = LiveClient::connect(&farm.live_url(&lease).await).await;
    assert_eq!(viewer.closed().await, Some((1001, "the lease has ended".to_owned())));
    eventually("the lease has expired", TIMEOUT, async || !is_leased(&farm).await).await;
}

#[tokio::test]
async fn person_in_control_counts_as_use() {
    let webgym = serve("1 --lease-minute 0.5").await;
    let farm = webgym.master();
    let lease = short_lease(&farm).await;
    let mut viewer = LiveClient::connect(&farm.live_control_url(&lease).await).await;
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(3) {
        viewer.wait_for("lease", |state| state["controllers"] == 1).await;
    }
    farm.probe(&lease).await.ok();
    drop(viewer);
    eventually("the lease expires after the person has left", TIMEOUT, async || !is_leased(&farm).await)
        .await;
}

#[tokio::test]
async fn slow_viewer_misses_frames_and_delays_nobody() {
    let webgym = serve("1").await;
    let farm = webgym.master();
    let lease = farm.get().await;
    farm.execute(&lease, json!({"visit_page": {"url": ANIMATION}})).await.ok();
    let url = farm.live_url(&lease).await;
    let (mut slow, mut fast) = (LiveClient::connect(&url).await, LiveClient::connect(&url).await);
    for _ in 0..20 {
        fast.frame().await;
    }
    // It has acknowledged no frame, so it got one, and everything else.
    for _ in 0..3 {
        loop {
            if matches!(slow.next().await, LiveMessage::Json(message) if message["type"] == "lease") {
                break;
            }
        }
    }
    assert_eq!(slow.frames, 1);
    slow.send(&json!({"type": "ack"})).await;
    slow.frame().await;
    farm.probe(&lease).await.ok();
}

#[tokio::test]
async fn viewers_of_a_crashed_page_are_told() {
    let webgym = serve("1 --spares 0").await;
    let farm = webgym.master();
    let lease = farm.get().await;
    let mut viewer = LiveClient::connect(&farm.live_url(&lease).await).await;
    viewer.frame().await;
    for renderer in webgym.browsers().remove(0).renderers() {
        signal(renderer.pid, Signal::KILL);
    }
    assert_eq!(viewer.closed().await, Some((1001, "the browser of the lease is lost".to_owned())));
    farm.probe(&lease).await.assert_error(500, "instance_lost", "crashed");
}

/// Starts a farm whose browser writes a copy of every call that it gets to a file.
async fn serve_with_call_log(folder: &std::path::Path) -> Webgym {
    let real = find_browser(None).expect("no Chromium found: run scripts/setup").path;
    let (calls, wrapper) = (folder.join("calls"), folder.join(real.file_name().unwrap()));
    let script = format!(
        "#!/bin/bash\nexec 3< <(exec tee -a {} <&3 4>&-)\nexec {} \"$@\"\n",
        calls.display(),
        real.display()
    );
    std::fs::write(&wrapper, script).unwrap();
    std::fs::set_permissions(&wrapper, std::fs::Permissions::from_mode(0o755)).unwrap();
    let chromium = wrapper.to_str().unwrap();
    Webgym::start(WEBGYM, &["serve", "1", "--master-port", "0", "--node-port", "0", "--chromium", chromium])
        .await
}

#[tokio::test]
async fn nothing_is_captured_without_viewers() {
    let folder = tempfile::tempdir().unwrap();
    let webgym = serve_with_call_log(folder.path()).await;
    let count = |method: &str| {
        let calls = std::fs::read_to_string(folder.path().join("calls")).unwrap_or_default();
        calls.matches(&format!("\"method\":\"Page.{method}\"")).count()
    };
    let farm = webgym.master();
    let lease = farm.get().await;
    farm.execute(&lease, json!({"visit_page": {"url": ANIMATION}})).await.ok();
    let url = farm.live_url(&lease).await;
    assert!(count("navigate") > 0, "calls are logged");
    assert_eq!(count("startScreencast"), 0, "nobody watches");
    let (mut first, mut second) = (LiveClient::connect(&url).await, LiveClient::connect(&url).await);
    for viewer in [&mut first, &mut second] {
        viewer.frame().await;
        viewer.frame().await;
    }
    assert_eq!((count("startScreencast"), count("stopScreencast")), (1, 0), "two viewers share it");
    drop(first);
    eventually("the farm notices that the first viewer has left", TIMEOUT, async || {
        viewers(&farm).await == 1
    })
    .await;
    second.frame().await;
    assert_eq!(count("stopScreencast"), 0, "one viewer is left");
    drop(second);
    eventually("the capture stops after the last viewer", TIMEOUT, async || count("stopScreencast") == 1)
        .await;
    let acknowledged = count("screencastFrameAck");
    farm.execute(&lease, json!({"visit_page": {"url": ANIMATION}})).await.ok();
    assert_eq!(count("screencastFrameAck"), acknowledged, "no further frame");
    let mut third = LiveClient::connect(&url).await;
    third.frame().await;
    assert_eq!(count("startScreencast"), 2, "it starts again for the next viewer");
}

#[tokio::test]
async fn secrets_are_never_logged() {
    let arguments = "-vv serve 1 --master-port 0 --node-port 0 --allow-private-network";
    let webgym = Webgym::start(WEBGYM, &arguments.split(' ').collect::<Vec<_>>()).await;
    let farm = webgym.master();
    let lease = farm.get().await;
    let (watch, control) = (farm.live_url(&lease).await, farm.live_control_url(&lease).await);
    for url in [&watch, &control] {
        let mut viewer = LiveClient::connect(url).await;
        viewer.frame().await;
        viewer.send(&json!({"type": "navigate", "url": "http://nowhere.invalid/"})).await;
        viewer.wait_for("error", |_| true).await;
        let wrong = url.replace("/live/", "/live/x");
        assert_eq!(LiveClient::try_connect(&wrong).await.err(), Some(404));
    }
    farm.reset(&lease).await.ok();
    let log = webgym.log();
    assert!(!log.is_empty());
    for url in [watch, control] {
        let secret = url.rsplit('.').next().unwrap();
        // The first digits name the node and are public.
        assert!(!log.contains(&secret[16..]), "a secret is in the log");
    }
}
