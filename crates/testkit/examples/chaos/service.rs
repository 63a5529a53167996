//! A supervised process that is restarted whenever it ends, as systemd would do; nothing else in this program repairs
//! the damage of a fault. Its output goes to a log file, its temporary files to a separate folder.

use std::{
    fs::OpenOptions,
    path::PathBuf,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use rustix::process::Signal;
use testkit::signal;
use tokio::{process::Command, task::JoinHandle};

const RESTART_DELAY: Duration = Duration::from_millis(500);
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

/// How to start a service.
pub(crate) struct ServiceSpec {
    pub(crate) name: &'static str,
    pub(crate) command: Vec<String>,
    pub(crate) variables: Vec<(&'static str, String)>,
    /// The folder for its log and its temporary files.
    pub(crate) folder: PathBuf,
}

#[derive(Default)]
struct State {
    pid: AtomicU32,
    starts: AtomicUsize,
    /// Never restart it.
    stopping: AtomicBool,
    /// Do not restart it after a successful exit.
    last_run: AtomicBool,
}

pub(crate) struct Service {
    pub(crate) name: &'static str,
    pub(crate) temporary: PathBuf,
    state: Arc<State>,
    task: JoinHandle<()>,
}

impl Service {
    pub(crate) fn start(spec: ServiceSpec) -> Self {
        let temporary = spec.folder.join("tmp").join(spec.name);
        std::fs::create_dir_all(&temporary).expect("a writable folder");
        let state = Arc::new(State::default());
        let (name, kept) = (spec.name, temporary.clone());
        let task = tokio::spawn(supervise(spec, temporary, Arc::clone(&state)));
        Self { name, temporary: kept, state, task }
    }

    /// Returns the process id while it runs.
    pub(crate) fn pid(&self) -> Option<u32> {
        Some(self.state.pid.load(Ordering::Relaxed)).filter(|pid| *pid != 0)
    }

    pub(crate) fn starts(&self) -> usize {
        self.state.starts.load(Ordering::Relaxed)
    }

    pub(crate) fn signal(&self, number: Signal) {
        if let Some(pid) = self.pid() {
            signal(pid, number);
        }
    }

    /// Waits until it exits with status 0 by itself; returns false after the limit.
    pub(crate) async fn wait_for_success(&mut self, limit: Duration) -> bool {
        self.state.last_run.store(true, Ordering::Relaxed);
        tokio::time::timeout(limit, &mut self.task).await.is_ok()
    }

    /// Sends SIGTERM and waits; returns false if it does not exit.
    pub(crate) async fn stop(&mut self) -> bool {
        self.state.stopping.store(true, Ordering::Relaxed);
        if self.task.is_finished() {
            return true;
        }
        self.signal(Signal::TERM);
        tokio::time::timeout(STOP_TIMEOUT, &mut self.task).await.is_ok()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn supervise(spec: ServiceSpec, temporary: PathBuf, state: Arc<State>) {
    let log = spec.folder.join(format!("{}.log", spec.name));
    while !state.stopping.load(Ordering::Relaxed) {
        let file = OpenOptions::new().create(true).append(true).open(&log).expect("a writable folder");
        let errors = file.try_clone().expect("a file");
        let mut command = Command::new(&spec.command[0]);
        command.args(&spec.command[1..]).stdin(Stdio::null()).stdout(file).stderr(errors);
        command.env("TMPDIR", &temporary).kill_on_drop(true);
        command.envs(spec.variables.iter().map(|(name, value)| (name, value)));
        let begun = Instant::now();
        let succeeded = match command.spawn() {
            Ok(mut child) => {
                state.starts.fetch_add(1, Ordering::Relaxed);
                state.pid.store(child.id().unwrap_or(0), Ordering::Relaxed);
                let status = child.wait().await;
                state.pid.store(0, Ordering::Relaxed);
                status.is_ok_and(|status| status.success())
            }
            Err(error) => panic!("cannot start {}: {error}", spec.name),
        };
        if succeeded && state.last_run.load(Ordering::Relaxed) {
            return;
        }
        tokio::time::sleep(RESTART_DELAY.saturating_sub(begun.elapsed()).max(RESTART_DELAY / 5)).await;
    }
}
