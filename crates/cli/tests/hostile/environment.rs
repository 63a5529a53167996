//! What the attacks share: a farm, the attacker's website, and helper functions.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use testkit::{Farm, Lease, RecordingServer, Served, Slots, Webgym, poll_until};

use crate::{TIMEOUT, WEBGYM};

/// A farm that closes idle connections after a few seconds.
const SHARED_FARM: &str = "-vv serve 8 --instances-per-browser 4 --idle-timeout 12 --allow-private-network";

pub(crate) struct Environment {
    pub(crate) webgym: Webgym,
    pub(crate) farm: Farm,
    pub(crate) site: RecordingServer,
    pages: AtomicUsize,
}

/// Starts `webgym` on free ports with these arguments.
pub(crate) async fn serve(arguments: &str) -> Webgym {
    let arguments = format!("{arguments} --master-port 0 --node-port 0");
    Webgym::start(WEBGYM, &arguments.split_whitespace().collect::<Vec<_>>()).await
}

impl Environment {
    pub(crate) async fn start() -> Arc<Self> {
        Self::with(SHARED_FARM).await
    }

    /// Starts a separate farm with these arguments.
    pub(crate) async fn with(arguments: &str) -> Arc<Self> {
        let webgym = serve(arguments).await;
        let farm = webgym.master();
        Arc::new(Self { webgym, farm, site: RecordingServer::start().await, pages: AtomicUsize::new(0) })
    }

    /// Stops the farm. If the attacks passed, first waits until every slot is free.
    pub(crate) async fn stop(env: Arc<Self>, passed: bool) {
        let env = Arc::into_inner(env).expect("all attacks have ended");
        if passed {
            Slots::wait_all_free(&env.webgym, &env.farm.http, TIMEOUT).await;
        }
        env.webgym.stop().await;
    }

    /// Puts a page on the attacker's site.
    pub(crate) fn page(&self, html: &str) -> String {
        let path = format!("/page-{}", self.pages.fetch_add(1, Ordering::Relaxed));
        self.site.serve(&path, Served::Page(format!("<!doctype html><meta charset=utf-8>{html}")));
        self.url(&path)
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.site.address)
    }

    /// Creates a page without any attack.
    pub(crate) fn plain_page(&self) -> String {
        self.page("<title>Plain</title><body>a plain page")
    }

    /// Leases a browser and opens a page.
    pub(crate) async fn lease_on(&self, url: &str) -> Lease {
        let lease = self.farm.get().await;
        self.farm.visit(&lease, url).await;
        lease
    }

    /// Waits until the page contains this text and returns its whole text.
    pub(crate) async fn wait_for_text(&self, lease: &Lease, text: &str) -> String {
        poll_until(&format!("the page contains {text:?}"), TIMEOUT, async || {
            let reply = self.farm.execute(lease, json!({"get_webpage_text": {"n_lines": 1000}})).await;
            let page = reply.json()["text"].as_str().unwrap_or_default().to_owned();
            page.contains(text).then_some(page)
        })
        .await
    }

    /// Checks that the lease still works: another page can be visited and read.
    pub(crate) async fn assert_usable(&self, lease: &Lease) {
        self.farm.visit(lease, &self.plain_page()).await;
        assert!(self.farm.text(lease).await.contains("a plain page"));
    }

    pub(crate) async fn page_url(&self, lease: &Lease) -> String {
        let page = self.farm.execute(lease, json!({"get_page_metadata": {}})).await.ok();
        page["url"].as_str().unwrap_or_default().to_owned()
    }
}

/// Awaits a future; panics if it takes longer than `limit`.
pub(crate) async fn within<T>(limit: Duration, what: &str, future: impl Future<Output = T>) -> T {
    let Ok(output) = tokio::time::timeout(limit, future).await else {
        panic!("not within {limit:?}: {what}")
    };
    output
}
