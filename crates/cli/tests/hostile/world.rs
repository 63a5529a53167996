//! What the attacks share: a farm, the attacker's own website, and the small moves they are made of.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use testkit::{Farm, Lease, RecordingServer, Served, Slots, Webgym, poll_until};

use crate::{SECONDS, WEBGYM};

/// A farm whose connections lose patience within seconds.
const SHARED: &str = "-vv serve 8 --instances-per-browser 4 --idle-timeout 12 --allow-private-network";

pub(crate) struct World {
    pub(crate) webgym: Webgym,
    pub(crate) farm: Farm,
    pub(crate) site: RecordingServer,
    pages: AtomicUsize,
}

/// `webgym` on free ports with these further words.
pub(crate) async fn serve(words: &str) -> Webgym {
    let words = format!("{words} --master-port 0 --node-port 0");
    Webgym::start(WEBGYM, &words.split_whitespace().collect::<Vec<_>>()).await
}

impl World {
    pub(crate) async fn start() -> Arc<Self> {
        Self::with(SHARED).await
    }

    /// The same around a farm of one's own.
    pub(crate) async fn with(words: &str) -> Arc<Self> {
        let webgym = serve(words).await;
        let farm = webgym.master();
        Arc::new(Self { webgym, farm, site: RecordingServer::start().await, pages: AtomicUsize::new(0) })
    }

    /// Whatever was tried: every slot is free again, and the farm ends in peace.
    pub(crate) async fn stop(world: Arc<Self>, well: bool) {
        let world = Arc::into_inner(world).expect("the attacks are over");
        if well {
            Slots::wait_all_free(&world.webgym, &world.farm.http, SECONDS).await;
        }
        world.webgym.stop().await;
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

    /// A quiet page with a button that counts.
    pub(crate) fn innocent(&self) -> String {
        self.page("<title>Innocent</title><body>an innocent page")
    }

    /// A lease with the page loaded in it.
    pub(crate) async fn visiting(&self, url: &str) -> Lease {
        let lease = self.farm.get().await;
        self.farm.visit(&lease, url).await;
        lease
    }

    /// Waits until the page says these words; gives all it says.
    pub(crate) async fn says(&self, lease: &Lease, words: &str) -> String {
        poll_until(&format!("the page says {words:?}"), SECONDS, async || {
            let reply = self.farm.execute(lease, json!({"get_webpage_text": {"n_lines": 1000}})).await;
            let text = reply.json()["text"].as_str().unwrap_or_default().to_owned();
            text.contains(words).then_some(text)
        })
        .await
    }

    /// The lease works as ever: its page answers, and another can be visited.
    pub(crate) async fn is_well(&self, lease: &Lease) {
        self.farm.visit(lease, &self.innocent()).await;
        assert!(self.farm.text(lease).await.contains("an innocent page"));
    }

    pub(crate) async fn address_of(&self, lease: &Lease) -> String {
        let page = self.farm.execute(lease, json!({"get_page_metadata": {}})).await.ok();
        page["url"].as_str().unwrap_or_default().to_owned()
    }
}

/// How long something took, which must be less than this.
pub(crate) async fn within<T>(limit: Duration, what: &str, doing: impl Future<Output = T>) -> T {
    let Ok(done) = tokio::time::timeout(limit, doing).await else { panic!("not within {limit:?}: {what}") };
    done
}
