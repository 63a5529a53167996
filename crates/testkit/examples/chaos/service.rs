//! A process that is started again whenever it ends, as systemd would do it: nothing else in this program mends what a
//! fault broke. What it says goes to a file; its temporary files go to a folder of its own.

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

/// As `RestartSec=` of the units in deploy/.
const PAUSE: Duration = Duration::from_millis(500);
const STOPPING: Duration = Duration::from_secs(30);

/// How to start it.
pub(crate) struct Recipe {
    pub(crate) name: &'static str,
    pub(crate) words: Vec<String>,
    pub(crate) variables: Vec<(&'static str, String)>,
    /// A folder for its log and its temporary files.
    pub(crate) folder: PathBuf,
}

#[derive(Default)]
struct State {
    pid: AtomicU32,
    starts: AtomicUsize,
    /// Do not start it again, however it ends.
    stopping: AtomicBool,
    /// Do not start it again once it has ended well.
    last_time: AtomicBool,
}

pub(crate) struct Service {
    pub(crate) name: &'static str,
    pub(crate) temporary: PathBuf,
    state: Arc<State>,
    task: JoinHandle<()>,
}

impl Service {
    pub(crate) fn start(recipe: Recipe) -> Self {
        let temporary = recipe.folder.join("tmp").join(recipe.name);
        std::fs::create_dir_all(&temporary).expect("the folder is ours");
        let state = Arc::new(State::default());
        let (name, kept) = (recipe.name, temporary.clone());
        let task = tokio::spawn(keep_running(recipe, temporary, Arc::clone(&state)));
        Self { name, temporary: kept, state, task }
    }

    /// Its process, while it has one.
    pub(crate) fn pid(&self) -> Option<u32> {
        Some(self.state.pid.load(Ordering::Relaxed)).filter(|pid| *pid != 0)
    }

    pub(crate) fn starts(&self) -> usize {
        self.state.starts.load(Ordering::Relaxed)
    }

    pub(crate) fn signal(&self, which: Signal) {
        if let Some(pid) = self.pid() {
            signal(pid, which);
        }
    }

    /// Waits until it has ended well of itself; false when that takes too long.
    pub(crate) async fn finishes(&mut self, limit: Duration) -> bool {
        self.state.last_time.store(true, Ordering::Relaxed);
        tokio::time::timeout(limit, &mut self.task).await.is_ok()
    }

    /// Asks it to stop; false when it does not.
    pub(crate) async fn stop(&mut self) -> bool {
        self.state.stopping.store(true, Ordering::Relaxed);
        if self.task.is_finished() {
            return true;
        }
        self.signal(Signal::TERM);
        tokio::time::timeout(STOPPING, &mut self.task).await.is_ok()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn keep_running(recipe: Recipe, temporary: PathBuf, state: Arc<State>) {
    let log = recipe.folder.join(format!("{}.log", recipe.name));
    while !state.stopping.load(Ordering::Relaxed) {
        let file = OpenOptions::new().create(true).append(true).open(&log).expect("the folder is ours");
        let errors = file.try_clone().expect("a file");
        let mut command = Command::new(&recipe.words[0]);
        command.args(&recipe.words[1..]).stdin(Stdio::null()).stdout(file).stderr(errors);
        command.env("TMPDIR", &temporary).kill_on_drop(true);
        command.envs(recipe.variables.iter().map(|(name, value)| (name, value)));
        let begun = Instant::now();
        let ended_well = match command.spawn() {
            Ok(mut child) => {
                state.starts.fetch_add(1, Ordering::Relaxed);
                state.pid.store(child.id().unwrap_or(0), Ordering::Relaxed);
                let status = child.wait().await;
                state.pid.store(0, Ordering::Relaxed);
                status.is_ok_and(|status| status.success())
            }
            Err(error) => panic!("{} cannot be started: {error}", recipe.name),
        };
        if ended_well && state.last_time.load(Ordering::Relaxed) {
            return;
        }
        tokio::time::sleep(PAUSE.saturating_sub(begun.elapsed()).max(PAUSE / 5)).await;
    }
}
