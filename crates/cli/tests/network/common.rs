//! A farm with archives, a site, and an episode on it.

use std::path::Path;

use serde_json::json;
use tempfile::TempDir;
use testkit::{
    Farm, Lease, Tier, TlsSite, Webgym,
    modern_site::{ModernSite, PASSWORD_SECRET},
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
        let (home, old, account) = (self.home.clone(), self.url("/old"), self.url("/account"));
        let acts = [
            Act::Visit(home.clone()),
            Act::Wait,
            Act::Click("More"),
            Act::Click("Ask"),
            Act::Click("Move"),
            Act::Click("More"),
            Act::Visit(old),
            Act::Visit(home),
            Act::Fill("Password", PASSWORD_SECRET),
            Act::Visit(account),
        ];
        run_episode(&self.farm, lease, &acts).await
    }
}

/// One action of an episode.
pub(crate) enum Act {
    Visit(String),
    /// Clicks an interactive element by its text.
    Click(&'static str),
    /// Fills a field by its name and submits.
    Fill(&'static str, &'static str),
    Wait,
}

/// What a page showed after an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) tree: String,
    pub(crate) text: String,
    pub(crate) metadata: String,
    pub(crate) screenshot: String,
}

pub(crate) async fn run_episode(farm: &Farm, lease: &Lease, acts: &[Act]) -> Vec<Shown> {
    let mut shown: Vec<Shown> = Vec::new();
    for act in acts {
        let tree = shown.last().map(|shown| shown.tree.clone()).unwrap_or_default();
        let command = match act {
            Act::Visit(url) => json!({"visit_page": {"url": url}}),
            Act::Click(name) => json!({"click_id": {"id": find(&tree, name)}}),
            Act::Fill(name, value) => {
                json!({"fill_id": {"id": find(&tree, name), "value": value, "press_enter": true}})
            }
            Act::Wait => json!({"sleep": {"duration": 1}}),
        };
        let body = json!({"command": command, "include": ["screenshot", "metadata", "ac_tree"], "interaction_mode": "set_of_marks"});
        let answer = farm.step(lease, body).await.ok();
        assert!(answer["error"].is_null(), "{command}: {}", answer["error"]);
        shown.push(Shown {
            tree: answer["ac_tree"].as_str().unwrap_or_default().to_owned(),
            text: farm.text(lease).await,
            metadata: answer["metadata"].to_string(),
            screenshot: answer["screenshot"].as_str().unwrap_or_default().to_owned(),
        });
    }
    shown
}

/// Returns the id of an element by its text.
fn find(tree: &str, name: &str) -> String {
    let line = tree.lines().find(|line| line.contains(&format!("text: {name}")));
    let line = line.unwrap_or_else(|| panic!("{name} is not in\n{tree}"));
    line.trim_start_matches("id: ").split(',').next().unwrap_or_default().to_owned()
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
