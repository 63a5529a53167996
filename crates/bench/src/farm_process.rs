//! A farm in its own process (`webgym serve` or `webgym master`), driven over HTTP with the client that collectors
//! use.

use std::{
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};

use client::{
    farm::{ClientError, FarmClient, FarmClientOptions, Lease, ObserveOptions},
    http::{Deadline, RetryPolicy},
};
use proto::{Command, ImageFormat, InteractionMode, SessionOptions};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command as Program},
};

use crate::BenchError;

const START_TIMEOUT: Duration = Duration::from_mins(3);
const CALL_TIMEOUT: Duration = Duration::from_mins(1);
const API_KEY: &str = "default_key";

/// How a step is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StepCalls {
    /// One call each for the command, the screenshot and the metadata.
    Separate,
    /// A single call of `/step`, with a screenshot in this format.
    Combined(ImageFormat),
}

pub(crate) struct FarmProcess {
    child: Child,
    pub(crate) pid: u32,
    pub(crate) client: FarmClient,
    session: SessionOptions,
    /// Time from the start of the process until all instances were ready.
    pub(crate) ready_after: Duration,
}

impl StepCalls {
    /// A single call, as collectors use it by default.
    pub(crate) const STEP: Self = Self::Combined(ImageFormat::Png);
}

impl From<ClientError> for BenchError {
    fn from(error: ClientError) -> Self {
        Self::Farm(error.to_string())
    }
}

impl FarmProcess {
    pub(crate) async fn start(webgym: &Path, chromium: &Path, instances: usize) -> Result<Self, BenchError> {
        Self::start_with(webgym, chromium, instances, &[]).await
    }

    /// Like [`Self::start`], with further arguments.
    pub(crate) async fn start_with(
        webgym: &Path,
        chromium: &Path,
        instances: usize,
        more: &[&str],
    ) -> Result<Self, BenchError> {
        let (chromium, instances) = (chromium.display().to_string(), instances.to_string());
        let arguments = "serve --master-port 0 --node-port 0 --allow-private-network --chromium";
        let arguments: Vec<&str> = arguments
            .split(' ')
            .chain([chromium.as_str(), instances.as_str()])
            .chain(more.iter().copied())
            .collect();
        Self::run(webgym, &arguments).await
    }

    /// Starts only a master for the given nodes.
    pub(crate) async fn master(webgym: &Path, nodes: &[&str]) -> Result<Self, BenchError> {
        let nodes = nodes.iter().flat_map(|node| ["--node", node]);
        let arguments: Vec<&str> = ["master", "--port", "0"].into_iter().chain(nodes).collect();
        Self::run(webgym, &arguments).await
    }

    async fn run(webgym: &Path, arguments: &[&str]) -> Result<Self, BenchError> {
        let start = Instant::now();
        let mut child = Program::new(webgym)
            .arg("-q")
            .args(arguments)
            .env_remove("WEBGYM_API_KEY")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| BenchError::Start {
                what: webgym.display().to_string(),
                reason: error.to_string(),
            })?;
        let url = tokio::time::timeout(START_TIMEOUT, wait_until_ready(&mut child)).await;
        let master = url.ok().flatten().ok_or_else(|| BenchError::Start {
            what: format!("{} {}", webgym.display(), arguments.join(" ")),
            reason: format!("it was not ready after {START_TIMEOUT:?}"),
        })?;
        let options = FarmClientOptions {
            operation_timeout: CALL_TIMEOUT,
            retry: RetryPolicy { max_retries: 0, ..RetryPolicy::default() },
            ..FarmClientOptions::default()
        };
        let client = FarmClient::new(&master, API_KEY, options)?;
        let pid = child.id().unwrap_or_default();
        Ok(Self { child, pid, client, session: SessionOptions::default(), ready_after: start.elapsed() })
    }

    /// Acquires leases with these options from now on.
    pub(crate) fn with_session(self, session: SessionOptions) -> Self {
        Self { session, ..self }
    }

    pub(crate) async fn acquire(&self) -> Result<Lease, BenchError> {
        let key = uuid::Uuid::new_v4().to_string();
        self.client
            .acquire(60, Some(60), &key, &self.session, Deadline::after(CALL_TIMEOUT))
            .await
            .map(|granted| granted.lease)
            .map_err(BenchError::from)
    }

    pub(crate) async fn release(&self, lease: &Lease) -> Result<(), BenchError> {
        self.client.release(lease, Deadline::after(CALL_TIMEOUT)).await.map_err(BenchError::from)
    }

    /// Runs one step and returns the size of its screenshot. A command that fails on the page, for example a click on
    /// nothing, counts as a step.
    pub(crate) async fn step(
        &self,
        lease: &Lease,
        command: &Command,
        calls: StepCalls,
        mode: InteractionMode,
    ) -> Result<usize, BenchError> {
        let deadline = Deadline::after(CALL_TIMEOUT);
        if let StepCalls::Combined(format) = calls {
            let options = ObserveOptions { format, ..ObserveOptions::for_step(mode) };
            let observed = self.client.step(lease, command, &options, deadline).await?;
            return Ok(observed.screenshot.map_or(0, |screenshot| screenshot.data.len()));
        }
        self.client.execute(lease, command, deadline).await?;
        let screenshot = self.client.screenshot(lease, mode, deadline).await?;
        if mode == InteractionMode::SetOfMarks {
            self.client.execute(lease, &Command::GetScreenshotInfo, deadline).await?;
        }
        self.client.page_metadata(lease, deadline).await?;
        Ok(screenshot.len())
    }

    /// Stops the process and waits until it has ended.
    pub(crate) async fn stop(mut self) -> Result<(), BenchError> {
        let signalled = Program::new("kill").args(["-TERM", &self.pid.to_string()]).status().await;
        let exited = tokio::time::timeout(Duration::from_mins(1), self.child.wait()).await;
        match (signalled, exited) {
            (Ok(_), Ok(Ok(_))) => Ok(()),
            _ => Err(BenchError::Farm("the process did not stop within a minute".into())),
        }
    }
}

/// Reads the JSON lines of the process until it is ready, and returns the URL of the master.
async fn wait_until_ready(child: &mut Child) -> Option<String> {
    let mut lines = BufReader::new(child.stdout.take()?).lines();
    let mut master = None;
    while let Ok(Some(line)) = lines.next_line().await {
        let Ok(event) = serde_json::from_str::<Value>(&line) else { continue };
        if event["event"] == "listening" && event["tier"] == "master" {
            master = event["url"].as_str().map(str::to_owned);
        }
        if event["event"] == "ready" {
            // Keep reading, so that the process can write its next lines.
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
            return master;
        }
    }
    None
}
