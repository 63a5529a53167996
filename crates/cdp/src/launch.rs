//! Starts a Chromium on a debugging pipe and ends it again. Owns the process, its profile directory, its log and its
//! reaper.

use std::{
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use command_fds::{CommandFdExt, FdMapping};
use rustix::process::{Pid, Signal, kill_process_group};
use serde::Deserialize;
use std::os::unix::process::CommandExt;
use tokio::{net::unix::pipe, sync::watch};

use crate::{
    connection::{Connection, EventHandler},
    error::CallError,
    find::{BrowserKind, Executable},
    flags::flags,
    profile,
    protocol::{BROWSER_CLOSE, BROWSER_GET_VERSION, NoParams},
    reaper::{self, Reaper},
    spawner::{self, ProcessRules, Spawned},
    stderr_log::StderrLog,
};

/// Whether Chromium's own sandbox is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sandbox {
    /// Use it if it works here; otherwise start without it and log a warning once.
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
    pub window_size: (u32, u32),
    pub extra_flags: Vec<String>,
    /// Whether flags and scheduling are used that only make pages cheaper. Benchmarks compare with a browser without them.
    pub tuned: bool,
    /// The memory, in bytes, that no process of the browser should exceed. Well above it, the kernel refuses further
    /// memory, which ends a renderer. `None` sets no limit.
    pub memory_limit: Option<u64>,
    /// The time until the browser must have answered its first call.
    pub start_timeout: Duration,
}

#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error("cannot prepare to start {path}: {error}")]
    Prepare { path: PathBuf, error: std::io::Error },
    #[error("cannot start {path}: {error}")]
    Start { path: PathBuf, error: std::io::Error },
    #[error("{path} started but did not answer: {error}")]
    Unresponsive { path: PathBuf, error: CallError },
    #[error(
        "Chromium's sandbox cannot be used as root. Run as another user, or use --sandbox auto (tenants are then \
         isolated only by processes and browser contexts)"
    )]
    SandboxAsRoot,
}

/// The browser's name and version, as it reports them.
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
    process_group: u32,
    sandboxed: bool,
    exited: watch::Receiver<Option<ExitStatus>>,
    cleaned_up: watch::Receiver<Option<ExitStatus>>,
    reaper: Option<Reaper>,
    profile: PathBuf,
}

const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(5);
const PIPE_SIZE: usize = 1 << 20;

impl Launch {
    pub fn new(executable: Executable) -> Self {
        Self {
            executable,
            sandbox: Sandbox::Auto,
            window_size: (1280, 768),
            extra_flags: Vec::new(),
            tuned: true,
            memory_limit: None,
            start_timeout: Duration::from_secs(30),
        }
    }

    /// Starts the browser; `events` receives the events of the root session.
    pub async fn start(&self, events: Arc<dyn EventHandler>) -> Result<Process, LaunchError> {
        let root = rustix::process::geteuid().is_root();
        match self.sandbox {
            Sandbox::Off => self.start_with(false, events).await,
            Sandbox::Require if root => Err(LaunchError::SandboxAsRoot),
            Sandbox::Require => self.start_with(true, events).await,
            Sandbox::Auto if root => {
                warn_no_sandbox("running as root");
                self.start_with(false, events).await
            }
            Sandbox::Auto => match self.start_with(true, Arc::clone(&events)).await {
                Err(LaunchError::Unresponsive { error, .. }) if error.to_string().contains("sandbox") => {
                    warn_no_sandbox("this machine does not allow it");
                    self.start_with(false, events).await
                }
                other => other,
            },
        }
    }

    async fn start_with(&self, sandbox: bool, events: Arc<dyn EventHandler>) -> Result<Process, LaunchError> {
        let path = || self.executable.path.clone();
        let prepare = |error| LaunchError::Prepare { path: path(), error };
        let directory = tempfile::Builder::new().prefix("webgym-profile-").tempdir().map_err(prepare)?;
        let profile = directory.keep();
        let (reaper, reaper_child) = reaper::start(&profile)
            // If no file descriptors are left, an empty directory can still be removed, but not a filled one.
            .inspect_err(|_| drop(std::fs::remove_dir(&profile)))
            .map_err(prepare)?;
        // From here on the reaper removes the directory, even if our process is killed.
        let process_group = reaper_child.id();
        let cleaned_up = spawner::wait_in_background(reaper_child);
        profile::prepare(self.executable.kind, &profile).map_err(prepare)?;
        let (browser_ends, (to, from)) = pipes().map_err(prepare)?;
        let mut command = self.command(&profile, sandbox, browser_ends).map_err(prepare)?;
        command.process_group(process_group.cast_signed());
        let rules = ProcessRules { max_data_bytes: self.max_data_bytes(), is_batch: self.tuned };
        let started = spawner::spawn(command, reaper, rules).await;
        let Spawned { stderr, exited, reaper } =
            started.map_err(|error| LaunchError::Start { path: path(), error })?;
        let log = StderrLog::new();
        if let Some(stderr) = stderr {
            log.follow(stderr.into());
        }
        let connection = Connection::start(to, from, events, async move { log.recent_lines().await });
        let mut process = Process {
            connection,
            version: Version { product: String::new(), user_agent: String::new() },
            kind: self.executable.kind,
            process_group,
            sandboxed: sandbox,
            exited,
            cleaned_up,
            reaper: Some(reaper),
            profile,
        };
        let root = process.connection.root();
        let version = root.call_within(self.start_timeout, BROWSER_GET_VERSION, &NoParams {}).await;
        process.version = version.map_err(|error| LaunchError::Unresponsive { path: path(), error })?;
        Ok(process)
    }

    /// The kernel's limit for a process, well above the memory limit that the farm's watchdog enforces. The kernel
    /// counts mapped memory, and an idle renderer maps far more than it uses.
    fn max_data_bytes(&self) -> Option<u64> {
        const IDLE_MAPPED_BYTES: u64 = 1 << 30;
        self.memory_limit.map(|limit| limit.saturating_mul(2).saturating_add(IDLE_MAPPED_BYTES))
    }

    fn command(
        &self,
        profile: &Path,
        sandbox: bool,
        (input, output): (OwnedFd, OwnedFd),
    ) -> std::io::Result<Command> {
        let mut command = Command::new(&self.executable.path);
        command
            .args(flags(self.executable.kind, profile, sandbox, self.window_size, self.tuned))
            .args(&self.extra_flags)
            .env("TMPDIR", profile.join("tmp"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        // The file descriptors that `--remote-debugging-pipe` reads from and writes to.
        let mappings =
            vec![FdMapping { parent_fd: input, child_fd: 3 }, FdMapping { parent_fd: output, child_fd: 4 }];
        command.fd_mappings(mappings).map_err(std::io::Error::other)?;
        Ok(command)
    }
}

type BrowserEnds = (OwnedFd, OwnedFd);
type OurEnds = (pipe::Sender, pipe::Receiver);

/// Creates the two pipes between us and the browser.
fn pipes() -> std::io::Result<(BrowserEnds, OurEnds)> {
    let (their_input, our_output) = std::io::pipe()?;
    let (our_input, their_output) = std::io::pipe()?;
    // A screenshot is half a megabyte; with the default of 64 KiB each one would take a dozen wake-ups on both sides.
    let _ = rustix::pipe::fcntl_setpipe_size(&our_input, PIPE_SIZE);
    let to = pipe::Sender::from_owned_fd(our_output.into())?;
    let from = pipe::Receiver::from_owned_fd(our_input.into())?;
    Ok(((their_input.into(), their_output.into()), (to, from)))
}

/// Logs once per process that the browsers run without Chromium's sandbox.
fn warn_no_sandbox(reason: &str) {
    static WARNED: AtomicBool = AtomicBool::new(false);
    if !WARNED.swap(true, Ordering::Relaxed) {
        tracing::warn!(
            "Chromium runs without its own sandbox: {reason}. Tenants are isolated by processes and browser contexts"
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

    /// The process group of the whole process tree. Its leader is the reaper, not the browser, which may be started
    /// by a wrapper script.
    pub fn process_group(&self) -> u32 {
        self.process_group
    }

    pub fn is_sandboxed(&self) -> bool {
        self.sandboxed
    }

    pub fn profile(&self) -> &Path {
        &self.profile
    }

    /// Asks the browser to exit and returns once its processes and its profile are gone (bounded).
    pub async fn close(mut self) {
        let root = self.connection.root();
        let _ = root.call_within::<_, serde_json::Value>(CLOSE_TIMEOUT, BROWSER_CLOSE, &NoParams {}).await;
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, self.exited.wait_for(Option::is_some)).await;
        self.kill().await;
    }

    /// Kills the browser and returns once its processes and its profile are gone (bounded).
    pub async fn kill(mut self) {
        self.reaper = None;
        if tokio::time::timeout(CLEANUP_TIMEOUT, self.cleaned_up.wait_for(Option::is_some)).await.is_err() {
            // The reaper hangs but still exists, so the group id has not been reused.
            if let Some(group) = Pid::from_raw(self.process_group.cast_signed()) {
                let _ = kill_process_group(group, Signal::KILL);
            }
        }
        let _ = tokio::time::timeout(CLEANUP_TIMEOUT, self.exited.wait_for(Option::is_some)).await;
        // Needed if the reaper was killed before it could remove the profile.
        let _ = tokio::fs::remove_dir_all(&self.profile).await;
    }
}
