//! Starts a Chromium on a pipe and ends it again: process, profile directory, log and guard belong together
//! and go together.

use std::{
    collections::VecDeque,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use command_fds::{CommandFdExt, FdMapping};
use rustix::process::{Pid, Signal, kill_process_group};
use serde::Deserialize;
use std::os::unix::process::CommandExt;
use tokio::{io::AsyncBufReadExt, net::unix::pipe, sync::watch};

use crate::{
    connection::{Connection, Events},
    error::CallError,
    find::{BrowserKind, Executable},
    flags::flags,
    guard::{self, Guard},
    profile,
    protocol::{BROWSER_CLOSE, BROWSER_GET_VERSION, NoParams},
    spawner,
};

/// Whether Chromium's own sandbox is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sandbox {
    /// Wherever it works; where it cannot, start without it and say so once.
    #[default]
    Auto,
    Require,
    Off,
}

/// What to start, and how.
#[derive(Clone, Debug)]
pub struct Launch {
    pub executable: Executable,
    pub sandbox: Sandbox,
    pub window: (u32, u32),
    pub extra_flags: Vec<String>,
    /// The memory, in bytes, that no process of the browser should exceed. Far above it the kernel gives it no more, which
    /// ends a renderer; `None` leaves it to the machine.
    pub memory_limit: Option<u64>,
    /// How long until it must have answered its first question.
    pub limit: Duration,
}

#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error("cannot prepare to start {path}: {error}")]
    Prepare { path: PathBuf, error: std::io::Error },
    #[error("cannot start {path}: {error}")]
    Start { path: PathBuf, error: std::io::Error },
    #[error("{path} started but did not answer: {error}")]
    Silent { path: PathBuf, error: CallError },
    #[error(
        "Chromium's sandbox cannot be used as root. Run as another user, or allow --sandbox auto (isolation between \
         tenants then rests on processes and contexts alone)"
    )]
    SandboxAsRoot,
}

/// The browser's name and version, as it says itself.
#[derive(Clone, Debug, Deserialize)]
pub struct Version {
    pub product: String,
    #[serde(rename = "userAgent")]
    pub user_agent: String,
}

/// A running Chromium. Dropping it ends its whole process tree and removes its profile, in the background.
pub struct Process {
    connection: Connection,
    version: Version,
    kind: BrowserKind,
    group: u32,
    sandboxed: bool,
    exit: watch::Receiver<Option<ExitStatus>>,
    cleaned: watch::Receiver<Option<ExitStatus>>,
    guard: Option<Guard>,
    profile: PathBuf,
}

const LAST_WORDS: usize = 8;
const CLOSE_LIMIT: Duration = Duration::from_secs(3);
const CLEAN_LIMIT: Duration = Duration::from_secs(5);
const PIPE_SIZE: usize = 1 << 20;

impl Launch {
    pub fn new(executable: Executable) -> Self {
        Self {
            executable,
            sandbox: Sandbox::Auto,
            window: (1280, 768),
            extra_flags: Vec::new(),
            memory_limit: None,
            limit: Duration::from_secs(30),
        }
    }

    /// Starts the browser; `events` hears what concerns no particular page.
    pub async fn start(&self, events: Arc<dyn Events>) -> Result<Process, LaunchError> {
        let root = rustix::process::geteuid().is_root();
        match self.sandbox {
            Sandbox::Off => self.start_with(false, events).await,
            Sandbox::Require if root => Err(LaunchError::SandboxAsRoot),
            Sandbox::Require => self.start_with(true, events).await,
            Sandbox::Auto if root => {
                say_once("running as root");
                self.start_with(false, events).await
            }
            Sandbox::Auto => match self.start_with(true, Arc::clone(&events)).await {
                Err(LaunchError::Silent { error, .. }) if error.to_string().contains("sandbox") => {
                    say_once("this machine does not allow it");
                    self.start_with(false, events).await
                }
                other => other,
            },
        }
    }

    async fn start_with(&self, sandbox: bool, events: Arc<dyn Events>) -> Result<Process, LaunchError> {
        let path = || self.executable.path.clone();
        let prepare = |error| LaunchError::Prepare { path: path(), error };
        let directory = tempfile::Builder::new().prefix("webgym-profile-").tempdir().map_err(prepare)?;
        profile::prepare(self.executable.kind, directory.path()).map_err(prepare)?;
        // The guard removes the directory, also if we are killed a moment from now.
        let (guard, guard_child) = guard::start(directory.path()).map_err(prepare)?;
        let profile = directory.keep();
        let group = guard_child.id();
        let cleaned = spawner::reap(guard_child);
        let (theirs, ours) = pipes().map_err(prepare)?;
        let mut command = self.command(&profile, sandbox, theirs).map_err(prepare)?;
        command.process_group(group.cast_signed());
        let started = spawner::spawn(command, self.data_limit()).await;
        let mut child = started.map_err(|error| LaunchError::Start { path: path(), error })?;
        let log = Log::new();
        if let Some(stderr) = child.stderr.take() {
            log.follow(stderr.into());
        }
        let exit = spawner::reap(child);
        let words = log.clone();
        let (to, from) = ours;
        let connection = Connection::start(to, from, events, async move { words.last_words().await });
        let mut process = Process {
            connection,
            version: Version { product: String::new(), user_agent: String::new() },
            kind: self.executable.kind,
            group,
            sandboxed: sandbox,
            exit,
            cleaned,
            guard: Some(guard),
            profile,
        };
        let version =
            process.connection.root().call_within(self.limit, BROWSER_GET_VERSION, &NoParams {}).await;
        process.version = version.map_err(|error| LaunchError::Silent { path: path(), error })?;
        Ok(process)
    }

    /// The wall behind whoever watches over the limit. The kernel counts what is mapped, which for a renderer at rest is
    /// far more than it uses.
    fn data_limit(&self) -> Option<u64> {
        const MAPPED_AT_REST: u64 = 1 << 30;
        self.memory_limit.map(|limit| limit.saturating_mul(2).saturating_add(MAPPED_AT_REST))
    }

    fn command(&self, profile: &Path, sandbox: bool, theirs: (OwnedFd, OwnedFd)) -> std::io::Result<Command> {
        let mut command = Command::new(&self.executable.path);
        command
            .args(flags(self.executable.kind, profile, sandbox, self.window))
            .args(&self.extra_flags)
            .env("TMPDIR", profile.join("tmp"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mappings = vec![
            FdMapping { parent_fd: theirs.0, child_fd: 3 },
            FdMapping { parent_fd: theirs.1, child_fd: 4 },
        ];
        command.fd_mappings(mappings).map_err(std::io::Error::other)?;
        Ok(command)
    }
}

type Ours = (pipe::Sender, pipe::Receiver);

fn pipes() -> std::io::Result<((OwnedFd, OwnedFd), Ours)> {
    let (their_input, our_output) = std::io::pipe()?;
    let (our_input, their_output) = std::io::pipe()?;
    // A screenshot is half a megabyte; with the default 64 KiB each would take a dozen wake-ups on both sides.
    let _ = rustix::pipe::fcntl_setpipe_size(&our_input, PIPE_SIZE);
    let to = pipe::Sender::from_owned_fd(our_output.into())?;
    let from = pipe::Receiver::from_owned_fd(our_input.into())?;
    Ok(((their_input.into(), their_output.into()), (to, from)))
}

fn say_once(why: &str) {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !SAID.swap(true, Ordering::Relaxed) {
        tracing::warn!(
            "Chromium runs without its own sandbox: {why}. Tenants are kept apart by processes and contexts"
        );
    }
}

impl Process {
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    pub fn version(&self) -> &Version {
        &self.version
    }

    pub fn kind(&self) -> BrowserKind {
        self.kind
    }

    /// The process group that holds the whole tree. It is led by the guard, not by the browser, which may come by
    /// way of a script.
    pub fn pid(&self) -> u32 {
        self.group
    }

    pub fn sandboxed(&self) -> bool {
        self.sandboxed
    }

    pub fn profile(&self) -> &Path {
        &self.profile
    }

    /// Ends the browser and returns once its processes and its profile are gone (bounded).
    pub async fn close(mut self) {
        let root = self.connection.root();
        let _ = root.call_within::<_, serde_json::Value>(CLOSE_LIMIT, BROWSER_CLOSE, &NoParams {}).await;
        let _ = tokio::time::timeout(CLOSE_LIMIT, self.exit.wait_for(Option::is_some)).await;
        self.kill().await;
    }

    /// Ends the browser without asking it, and returns once everything is gone (bounded).
    pub async fn kill(mut self) {
        self.guard = None;
        if tokio::time::timeout(CLEAN_LIMIT, self.cleaned.wait_for(Option::is_some)).await.is_err() {
            // The guard stands still, so the group is still its own.
            if let Some(group) = Pid::from_raw(self.group.cast_signed()) {
                let _ = kill_process_group(group, Signal::KILL);
            }
        }
        let _ = tokio::time::timeout(CLEAN_LIMIT, self.exit.wait_for(Option::is_some)).await;
        // Somebody may have killed the guard along with its group.
        let _ = tokio::fs::remove_dir_all(&self.profile).await;
    }
}

/// The last lines the browser wrote to its standard error.
#[derive(Clone)]
struct Log {
    lines: Arc<Mutex<VecDeque<String>>>,
    ended: watch::Sender<bool>,
}

/// Its last words may still be on their way when its pipe has ended; children of it may hold the log open.
const LAST_WORDS_LIMIT: Duration = Duration::from_millis(200);

impl Log {
    fn new() -> Self {
        Self { lines: Arc::default(), ended: watch::Sender::new(false) }
    }

    fn follow(&self, stderr: OwnedFd) {
        let Ok(stderr) = pipe::Receiver::from_owned_fd(stderr) else { return };
        let log = self.clone();
        tokio::spawn(async move {
            let mut lines = tokio::io::BufReader::new(stderr).split(b'\n');
            while let Ok(Some(line)) = lines.next_segment().await {
                log.keep(&line);
            }
            log.ended.send_replace(true);
        });
    }

    fn keep(&self, line: &[u8]) {
        let line: String =
            String::from_utf8_lossy(line).chars().filter(|c| !c.is_control()).take(400).collect();
        let mut kept = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == LAST_WORDS {
            kept.pop_front();
        }
        kept.push_back(line);
    }

    async fn last_words(&self) -> Arc<str> {
        let mut ended = self.ended.subscribe();
        let _ = tokio::time::timeout(LAST_WORDS_LIMIT, ended.wait_for(|ended| *ended)).await;
        let kept = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().map(String::as_str).collect::<Vec<_>>().join(" | ").into()
    }
}
