//! The real `webgym` as a child process: started on free ports, followed through its machine-readable events, killed
//! on drop.

use std::{
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, ChildStdout, Command},
    task::JoinHandle,
};

use crate::{
    audit_log::AuditEntry,
    eventually::{eventually, poll_until},
    farm::{Farm, Tier},
    process::{Browser, browsers_of, is_stopped, processes_naming, signal},
};

/// Starting a few browsers takes a second or two, and much longer on a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(90);
const MAX_LOG_LINES: usize = 400;
const LOG_DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// The address of a tier.
#[derive(Clone, Debug)]
pub struct Listening {
    pub tier: String,
    pub url: String,
    pub port: u16,
}

pub struct Webgym {
    child: Child,
    pid: u32,
    out: tokio::io::Lines<BufReader<ChildStdout>>,
    listening: Vec<Listening>,
    log: Arc<Mutex<Vec<String>>>,
    audit_log: Arc<Mutex<Vec<AuditEntry>>>,
    log_reader: JoinHandle<()>,
    command: String,
    folder: TempDir,
}

impl Webgym {
    /// Starts it without waiting. `program` is the path of the binary.
    pub fn spawn(program: impl AsRef<Path>, arguments: &[&str]) -> Self {
        Self::spawn_with(program, arguments, &[])
    }

    /// Like [`Webgym::spawn`], with these environment variables.
    pub fn spawn_with(program: impl AsRef<Path>, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        Self::spawn_on(&[], program, arguments, variables)
    }

    /// Like [`Webgym::spawn_with`], behind a command prefix that selects the host.
    pub fn spawn_on(
        launcher: &[String],
        program: impl AsRef<Path>,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        let program: PathBuf = program.as_ref().to_owned();
        let folder = TempDir::with_prefix("wg-").expect("a folder");
        let mut command = match launcher.split_first() {
            Some((first, rest)) => {
                let mut command = Command::new(first);
                command.args(rest).arg(&program);
                command
            }
            None => Command::new(&program),
        };
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.env_remove("WEBGYM_API_KEY").env("TMPDIR", folder.path()).envs(variables.iter().copied());
        command.kill_on_drop(true);
        let mut child =
            command.spawn().unwrap_or_else(|error| panic!("{} does not start: {error}", program.display()));
        let pid = child.id().expect("it has just been started");
        let out = BufReader::new(child.stdout.take().expect("piped")).lines();
        let log: Arc<Mutex<Vec<String>>> = Arc::default();
        let audit_log: Arc<Mutex<Vec<AuditEntry>>> = Arc::default();
        let (lines, entries) = (Arc::clone(&log), Arc::clone(&audit_log));
        let mut err = BufReader::new(child.stderr.take().expect("piped")).lines();
        let log_reader = tokio::spawn(async move {
            while let Ok(Some(line)) = err.next_line().await {
                if let Some(entry) = AuditEntry::parse(&line) {
                    entries.lock().unwrap().push(entry);
                    continue;
                }
                let mut lines = lines.lock().unwrap();
                lines.push(line);
                if lines.len() > MAX_LOG_LINES {
                    lines.remove(0);
                }
            }
        });
        let command = format!("webgym {}", arguments.join(" "));
        Self { child, pid, out, listening: Vec::new(), log, audit_log, log_reader, command, folder }
    }

    /// Starts it and waits for its `ready` event.
    pub async fn start(program: impl AsRef<Path>, arguments: &[&str]) -> Self {
        let mut webgym = Self::spawn(program, arguments);
        webgym.wait_for_event("ready").await;
        webgym
    }

    /// Reads events up to the first one of this name and records the addresses of its tiers on the way.
    pub async fn wait_for_event(&mut self, event: &str) -> Value {
        let end = Instant::now() + START_TIMEOUT;
        loop {
            let line = tokio::time::timeout_at(end.into(), self.out.next_line()).await;
            let line = match line {
                Ok(Ok(Some(line))) => line,
                Ok(_) => panic!("{} exited before its event {event:?}:\n{}", self.command, self.log()),
                Err(tokio::time::error::Elapsed { .. }) => {
                    panic!("{}: no event {event:?} within {START_TIMEOUT:?}:\n{}", self.command, self.log())
                }
            };
            let message: Value =
                serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"));
            if message["event"] == "listening" {
                self.listening.push(Listening {
                    tier: message["tier"].as_str().expect("a tier").to_owned(),
                    url: message["url"].as_str().expect("an address").to_owned(),
                    port: message["port"].as_u64().and_then(|port| u16::try_from(port).ok()).expect("a port"),
                });
            }
            if message["event"] == event {
                return message;
            }
        }
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    pub fn listening(&self) -> &[Listening] {
        &self.listening
    }

    pub fn url(&self, tier: &str) -> String {
        let found = self.listening.iter().find(|listening| listening.tier == tier);
        found.unwrap_or_else(|| panic!("{} has no {tier}", self.command)).url.clone()
    }

    fn farm(&self, tier: Tier, name: &str) -> Farm {
        Farm::new(tier, &self.url(name))
    }

    pub fn master(&self) -> Farm {
        self.farm(Tier::Master, "master")
    }

    pub fn node(&self) -> Farm {
        self.farm(Tier::Node, "node")
    }

    pub fn instance(&self) -> Farm {
        self.farm(Tier::Instance, "instance")
    }

    pub fn browsers(&self) -> Vec<Browser> {
        browsers_of(self.pid)
    }

    /// Returns the folder for its temporary files and those of its browsers.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns what it left behind after its exit: files, and processes that refer to them.
    pub fn leftovers(&self) -> Vec<String> {
        let folder = self.folder.path();
        let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let files = files.map(|entry| entry.path().display().to_string());
        files.chain(processes_naming(&folder.to_string_lossy())).collect()
    }

    /// Waits until no files and no processes of it are left.
    pub async fn assert_no_leftovers(&self, limit: Duration) {
        let end = Instant::now() + limit;
        loop {
            let left = self.leftovers();
            if left.is_empty() {
                return;
            }
            assert!(Instant::now() < end, "{} left behind after {limit:?}: {left:#?}", self.command);
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    }

    /// Returns what it has written to standard error so far, without audit entries.
    pub fn log(&self) -> String {
        self.log.lock().unwrap().join("\n")
    }

    /// Returns its audit log so far; see [`crate::AuditLog`].
    pub fn audit_log(&self) -> Vec<AuditEntry> {
        self.audit_log.lock().unwrap().clone()
    }

    /// Returns its complete audit log after its exit.
    pub async fn final_audit_log(&mut self) -> Vec<AuditEntry> {
        let read = tokio::time::timeout(Duration::from_secs(30), &mut self.log_reader).await;
        assert!(read.is_ok(), "{} did not close its standard error", self.command);
        let mut entries = self.audit_log();
        entries.push(AuditEntry::ProcessEnded);
        entries
    }

    pub fn signal(&self, number: Signal) {
        signal(self.pid, number);
    }

    /// Sends SIGSTOP and waits until every thread is stopped.
    pub async fn freeze(&self) {
        self.signal(Signal::STOP);
        let what = format!("{} is stopped", self.command);
        eventually(&what, Duration::from_secs(30), async || is_stopped(self.pid)).await;
    }

    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Waits until it logs the URL of the run's monitor, and returns that URL.
    pub async fn monitor_url(&self) -> String {
        let link = || {
            let log = self.log();
            let line = log.lines().find(|line| line.contains("watch this run at"))?;
            line.split_whitespace().last().map(str::to_owned)
        };
        poll_until("it logs the URL of its monitor", START_TIMEOUT, async || link()).await
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_none())
    }

    pub async fn wait_for_exit(&mut self, limit: Duration) -> ExitStatus {
        let Ok(status) = tokio::time::timeout(limit, self.child.wait()).await else {
            panic!("{} did not exit within {limit:?}:\n{}", self.command, self.log())
        };
        // Its last log lines may still be in the pipe, which its children may keep open longer.
        let end = Instant::now() + LOG_DRAIN_TIMEOUT;
        while !self.log_reader.is_finished() && Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        status.expect("waiting for a child process succeeds")
    }

    /// Sends SIGTERM and checks that it exits with status 0.
    pub async fn stop(mut self) {
        self.signal(Signal::TERM);
        let status = self.wait_for_exit(Duration::from_secs(45)).await;
        assert_eq!(status.code(), Some(0), "{} failed:\n{}", self.command, self.log());
    }
}

impl Drop for Webgym {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- log of {}:\n{}\n---", self.command, self.log());
        }
    }
}
