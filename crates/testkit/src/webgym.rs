//! The real `webgym` as a child process: started on free ports, heard through its machine-readable lines, ended
//! when dropped.

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
    eventually::{eventually, poll_until},
    farm::{Farm, Tier},
    history::Entry,
    process::{Browser, browsers_of, processes_naming, signal, stands_still},
};

/// Starting a few browsers takes a second or two; on a machine that also builds, rather more.
const START_LIMIT: Duration = Duration::from_secs(90);
const MOST_WORDS: usize = 400;
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Where a tier listens.
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
    words: Arc<Mutex<Vec<String>>>,
    ledger: Arc<Mutex<Vec<Entry>>>,
    reading: JoinHandle<()>,
    command: String,
    folder: TempDir,
}

impl Webgym {
    /// Starts it and returns at once. `program` is the path of the binary.
    pub fn spawn(program: impl AsRef<Path>, arguments: &[&str]) -> Self {
        Self::spawn_with(program, arguments, &[])
    }

    /// The same with these environment variables.
    pub fn spawn_with(program: impl AsRef<Path>, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        Self::spawn_on(&[], program, arguments, variables)
    }

    /// The same on another host: behind the words that lead there and become the program.
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
        let words: Arc<Mutex<Vec<String>>> = Arc::default();
        let ledger: Arc<Mutex<Vec<Entry>>> = Arc::default();
        let (heard, written) = (Arc::clone(&words), Arc::clone(&ledger));
        let mut err = BufReader::new(child.stderr.take().expect("piped")).lines();
        let reading = tokio::spawn(async move {
            while let Ok(Some(line)) = err.next_line().await {
                if let Some(entry) = Entry::read(&line) {
                    written.lock().unwrap().push(entry);
                    continue;
                }
                let mut words = heard.lock().unwrap();
                words.push(line);
                if words.len() > MOST_WORDS {
                    words.remove(0);
                }
            }
        });
        let command = format!("webgym {}", arguments.join(" "));
        Self { child, pid, out, listening: Vec::new(), words, ledger, reading, command, folder }
    }

    /// Starts it and waits until it says that it is ready.
    pub async fn start(program: impl AsRef<Path>, arguments: &[&str]) -> Self {
        let mut webgym = Self::spawn(program, arguments);
        webgym.until("ready").await;
        webgym
    }

    /// Reads its lines up to the first of this event, taking note of what listens where.
    pub async fn until(&mut self, event: &str) -> Value {
        let end = Instant::now() + START_LIMIT;
        loop {
            let line = tokio::time::timeout_at(end.into(), self.out.next_line()).await;
            let line = match line {
                Ok(Ok(Some(line))) => line,
                Ok(_) => panic!("{} ended before it was {event}:\n{}", self.command, self.log()),
                Err(_) => panic!("{} is not {event} after {START_LIMIT:?}:\n{}", self.command, self.log()),
            };
            let told: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"));
            if told["event"] == "listening" {
                self.listening.push(Listening {
                    tier: told["tier"].as_str().expect("a tier").to_owned(),
                    url: told["url"].as_str().expect("an address").to_owned(),
                    port: told["port"].as_u64().and_then(|port| u16::try_from(port).ok()).expect("a port"),
                });
            }
            if told["event"] == event {
                return told;
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
        let found = self.listening.iter().find(|one| one.tier == tier);
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

    /// Where it and its browsers put their files.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What is left of it once it has ended: files, and processes that were started on them.
    pub fn leftovers(&self) -> Vec<String> {
        let folder = self.folder.path();
        let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let files = files.map(|entry| entry.path().display().to_string());
        files.chain(processes_naming(&folder.to_string_lossy())).collect()
    }

    /// Waits until nothing is left of it.
    pub async fn leaves_nothing(&self, limit: Duration) {
        let what = format!("{} leaves nothing", self.command);
        let mut left = Vec::new();
        eventually(&what, limit, async || {
            left = self.leftovers();
            left.is_empty()
        })
        .await;
    }

    /// What it has written to standard error so far.
    pub fn log(&self) -> String {
        self.words.lock().unwrap().join("\n")
    }

    /// Its books so far; see [`crate::History`].
    pub fn ledger(&self) -> Vec<Entry> {
        self.ledger.lock().unwrap().clone()
    }

    /// Its books once it has ended, to the last line.
    pub async fn closed_ledger(&mut self) -> Vec<Entry> {
        let read = tokio::time::timeout(Duration::from_secs(30), &mut self.reading).await;
        assert!(read.is_ok(), "{} has not closed its standard error", self.command);
        let mut entries = self.ledger();
        entries.push(Entry::ProcessEnded);
        entries
    }

    pub fn signal(&self, which: Signal) {
        signal(self.pid, which);
    }

    /// Stops it as it stands, and returns when no thread of it runs any more.
    pub async fn freeze(&self) {
        self.signal(Signal::STOP);
        let what = format!("{} stands still", self.command);
        eventually(&what, Duration::from_secs(30), async || stands_still(self.pid)).await;
    }

    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    /// The link to the monitor of a run, once it has said it.
    pub async fn monitor(&self) -> String {
        let link = || {
            let log = self.log();
            let line = log.lines().find(|line| line.contains("watch this run at"))?;
            line.split_whitespace().last().map(str::to_owned)
        };
        poll_until("it says where its monitor is", START_LIMIT, async || link()).await
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_none())
    }

    /// Waits for its end.
    pub async fn ended(&mut self, limit: Duration) -> ExitStatus {
        let Ok(status) = tokio::time::timeout(limit, self.child.wait()).await else {
            panic!("{} did not end within {limit:?}:\n{}", self.command, self.log())
        };
        // Its last words may still be in the pipe; whoever it started may hold the other end a while longer.
        let end = Instant::now() + LAST_WORDS;
        while !self.reading.is_finished() && Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        status.expect("a child can be waited for")
    }

    /// Asks it to stop, waits, and checks that it left in peace.
    pub async fn stop(mut self) {
        self.signal(Signal::TERM);
        let status = self.ended(Duration::from_secs(45)).await;
        assert_eq!(status.code(), Some(0), "{} ended so:\n{}", self.command, self.log());
    }
}

impl Drop for Webgym {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- {} said:\n{}\n---", self.command, self.log());
        }
    }
}
