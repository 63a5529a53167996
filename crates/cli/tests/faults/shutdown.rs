//! Signals: SIGTERM during a request and during start-up, a second signal, SIGKILL.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use serde_json::json;
use testkit::{Farm, Lease, RecordingServer, Reply, Served, Webgym, eventually, signal};
use tokio::{sync::Notify, task::JoinHandle};

use crate::{TIMEOUT, WEBGYM, serve};

/// Starts a page visit that lasts until it is notified, and waits until the page is requested.
async fn start_slow_visit(
    farm: &Farm,
    lease: &Lease,
    site: &RecordingServer,
) -> (JoinHandle<Reply>, Arc<Notify>) {
    let go = Arc::new(Notify::new());
    site.serve("/held", Served::Held(Arc::clone(&go)));
    let (farm, lease, url) = (farm.clone(), lease.clone(), format!("http://{}/held", site.address));
    let request =
        tokio::spawn(async move { farm.execute(&lease, json!({"visit_page": {"url": url}})).await });
    eventually("the page is requested", TIMEOUT, async || !site.requests().is_empty()).await;
    (request, go)
}

#[tokio::test]
async fn sigterm_finishes_running_request() {
    let mut webgym = serve("2").await;
    let farm = webgym.master();
    let lease = farm.get().await;
    let other = farm.get().await;
    farm.metadata(&other).await.ok();
    let site = RecordingServer::start().await;
    let (request, go) = start_slow_visit(&farm, &lease, &site).await;
    let waiting = farm.clone();
    let queued = tokio::spawn(async move { waiting.try_get(&[("wait_secs", "60")]).await });
    eventually("one request is queued", TIMEOUT, async || {
        farm.http.get("/metrics", &[]).await.text().contains("\nwebgym_master_get_queue_length 1\n")
    })
    .await;
    let browsers = webgym.browsers();
    webgym.signal(Signal::TERM);
    queued.await.expect("the task runs").assert_error(503, "shutting_down", "shutting down");
    go.notify_one();
    request.await.expect("the running request is finished").ok();
    let status = webgym.wait_for_exit(TIMEOUT).await;
    assert_eq!(status.code(), Some(0), "{}", webgym.log());
    assert!(browsers.iter().all(testkit::Browser::is_gone), "its browsers are gone before it exits");
    assert_eq!(webgym.leftovers(), Vec::<String>::new());
    let log = webgym.log();
    let warnings =
        ["ends its leases leases=2", "lost a leased instance"].map(|text| log.matches(text).count());
    assert_eq!(warnings, [1, 0], "one warning for all leases: {log}");
}

#[tokio::test]
async fn sigterm_wait_is_bounded() {
    let mut webgym = serve("1 --shutdown-secs 1").await;
    let farm = webgym.node();
    let lease = farm.get().await;
    let site = RecordingServer::start().await;
    let (request, _go) = start_slow_visit(&farm, &lease, &site).await;
    webgym.signal(Signal::TERM);
    let started = Instant::now();
    assert_eq!(webgym.wait_for_exit(TIMEOUT).await.code(), Some(0), "{}", webgym.log());
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    if let Ok(reply) = request.await {
        reply.assert_error(500, "instance_lost", "shutting down");
    }
    assert_eq!(webgym.leftovers(), Vec::<String>::new());
}

#[tokio::test]
async fn second_signal_exits_immediately() {
    let mut webgym = serve("2 --shutdown-secs 60").await;
    let farm = webgym.master();
    let lease = farm.get().await;
    let site = RecordingServer::start().await;
    let (running, _go) = start_slow_visit(&farm, &lease, &site).await;
    webgym.signal(Signal::TERM);
    eventually("it is stopping", TIMEOUT, async || webgym.log().contains("stopping")).await;
    webgym.signal(Signal::INT);
    let started = Instant::now();
    assert_eq!(webgym.wait_for_exit(TIMEOUT).await.code(), Some(130), "{}", webgym.log());
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
    webgym.assert_no_leftovers(TIMEOUT).await;
    running.abort();
}

#[tokio::test]
async fn sigkill_leaves_no_processes_or_files() {
    let mut webgym = serve("4 --instances-per-browser 2").await;
    let farm = webgym.master();
    let lease = farm.get().await;
    farm.probe(&lease).await.ok();
    let browsers = webgym.browsers();
    let renderers: Vec<_> = browsers.iter().flat_map(testkit::Browser::renderers).collect();
    assert!(browsers.len() == 2 && renderers.len() >= 4);
    // A stopped renderer must be killed too.
    signal(renderers[0].pid, Signal::STOP);
    webgym.signal(Signal::KILL);
    webgym.wait_for_exit(TIMEOUT).await;
    webgym.assert_no_leftovers(TIMEOUT).await;
    for browser in browsers {
        eventually("nothing of its browsers is left", TIMEOUT, async || browser.is_gone()).await;
    }
}

#[tokio::test]
async fn sigterm_while_starting_leaves_nothing() {
    let arguments = "serve 8 --instances-per-browser 2 --master-port 0 --node-port 0";
    let mut webgym = Webgym::spawn(WEBGYM, &arguments.split(' ').collect::<Vec<_>>());
    webgym.wait_for_event("listening").await;
    eventually("the first browsers are starting", TIMEOUT, async || !webgym.browsers().is_empty()).await;
    webgym.signal(Signal::TERM);
    assert_eq!(webgym.wait_for_exit(TIMEOUT).await.code(), Some(0), "{}", webgym.log());
    webgym.assert_no_leftovers(TIMEOUT).await;
}

#[tokio::test]
async fn sigterm_stops_every_tier() {
    for arguments in
        ["master --port 0", "node 1 --port 0", "instance --port 0", "serve --mode master --master-port 0"]
    {
        let webgym = crate::webgym(arguments).await;
        assert_eq!(webgym.listening().len(), 1, "{arguments}");
        webgym.stop().await;
    }
}
