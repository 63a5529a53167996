//! Being told to stop, twice, in the middle of things, at the very start; and being killed.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use serde_json::json;
use testkit::{Farm, Lease, RecordingServer, Reply, Served, Slots, Webgym, eventually, signal};
use tokio::{sync::Notify, task::JoinHandle};

use crate::{SECONDS, WEBGYM, serve};

/// A visit that is under way and lasts until it is let go.
async fn visiting(farm: &Farm, lease: &Lease, trap: &RecordingServer) -> (JoinHandle<Reply>, Arc<Notify>) {
    let go = Arc::new(Notify::new());
    trap.serve("/held", Served::Held(Arc::clone(&go)));
    let (farm, lease, url) = (farm.clone(), lease.clone(), format!("http://{}/held", trap.address));
    let request =
        tokio::spawn(async move { farm.execute(&lease, json!({"visit_page": {"url": url}})).await });
    eventually("the page is asked for", SECONDS, async || !trap.requests().is_empty()).await;
    (request, go)
}

#[tokio::test]
async fn sigterm_mid_request() {
    let mut webgym = serve("2").await;
    let farm = webgym.master();
    let lease = farm.get().await;
    let other = farm.get().await;
    farm.metadata(&other).await.ok();
    let trap = RecordingServer::start().await;
    let (request, go) = visiting(&farm, &lease, &trap).await;
    let waiting = farm.clone();
    let queued = tokio::spawn(async move { waiting.try_get(&[("wait_secs", "60")]).await });
    eventually("one waits in line", SECONDS, async || {
        farm.http.get("/metrics", &[]).await.text().contains("\nwebgym_master_get_queue_length 1\n")
    })
    .await;
    let browsers = webgym.browsers();
    webgym.signal(Signal::TERM);
    queued.await.expect("it runs").assert_error(503, "shutting_down", "shutting down");
    go.notify_one();
    request.await.expect("what runs is finished").ok();
    let status = webgym.wait_for_exit(SECONDS).await;
    assert_eq!(status.code(), Some(0), "{}", webgym.log());
    assert!(browsers.iter().all(testkit::Browser::is_gone), "gone before it ends");
    assert_eq!(webgym.leftovers(), Vec::<String>::new());
}

#[tokio::test]
async fn sigterm_does_not_wait_for_ever() {
    let mut webgym = serve("1 --shutdown-secs 1").await;
    let farm = webgym.node();
    let lease = farm.get().await;
    let running = farm.clone();
    let request =
        tokio::spawn(async move { running.execute(&lease, json!({"sleep": {"duration": 25}})).await });
    eventually("it runs", SECONDS, async || Slots::fetch(&farm.http).await.in_use == 1).await;
    tokio::task::yield_now().await;
    webgym.signal(Signal::TERM);
    let told = Instant::now();
    assert_eq!(webgym.wait_for_exit(SECONDS).await.code(), Some(0), "{}", webgym.log());
    assert!(told.elapsed() < Duration::from_secs(12), "{:?}", told.elapsed());
    if let Ok(reply) = request.await {
        reply.assert_error(500, "instance_lost", "shutting down");
    }
    assert_eq!(webgym.leftovers(), Vec::<String>::new());
}

#[tokio::test]
async fn second_signal_ends_at_once() {
    let mut webgym = serve("2").await;
    let farm = webgym.master();
    let lease = farm.get().await;
    let trap = RecordingServer::start().await;
    let (running, _go) = visiting(&farm, &lease, &trap).await;
    webgym.signal(Signal::TERM);
    eventually("it is stopping", SECONDS, async || webgym.log().contains("stopping")).await;
    webgym.signal(Signal::INT);
    let told = Instant::now();
    assert_eq!(webgym.wait_for_exit(SECONDS).await.code(), Some(130), "{}", webgym.log());
    assert!(told.elapsed() < Duration::from_secs(8), "{:?}", told.elapsed());
    webgym.assert_no_leftovers(SECONDS).await;
    running.abort();
}

#[tokio::test]
async fn sigkill_leaves_nothing() {
    let mut webgym = serve("4 --instances-per-browser 2").await;
    let farm = webgym.master();
    let lease = farm.get().await;
    farm.probe(&lease).await.ok();
    let browsers = webgym.browsers();
    let renderers: Vec<_> = browsers.iter().flat_map(testkit::Browser::renderers).collect();
    assert!(browsers.len() == 2 && renderers.len() >= 4);
    // Even a renderer that stands still goes.
    signal(renderers[0].pid, Signal::STOP);
    webgym.signal(Signal::KILL);
    webgym.wait_for_exit(SECONDS).await;
    webgym.assert_no_leftovers(SECONDS).await;
    for browser in browsers {
        eventually("nothing is left of its browsers", SECONDS, async || browser.is_gone()).await;
    }
}

#[tokio::test]
async fn sigterm_while_starting() {
    let words = "serve 8 --instances-per-browser 2 --master-port 0 --node-port 0";
    let mut webgym = Webgym::spawn(WEBGYM, &words.split(' ').collect::<Vec<_>>());
    webgym.wait_for_event("listening").await;
    eventually("the first browsers are coming up", SECONDS, async || !webgym.browsers().is_empty()).await;
    webgym.signal(Signal::TERM);
    assert_eq!(webgym.wait_for_exit(SECONDS).await.code(), Some(0), "{}", webgym.log());
    webgym.assert_no_leftovers(SECONDS).await;
}

#[tokio::test]
async fn sigterm_to_each_tier() {
    for words in
        ["master --port 0", "node 1 --port 0", "instance --port 0", "serve --mode master --master-port 0"]
    {
        let webgym = crate::webgym(words).await;
        assert_eq!(webgym.listening().len(), 1, "{words}");
        webgym.stop().await;
    }
}
