//! CDP clients that are killed, stay silent, or do not read.

use std::{
    process::Stdio,
    time::{Duration, Instant},
};

use serde_json::json;
use testkit::{CdpClient, Farm, Lease, SlotMonitor, Slots, Webgym, descendants, eventually};
use tokio::process::Command;

use crate::{TIMEOUT, serve, sites};

/// Set in the process of a client that a test kills: the address it works at, and a page to open.
const ADDRESS: &str = "WEBGYM_TEST_CDP_URL";
const PAGE: &str = "WEBGYM_TEST_PAGE";

/// Not a test of its own: a client that opens contexts and pages until it is killed.
#[tokio::test]
#[ignore = "a process of killed_clients_leave_nothing_behind"]
async fn endless_client() {
    let (Ok(url), Ok(page)) = (std::env::var(ADDRESS), std::env::var(PAGE)) else { return };
    let mut client = CdpClient::connect(&url).await;
    let auto = json!({"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true});
    client.ok(None, "Target.setAutoAttach", auto).await;
    let context = client.ok(None, "Target.createBrowserContext", json!({"disposeOnDetach": false})).await;
    println!("working");
    loop {
        for context in [None, context["browserContextId"].as_str()] {
            let target = client
                .ok(None, "Target.createTarget", json!({"url": page, "browserContextId": context}))
                .await;
            client.call(None, "Target.getTargets", json!({})).await.unwrap();
            client.ok(None, "Target.closeTarget", target).await;
        }
    }
}

fn renderers(webgym: &Webgym) -> usize {
    let is_renderer = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains("--type=renderer")
    };
    descendants(webgym.pid()).iter().map(|process| process.pid).filter(is_renderer).count()
}

async fn lease_all(farm: &Farm, count: usize) -> Vec<Lease> {
    let mut leases = Vec::new();
    for _ in 0..count {
        leases.push(Lease::parse(&farm.try_get(&[("lifetime_mins", "20"), ("wait_secs", "60")]).await.ok()));
    }
    leases
}

/// Starts a client in a process of its own and waits until it works.
async fn start_client(url: &str, page: &str) -> tokio::process::Child {
    use tokio::io::AsyncBufReadExt;
    let program = std::env::current_exe().unwrap();
    let mut command = Command::new(program);
    command.args(["--exact", "cdp::endless_client", "--ignored", "--nocapture", "--test-threads=1"]);
    command
        .env(ADDRESS, url)
        .env(PAGE, page)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.kill_on_drop(true).spawn().unwrap();
    let mut lines = tokio::io::BufReader::new(child.stdout.take().unwrap()).lines();
    while let Some(line) = lines.next_line().await.unwrap() {
        if line.contains("working") {
            return child;
        }
    }
    panic!("the client ended before it worked");
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_clients_leave_nothing_behind() {
    const SLOTS: usize = 5;
    const CLIENTS: usize = 50;
    let (webgym, sites) = (serve("5 --lease-minute 1 --spares 0").await, sites());
    let farm = webgym.master();
    let monitor = SlotMonitor::start(&farm.http);
    let before = renderers(&webgym);
    let leases = lease_all(&farm, SLOTS).await;
    let page = sites.url("/course/buttons");
    let mut clients = Vec::new();
    for index in 0..CLIENTS {
        clients.push(start_client(&farm.cdp_url(&leases[index % SLOTS]).await, &page).await);
    }
    for client in &mut clients {
        client.start_kill().unwrap();
    }
    for client in &mut clients {
        client.wait().await.unwrap();
    }
    for lease in &leases {
        farm.probe(lease).await.ok();
        let mut client = CdpClient::connect(&farm.cdp_url(lease).await).await;
        assert_eq!(
            client.ok(None, "Target.getBrowserContexts", json!({})).await["browserContextIds"],
            json!([])
        );
    }
    // Nobody uses the leases any more, so they end by the same rule as all others.
    let slots = Slots::wait_all_free(&webgym, &farm.http, TIMEOUT).await;
    assert_eq!((slots.capacity, slots.expired), (SLOTS, SLOTS), "{slots:?}");
    eventually("no page or context of the clients is left", TIMEOUT, async || renderers(&webgym) <= before)
        .await;
    for lease in lease_all(&farm, SLOTS).await {
        farm.probe(&lease).await.ok();
    }
    monitor.assert_consistent().await;
}

#[tokio::test]
async fn open_connection_counts_as_use() {
    let webgym = serve("1 --lease-minute 0.5").await;
    let farm = webgym.master();
    let lease = Lease::parse(&farm.try_get(&[("lifetime_mins", "2"), ("wait_secs", "60")]).await.ok());
    let mut client = CdpClient::connect(&farm.cdp_url(&lease).await).await;
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(3) {
        assert_eq!(client.pages().await.len(), 1);
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    farm.probe(&lease).await.ok();
    drop(client);
    eventually("the lease expires after the client has left", TIMEOUT, async || {
        farm.http.get("/info", &[]).await.ok()["nodes"][0]["instances"] == json!([])
    })
    .await;
}

#[tokio::test]
async fn client_that_does_not_read_is_disconnected() {
    let webgym = serve("1").await;
    let farm = webgym.master();
    let lease = farm.get().await;
    let mut client = CdpClient::connect(&farm.cdp_url(&lease).await).await;
    let page = client.pages().await.remove(0);
    let session = client.attach(&page).await;
    client.ok(Some(&session), "Runtime.enable", json!({})).await;
    let flood = "setInterval(() => console.log('x'.repeat(1 << 20)), 1)";
    client.send(Some(&session), "Runtime.evaluate", &json!({"expression": flood})).await;
    let mut other = CdpClient::connect(&farm.cdp_url(&lease).await).await;
    eventually("the client has been disconnected", TIMEOUT, async || {
        farm.http.get("/metrics", &[]).await.text().contains("\nwebgym_cdp_connections 1\n")
    })
    .await;
    assert_eq!(other.pages().await, [page], "the other client of the lease is not affected");
}
