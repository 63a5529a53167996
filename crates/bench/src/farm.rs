//! A farm under load: a `webgym serve` in a process of its own, driven over HTTP by the client that collectors use.

use std::{
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};

use client::{
    farm::{ClientError, FarmClient, FarmOptions, Lease, ObserveOptions},
    http::{Deadline, RetryPolicy},
};
use proto::{Command, InteractionMode};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command as Program},
};

use crate::BenchError;

const START_LIMIT: Duration = Duration::from_secs(180);
const CALL_LIMIT: Duration = Duration::from_secs(60);
const KEY: &str = "default_key";

/// How a step is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Screenshot, metadata and command, each a call.
    Plain,
    /// All in one `/step`.
    OneTrip,
}

pub(crate) struct Farm {
    child: Child,
    pub(crate) pid: u32,
    pub(crate) client: FarmClient,
    /// From the start of the program until it said that all instances are up.
    pub(crate) ready_after: Duration,
}

fn failed(error: ClientError) -> BenchError {
    BenchError::Farm(error.to_string())
}

impl Farm {
    pub(crate) async fn start(webgym: &Path, chromium: &Path, instances: usize) -> Result<Self, BenchError> {
        let (chromium, instances) = (chromium.display().to_string(), instances.to_string());
        let words = "serve --master-port 0 --node-port 0 --allow-private-network --chromium";
        let words: Vec<&str> = words.split(' ').chain([chromium.as_str(), instances.as_str()]).collect();
        Self::run(webgym, &words).await
    }

    /// A master alone, for nodes elsewhere.
    pub(crate) async fn master(webgym: &Path, nodes: &[&str]) -> Result<Self, BenchError> {
        let nodes = nodes.iter().flat_map(|node| ["--node", node]);
        let words: Vec<&str> = ["master", "--port", "0"].into_iter().chain(nodes).collect();
        Self::run(webgym, &words).await
    }

    async fn run(webgym: &Path, words: &[&str]) -> Result<Self, BenchError> {
        let begun = Instant::now();
        let mut child = Program::new(webgym)
            .arg("-q")
            .args(words)
            .env_remove("WEBGYM_API_KEY")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| BenchError::Start {
                what: webgym.display().to_string(),
                why: error.to_string(),
            })?;
        let told = tokio::time::timeout(START_LIMIT, master_of(&mut child)).await;
        let master = told.ok().flatten().ok_or_else(|| BenchError::Start {
            what: format!("{} {}", webgym.display(), words.join(" ")),
            why: format!("it was not ready after {START_LIMIT:?}"),
        })?;
        let options = FarmOptions {
            operation_timeout: CALL_LIMIT,
            retry: RetryPolicy { max_retries: 0, ..RetryPolicy::default() },
            ..FarmOptions::default()
        };
        let client = FarmClient::new(&master, KEY, options).map_err(failed)?;
        let pid = child.id().unwrap_or_default();
        Ok(Self { child, pid, client, ready_after: begun.elapsed() })
    }

    pub(crate) async fn get(&self) -> Result<Lease, BenchError> {
        let key = uuid::Uuid::new_v4().to_string();
        self.client.acquire(60, Some(60), &key, Deadline::after(CALL_LIMIT)).await.map_err(failed)
    }

    pub(crate) async fn reset(&self, lease: &Lease) -> Result<(), BenchError> {
        self.client.release(lease, Deadline::after(CALL_LIMIT)).await.map_err(failed)
    }

    /// One step; a command that its page refuses (nothing to click there) is a step all the same.
    pub(crate) async fn step(
        &self,
        lease: &Lease,
        command: &Command,
        dialect: Dialect,
        mode: InteractionMode,
    ) -> Result<usize, BenchError> {
        let deadline = Deadline::after(CALL_LIMIT);
        let look = ObserveOptions::whole(mode);
        if dialect == Dialect::OneTrip {
            let seen = self.client.step(lease, command, &look, deadline).await.map_err(failed)?;
            return Ok(seen.screenshot.map_or(0, |picture| picture.data.len()));
        }
        self.client.execute(lease, command, deadline).await.map_err(failed)?;
        let picture = self.client.screenshot(lease, mode, deadline).await.map_err(failed)?;
        if mode == InteractionMode::SetOfMarks {
            self.client.execute(lease, &Command::GetScreenshotInfo, deadline).await.map_err(failed)?;
        }
        self.client.page_metadata(lease, deadline).await.map_err(failed)?;
        Ok(picture.len())
    }

    /// Asks it to stop and waits until it has.
    pub(crate) async fn stop(mut self) -> Result<(), BenchError> {
        let asked = Program::new("kill").args(["-TERM", &self.pid.to_string()]).status().await;
        let ended = tokio::time::timeout(Duration::from_secs(60), self.child.wait()).await;
        match (asked, ended) {
            (Ok(_), Ok(Ok(_))) => Ok(()),
            _ => Err(BenchError::Farm("it did not stop within a minute".into())),
        }
    }
}

/// Reads its machine-readable lines until it is ready; answers with the master's address.
async fn master_of(child: &mut Child) -> Option<String> {
    let mut lines = BufReader::new(child.stdout.take()?).lines();
    let mut master = None;
    while let Ok(Some(line)) = lines.next_line().await {
        let Ok(told) = serde_json::from_str::<Value>(&line) else { continue };
        if told["event"] == "listening" && told["tier"] == "master" {
            master = told["url"].as_str().map(str::to_owned);
        }
        if told["event"] == "ready" {
            // Somebody has to go on reading, or its next line would find nobody.
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
            return master;
        }
    }
    None
}
