//! `webgym drain`: stops a node from granting new leases, directly or through a master, and optionally waits until its
//! leases have ended.

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use clap::Args;
use client::http::{self, Client};
use farm::DEFAULT_KEY;
use serde_json::Value;

#[derive(Args)]
pub(crate) struct DrainArgs {
    /// The node's URL as in the master's /info: http://HOST:PORT. With --master, a host name or a node id that only one
    /// node has is enough.
    node: String,
    /// Send the request through this master instead of to the node.
    #[arg(long, value_name = "URL")]
    master: Option<String>,
    /// Let the node grant leases again.
    #[arg(long, conflicts_with = "wait")]
    undo: bool,
    /// Wait until the node has no leases, at most this long.
    #[arg(long, value_name = "SECONDS")]
    wait: Option<u64>,
    /// The API key of the farm.
    #[arg(long, env = "WEBGYM_API_KEY", hide_env_values = true, default_value = DEFAULT_KEY, hide_default_value = true)]
    api_key: String,
}

const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The server that gets the requests: the node itself, or a master that forwards them.
struct Target {
    client: Client,
    base: String,
    key: String,
    /// The node's hash if the requests go through a master.
    node: Option<String>,
}

pub(crate) async fn run(args: &DrainArgs) -> anyhow::Result<ExitCode> {
    let target = Target::connect(args).await?;
    let (path, state) =
        if args.undo { ("/undrain", "grants leases again") } else { ("/drain", "is draining") };
    let response = target.send("POST", path).await?;
    let mut held = response["in_use"].as_u64().unwrap_or_default();
    println!("{} {state}; leases held there: {held}", target.name());
    let Some(limit) = args.wait.map(Duration::from_secs) else { return Ok(ExitCode::SUCCESS) };
    let until = Instant::now() + limit;
    while held > 0 {
        if Instant::now() >= until {
            bail!("{held} leases are still held on {} after {} s", target.name(), limit.as_secs());
        }
        tokio::time::sleep(POLL_INTERVAL).await;
        // Draining again changes nothing and returns the remaining leases.
        held = target.send("POST", path).await?["in_use"].as_u64().unwrap_or_default();
    }
    println!("{} has no leases left", target.name());
    Ok(ExitCode::SUCCESS)
}

impl Target {
    async fn connect(args: &DrainArgs) -> anyhow::Result<Self> {
        let base = args.master.as_deref().unwrap_or(&args.node).trim_end_matches('/').to_owned();
        if !base.starts_with("http://") && !base.starts_with("https://") {
            bail!(
                "{base:?} is not a URL like http://10.0.0.5:8080; give the node's URL, or --master and the node's name"
            );
        }
        let client = http::client(&base).map_err(anyhow::Error::msg)?;
        let mut target = Self { client, base, key: args.api_key.clone(), node: None };
        if args.master.is_some() {
            let info = target.send("GET", "/info").await?;
            target.node = Some(find_node(&info, &args.node)?);
        }
        Ok(target)
    }

    fn name(&self) -> &str {
        self.node.as_deref().unwrap_or(&self.base)
    }

    async fn send(&self, method: &str, path: &str) -> anyhow::Result<Value> {
        let url = format!("{}{path}", self.base);
        let request = if method == "GET" { self.client.get(&url) } else { self.client.post(&url) };
        let request = request.header("x-api-key", &self.key).timeout(REQUEST_TIMEOUT);
        let request = match &self.node {
            Some(node) => request.query(&[("node", node)]),
            None => request,
        };
        let response = request.send().await.with_context(|| format!("{} does not respond", self.base))?;
        let status = response.status();
        let body: Value = serde_json::from_slice(&response.bytes().await?).unwrap_or_default();
        if status.is_success() {
            return Ok(body);
        }
        let detail = body["detail"].as_str().map_or_else(|| status.to_string(), str::to_owned);
        bail!("{} refused {path}: {detail}", self.base)
    }
}

/// Finds a node of a master by URL, host or id.
fn find_node(info: &Value, wanted: &str) -> anyhow::Result<String> {
    let nodes = info["nodes"].as_array().cloned().unwrap_or_default();
    let hash = |node: &Value| node["hash"].as_str().unwrap_or_default().to_owned();
    let all: Vec<String> = nodes.iter().map(hash).collect();
    let wanted = wanted.trim_end_matches('/');
    if let Some(exact) = all.iter().find(|one| *one == wanted) {
        return Ok(exact.clone());
    }
    let matches = |node: &&Value| {
        let address = hash(node);
        let address = address.split_once("://").map_or(address.as_str(), |(_, rest)| rest);
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        address == wanted || host == wanted || node["id"].as_str() == Some(wanted)
    };
    let found: Vec<String> = nodes.iter().filter(matches).map(hash).collect();
    match found.as_slice() {
        [one] => Ok(one.clone()),
        [] => bail!("the master knows no node {wanted:?}; it knows {}", all.join(", ")),
        several => bail!("{wanted:?} matches several nodes: {}; give the URL", several.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn node_is_found_by_url_host_or_id() {
        let info = json!({"nodes": [
            {"hash": "http://10.0.0.5:8080", "id": "alpha-1"}, {"hash": "http://10.0.0.6:8080", "id": "beta-1"},
            {"hash": "http://10.0.0.6:8081"},
        ]});
        let found = |wanted: &str| find_node(&info, wanted).map_err(|error| error.to_string());
        for name in ["http://10.0.0.5:8080", "http://10.0.0.5:8080/", "10.0.0.5:8080", "10.0.0.5", "alpha-1"]
        {
            assert_eq!(found(name).as_deref(), Ok("http://10.0.0.5:8080"), "{name}");
        }
        assert!(found("10.0.0.6").unwrap_err().contains("http://10.0.0.6:8081"));
        assert!(found("gamma").unwrap_err().contains("knows no node \"gamma\""));
    }
}
