//! Browsers that are killed, crash, hang, get old or do not start.

use std::{os::unix::fs::PermissionsExt, path::Path, time::Duration};

use rustix::process::Signal;
use serde_json::json;
use testkit::{SlotMonitor, Slots, Webgym, eventually, poll_until, signal};

use crate::{TIMEOUT, WEBGYM, serve, sites};

const LOST: (u16, &str) = (500, "instance_lost");

#[tokio::test]
async fn killed_browser_is_replaced() {
    let webgym = serve("4 --instances-per-browser 2").await;
    let farm = webgym.master();
    let watch = SlotMonitor::start(&farm.http);
    let (first, second) = (farm.get().await, farm.get().await);
    let browsers = webgym.browsers();
    assert_eq!(browsers.len(), 2);
    signal(browsers[0].pid, Signal::KILL);
    // Leases are spread over the browsers, so exactly one of the two leases is lost.
    let lost = poll_until("one lease is lost", TIMEOUT, async || {
        for lease in [&first, &second] {
            let probe = farm.probe(lease).await;
            if (probe.status, probe.code().as_str()) == LOST {
                return Some(lease.clone());
            }
        }
        None
    })
    .await;
    let kept = if lost == first { &second } else { &first };
    eventually("its slots are available again without a request", TIMEOUT, async || {
        Slots::fetch(&farm.http).await.available == 3
    })
    .await;
    for reply in [
        farm.probe(&lost).await,
        farm.execute(&lost, json!({"back": {}})).await,
        farm.screenshot(&lost, &[]).await,
        farm.metadata(&lost).await,
        farm.observe(&lost, json!({})).await,
    ] {
        reply.assert_error(500, "instance_lost", "lost");
    }
    farm.probe(kept).await.ok();
    let slots = Slots::fetch(&farm.http).await;
    assert_eq!((slots.browsers, slots.restarts, slots.lost, slots.in_use), (2, 1, 1, 1));
    eventually("nothing of the killed browser is left", TIMEOUT, async || browsers[0].is_gone()).await;
    farm.reset(&lost).await.ok();
    farm.reset(&lost).await.assert_error(400, "not_in_use", "not in use");
    farm.probe(&lost).await.assert_error(400, "invalid_instance", "Invalid instance UUID");
    farm.reset(kept).await.ok();
    Slots::wait_all_free(&webgym, &farm.http, TIMEOUT).await;
    watch.assert_consistent().await;
}

#[tokio::test]
async fn crashed_renderer_costs_only_its_lease() {
    let (webgym, sites) = (serve("2 --spares 0").await, sites());
    let farm = webgym.node();
    let watch = SlotMonitor::start(&farm.http);
    let lease = farm.get().await;
    farm.visit(&lease, &sites.url("/course/buttons")).await;
    let browser = webgym.browsers().remove(0);
    for renderer in browser.renderers() {
        signal(renderer.pid, Signal::KILL);
    }
    eventually("the lease is lost", TIMEOUT, async || farm.probe(&lease).await.code() == LOST.1).await;
    // The renderer of the other slot was killed too; until the farm notices, a new lease may land on it and be lost.
    let next = poll_until("a lease with a working page", TIMEOUT, async || {
        let next = farm.get().await;
        let visit = json!({"visit_page": {"url": sites.url("/course/buttons")}});
        if farm.execute(&next, visit).await.status == 200 {
            return Some(next);
        }
        farm.reset(&next).await.ok();
        None
    })
    .await;
    assert_eq!(
        webgym.browsers().first().map(|browser| browser.pid),
        Some(browser.pid),
        "the browser keeps running"
    );
    farm.probe(&lease).await.assert_error(500, "instance_lost", "crashed");
    farm.reset(&lease).await.ok();
    farm.reset(&next).await.ok();
    let slots = Slots::wait_all_free(&webgym, &farm.http, TIMEOUT).await;
    assert_eq!(slots.restarts, 0);
    watch.assert_consistent().await;
}

#[tokio::test]
async fn frozen_browser_is_replaced() {
    let webgym = serve("2 --instances-per-browser 1 --hang-limit 1").await;
    let farm = webgym.master();
    let watch = SlotMonitor::start(&farm.http);
    let (first, second) = (farm.get().await, farm.get().await);
    let frozen = webgym.browsers().remove(0);
    signal(frozen.pid, Signal::STOP);
    eventually("the hanging browser is replaced", TIMEOUT, async || {
        Slots::fetch(&farm.http).await.restarts == 1
    })
    .await;
    eventually("nothing of it is left", TIMEOUT, async || frozen.is_gone()).await;
    let answers = [farm.probe(&first).await, farm.probe(&second).await].map(|reply| reply.status);
    assert!(answers == [200, 500] || answers == [500, 200], "{answers:?}");
    for lease in [first, second] {
        farm.reset(&lease).await.ok();
    }
    Slots::wait_all_free(&webgym, &farm.http, TIMEOUT).await;
    watch.assert_consistent().await;
}

#[tokio::test]
async fn old_browser_is_recycled() {
    let webgym = serve("2 --max-browser-age 0.02").await;
    let farm = webgym.master();
    let watch = SlotMonitor::start(&farm.http);
    let lease = farm.get().await;
    let old = webgym.browsers().remove(0);
    eventually("it is too old for new leases", TIMEOUT, async || {
        farm.probe(&lease).await.ok();
        Slots::fetch(&farm.http).await.starting == 1
    })
    .await;
    assert_eq!(webgym.browsers()[0].pid, old.pid, "a browser with a lease is not replaced");
    farm.reset(&lease).await.ok();
    let next = farm.get().await;
    farm.probe(&next).await.ok();
    eventually("nothing of the old browser is left", TIMEOUT, async || old.is_gone()).await;
    farm.probe(&next).await.ok();
    assert!(
        webgym.browsers().iter().all(|browser| browser.pid != old.pid),
        "it was replaced once it was unused"
    );
    assert_eq!(Slots::fetch(&farm.http).await.lost, 0, "no lease was lost");
    farm.reset(&next).await.ok();
    watch.assert_consistent().await;
}

/// Writes a browser script that records each start and fails unless the file `allowed` exists.
fn failing_browser(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("failing-headless-shell");
    let script = format!(
        "#!/bin/sh\necho start >> {0}/starts\n[ -e {0}/allowed ] || exit 1\nexec chromium-headless-shell \"$@\"\n",
        folder.display()
    );
    std::fs::write(&path, script).expect("a script");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))
        .expect("the script is made executable");
    path
}

#[tokio::test]
async fn failing_browser_starts_are_retried() {
    let folder = tempfile::tempdir().expect("a folder");
    let browser = failing_browser(folder.path());
    let arguments = "serve 2 --master-port 0 --node-port 0 --chromium";
    let arguments: Vec<&str> = arguments.split(' ').chain([browser.to_str().expect("a path")]).collect();
    let mut webgym = Webgym::spawn(WEBGYM, &arguments);
    webgym.wait_for_event("listening").await;
    webgym.wait_for_event("listening").await;
    let farm = webgym.node();
    let starts = || std::fs::read_to_string(folder.path().join("starts")).unwrap_or_default().lines().count();
    eventually("several starts fail", TIMEOUT, async || starts() >= 4).await;
    let info = poll_until("both slots are dead", TIMEOUT, async || {
        Some(farm.info().await).filter(|info| info["dead"] == 2 && info["available"] == 0)
    })
    .await;
    assert!(
        info["dead_because"].as_str().is_some_and(|reason| reason.contains("failing-headless-shell")),
        "{info}"
    );
    farm.try_get(&[]).await.assert_error(503, "no_capacity", "No available nodes with capacity");
    assert_eq!(farm.http.get("/readyz", &[]).await.status, 503);
    let before = starts();
    std::fs::write(folder.path().join("allowed"), "").expect("a file");
    let ready = webgym.wait_for_event("ready").await;
    assert_eq!(ready["instances"], 2);
    assert!(starts() - before <= 3, "restarts back off: {} more", starts() - before);
    let lease = farm.get().await;
    farm.reset(&lease).await.ok();
    Slots::wait_all_free(&webgym, &farm.http, TIMEOUT).await;
}

#[tokio::test]
async fn disabled_recovery_leaves_slot_dead() {
    let webgym = serve("2 --instances-per-browser 1 --disable-recovery").await;
    let farm = webgym.master();
    signal(webgym.browsers()[0].pid, Signal::KILL);
    eventually("its slot is dead", TIMEOUT, async || Slots::fetch(&farm.http).await.dead == 1).await;
    let lease = farm.get().await;
    farm.probe(&lease).await.ok();
    let full = farm.try_get(&[]).await;
    full.assert_error(503, "no_capacity", "No available nodes");
    let info = farm.info().await;
    let reason = info["nodes"][0]["dead_because"].as_str().unwrap_or_default().to_owned();
    assert!(reason.contains("recovery is disabled"), "{info}");
    assert_eq!(webgym.browsers().len(), 1);
    farm.reset(&lease).await.ok();
    tokio::time::timeout(Duration::from_secs(20), webgym.stop()).await.expect("it stops");
}
