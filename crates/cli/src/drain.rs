//! `webgym drain`: tells a node to give no new leases, at the node itself or through a master, and waits for those
//! it has if asked to.

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
    /// The node's address, as the master's /info shows it: http://HOST:PORT. With --master the host's name or the
    /// node's id is enough where only one node has it.
    node: String,
    /// Ask this master to tell the node, instead of the node itself.
    #[arg(long, value_name = "URL")]
    master: Option<String>,
    /// Give leases there again.
    #[arg(long, conflicts_with = "wait")]
    undo: bool,
    /// Wait at most so long until no lease is held there any more.
    #[arg(long, value_name = "SECONDS")]
    wait: Option<u64>,
    /// The farm's key.
    #[arg(long, env = "WEBGYM_API_KEY", hide_env_values = true, default_value = DEFAULT_KEY, hide_default_value = true)]
    api_key: String,
}

const LIMIT: Duration = Duration::from_secs(15);
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Whoever is asked: a node, or a master for one.
struct Door {
    client: Client,
    base: String,
    key: String,
    /// The node's hash, where a master is asked.
    node: Option<String>,
}

pub(crate) async fn run(args: &DrainArgs) -> anyhow::Result<ExitCode> {
    let door = Door::open(args).await?;
    let (path, says) = if args.undo { ("/undrain", "gives leases again") } else { ("/drain", "is draining") };
    let told = door.ask("POST", path).await?;
    let mut held = told["in_use"].as_u64().unwrap_or_default();
    println!("{} {says}; leases held there: {held}", door.name());
    let Some(limit) = args.wait.map(Duration::from_secs) else { return Ok(ExitCode::SUCCESS) };
    let until = Instant::now() + limit;
    while held > 0 {
        if Instant::now() >= until {
            bail!("{held} leases are still held on {} after {} s", door.name(), limit.as_secs());
        }
        tokio::time::sleep(LOOK_EVERY).await;
        // Draining what drains only tells how far it is.
        held = door.ask("POST", path).await?["in_use"].as_u64().unwrap_or_default();
    }
    println!("{} holds no lease any more", door.name());
    Ok(ExitCode::SUCCESS)
}

impl Door {
    async fn open(args: &DrainArgs) -> anyhow::Result<Self> {
        let base = args.master.as_deref().unwrap_or(&args.node).trim_end_matches('/').to_owned();
        if !base.starts_with("http://") && !base.starts_with("https://") {
            bail!(
                "{base:?} is not an address like http://10.0.0.5:8080; give the node's address, or --master and its name"
            );
        }
        let client = http::client(&base).map_err(anyhow::Error::msg)?;
        let mut door = Self { client, base, key: args.api_key.clone(), node: None };
        if args.master.is_some() {
            let info = door.ask("GET", "/info").await?;
            door.node = Some(find(&info, &args.node)?);
        }
        Ok(door)
    }

    fn name(&self) -> &str {
        self.node.as_deref().unwrap_or(&self.base)
    }

    async fn ask(&self, method: &str, path: &str) -> anyhow::Result<Value> {
        let url = format!("{}{path}", self.base);
        let request = if method == "GET" { self.client.get(&url) } else { self.client.post(&url) };
        let request = request.header("x-api-key", &self.key).timeout(LIMIT);
        let request = match &self.node {
            Some(node) => request.query(&[("node", node)]),
            None => request,
        };
        let answer = request.send().await.with_context(|| format!("{} does not answer", self.base))?;
        let status = answer.status();
        let body: Value = serde_json::from_slice(&answer.bytes().await?).unwrap_or_default();
        if status.is_success() {
            return Ok(body);
        }
        let detail = body["detail"].as_str().map_or_else(|| status.to_string(), str::to_owned);
        bail!("{} refused {path}: {detail}", self.base)
    }
}

/// The one node of a master that is meant: by address, by host, by id.
fn find(info: &Value, wanted: &str) -> anyhow::Result<String> {
    let nodes = info["nodes"].as_array().cloned().unwrap_or_default();
    let hash = |node: &Value| node["hash"].as_str().unwrap_or_default().to_owned();
    let all: Vec<String> = nodes.iter().map(hash).collect();
    let wanted = wanted.trim_end_matches('/');
    if let Some(exact) = all.iter().find(|one| *one == wanted) {
        return Ok(exact.clone());
    }
    let means = |node: &&Value| {
        let address = hash(node);
        let address = address.split_once("://").map_or(address.as_str(), |(_, rest)| rest);
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        address == wanted || host == wanted || node["id"].as_str() == Some(wanted)
    };
    let found: Vec<String> = nodes.iter().filter(means).map(hash).collect();
    match found.as_slice() {
        [one] => Ok(one.clone()),
        [] => bail!("the master knows no node {wanted:?}; it knows {}", all.join(", ")),
        several => bail!("{wanted:?} may be any of {}; give its address", several.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_node_is_found_by_what_people_call_it() {
        let info = json!({"nodes": [
            {"hash": "http://10.0.0.5:8080", "id": "alpha-1"}, {"hash": "http://10.0.0.6:8080", "id": "beta-1"},
            {"hash": "http://10.0.0.6:8081"},
        ]});
        let found = |wanted: &str| find(&info, wanted).map_err(|error| error.to_string());
        for name in ["http://10.0.0.5:8080", "http://10.0.0.5:8080/", "10.0.0.5:8080", "10.0.0.5", "alpha-1"]
        {
            assert_eq!(found(name).as_deref(), Ok("http://10.0.0.5:8080"), "{name}");
        }
        assert!(found("10.0.0.6").unwrap_err().contains("http://10.0.0.6:8081"));
        assert!(found("gamma").unwrap_err().contains("knows no node \"gamma\""));
    }
}
