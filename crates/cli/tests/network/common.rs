//! A farm with archives, a site, and an episode on it.

use std::path::Path;

use serde_json::json;
use tempfile::TempDir;
use testkit::{
    Farm, Lease, Tier, TlsSite, Webgym,
    episode::{Shown, modern_episode, run_episode},
    modern_site::ModernSite,
};

pub(crate) const WEBGYM: &str = env!("CARGO_BIN_EXE_webgym");

/// A farm, its archives, and the modern site.
pub(crate) struct World {
    pub(crate) site: ModernSite,
    /// `None` once it is closed.
    pub(crate) server: Option<TlsSite>,
    pub(crate) archives: TempDir,
    home: String,
    _process: Webgym,
    pub(crate) farm: Farm,
}

impl World {
    pub(crate) async fn start() -> Self {
        let site = ModernSite::default();
        let server = TlsSite::start("shop.localhost", site.router()).await;
        let archives = tempfile::tempdir().unwrap();
        let (process, farm) =
            start_farm(archives.path(), &server.authority(), "--allow-private-network").await;
        let home = server.url("/");
        Self { site, server: Some(server), archives, home, _process: process, farm }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{}", self.home, path.trim_start_matches('/'))
    }

    /// Records the episode into an archive. Returns what it showed.
    pub(crate) async fn record(&self, archive: &str) -> Vec<Shown> {
        let lease = self.farm.get_with(&json!({"network": {"record": archive}})).await;
        let shown = self.episode(&lease).await;
        self.farm.reset(&lease).await.ok();
        self.wait_until_recorded(archive).await;
        shown
    }

    /// The lease is disposed of in the background, and with it the recording ends.
    pub(crate) async fn wait_until_recorded(&self, archive: &str) {
        let folder = self.archives.path().join(archive);
        testkit::eventually("the archive has its streams", std::time::Duration::from_secs(60), async || {
            let archive = replay::Archive::open(&folder, replay::ArchiveOptions::default());
            let has = |part: &str| {
                archive.as_ref().is_ok_and(|archive| {
                    archive
                        .exchanges()
                        .iter()
                        .any(|stored| stored.request.url.contains(part) && !stored.frames.is_empty())
                })
            };
            has("/live") && has("/events")
        })
        .await;
    }

    /// Ten steps on the site. Returns what each showed.
    pub(crate) async fn episode(&self, lease: &Lease) -> Vec<Shown> {
        run_episode(&self.farm, lease, &modern_episode(&self.home)).await
    }
}

/// Starts a farm that trusts the authority of a site.
pub(crate) async fn start_farm(archives: &Path, authority: &Path, more: &str) -> (Webgym, Farm) {
    let archives = archives.display().to_string();
    let mut arguments = vec!["serve", "4", "--master-port", "0", "--node-port", "0", "--archives", &archives];
    arguments.extend(more.split_whitespace());
    let authority = authority.display().to_string();
    let mut process = Webgym::spawn_with(WEBGYM, &arguments, &[("SSL_CERT_FILE", &authority)]);
    process.wait_for_event("ready").await;
    let url = process.listening().iter().find(|one| one.tier == "master").unwrap().url.clone();
    (process, Farm::new(Tier::Master, &url))
}
