//! `webgym env` with real Chromium and the practice sites: episodes, protocol errors, limits and lost clients.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed helper fails its test")]

mod access;
mod episodes;
mod limits;
mod mcp;
mod protocol;
mod saving;

use std::time::Duration;

use practice::Sites;
use serde_json::json;
use tempfile::TempDir;
use testkit::{EnvClient, Http, Webgym, eventually};

const LIMIT: Duration = Duration::from_secs(30);

/// A server with two tasks on the practice sites, whose answers are 42.
struct Server {
    webgym: Webgym,
    _sites: Sites,
    _folder: TempDir,
}

impl Server {
    /// Starts a server with one browser of its own.
    async fn start(more: &[&str]) -> Self {
        Self::start_on(&["--instances=1", "--allow-private-network"], more).await
    }

    /// Starts a server on the farm that the arguments name.
    async fn start_on(farm: &[&str], more: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let sites = Sites::start("127.0.0.1:0".parse().unwrap()).unwrap();
        let task = |id: &str, path: &str| {
            json!({
                "task_id": id, "task_name": format!("look at {id}"), "website": sites.url(path), "domain": "d",
                "subdomain": "s", "difficulty": 1, "evaluator_reference": ["seen"], "definite_answer": "42",
            })
            .to_string()
        };
        let prepared = json!({
            "task_id": "button", "task_name": "press the button", "website": sites.url("/course/arrived"), "domain": "d",
            "subdomain": "s", "difficulty": 1, "evaluator_reference": ["pressed"],
            "setup": "document.body.innerHTML = '<button onclick=\"window.pressed = true\">Press</button>'",
            "judge": {"javascript": "window.pressed === true"},
        });
        let file = folder.path().join("tasks.jsonl");
        std::fs::write(
            &file,
            [task("shop", "/shop/"), task("wiki", "/wiki/"), prepared.to_string()].join("\n"),
        )
        .unwrap();
        let file = file.display().to_string();
        let fixed = ["env", "--port=0", "--tasks", &file];
        let arguments: Vec<&str> = fixed.iter().chain(farm).chain(more).copied().collect();
        let webgym = Webgym::start(env!("CARGO_BIN_EXE_webgym"), &arguments).await;
        Self { webgym, _sites: sites, _folder: folder }
    }

    fn url(&self) -> String {
        self.webgym.url("env")
    }

    fn http(&self) -> Http {
        Http::new(&self.url(), None)
    }

    async fn client(&self) -> EnvClient {
        EnvClient::connect(&self.url()).await
    }

    async fn metric(&self, name: &str) -> i64 {
        let text = self.http().get("/metrics", &[]).await.text();
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("webgym_env_{name} ")));
        line.unwrap_or_else(|| panic!("no metric {name} in {text}")).parse().unwrap()
    }

    /// Waits until no episode holds a browser.
    async fn wait_until_released(&self) {
        eventually("every lease is released", LIMIT, async || self.metric("active_sessions").await == 0)
            .await;
    }
}
