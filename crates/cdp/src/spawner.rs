//! Starts browser processes from one thread that lives as long as our process. The kernel ties the parent-death
//! signal to the parent *thread*: a browser started from a worker thread would be killed when that thread ends.
//!
//! The reaper goes with the request and comes back with the process. If the caller gives up meanwhile, the reaper is
//! dropped only after the process has joined its group, so it finds and kills that process.

use std::{
    io,
    process::{Child, ChildStderr, Command, ExitStatus},
    sync::{Mutex, OnceLock, PoisonError, mpsc},
    thread,
};

use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit};
use std::os::unix::process::CommandExt;
use tokio::sync::{oneshot, watch};

use crate::reaper::Reaper;

struct SpawnRequest {
    command: Command,
    reaper: Reaper,
    reply: oneshot::Sender<io::Result<Spawned>>,
}

/// A started process. A thread already waits for its exit, so that it never remains a zombie.
pub(crate) struct Spawned {
    pub(crate) stderr: Option<ChildStderr>,
    pub(crate) exited: watch::Receiver<Option<ExitStatus>>,
    pub(crate) reaper: Reaper,
}

/// The only priority that the policy has.
static BATCH_PRIORITY: libc::sched_param = libc::sched_param { sched_priority: 0 };

static REQUESTS: OnceLock<Mutex<mpsc::Sender<SpawnRequest>>> = OnceLock::new();

/// What the kernel is told about each process of a browser.
#[derive(Clone, Copy)]
pub(crate) struct ProcessRules {
    /// Limits the private memory of each process.
    pub(crate) max_data_bytes: Option<u64>,
    /// Whether the processes are scheduled as batch work (`SCHED_BATCH`): one that wakes up does not interrupt another of
    /// the same kind, so that each keeps the caches for longer (docs/benchmarks.md). Our own processes still interrupt them.
    pub(crate) is_batch: bool,
}

/// Starts `command` so that it is killed when this process ends, however it ends.
pub(crate) async fn spawn(mut command: Command, reaper: Reaper, rules: ProcessRules) -> io::Result<Spawned> {
    let ProcessRules { max_data_bytes, is_batch } = rules;
    #[allow(
        unsafe_code,
        reason = "between fork and exec; the closure only makes three async-signal-safe system calls"
    )]
    unsafe {
        command.pre_exec(move || {
            if max_data_bytes.is_some() {
                setrlimit(Resource::Data, Rlimit { current: max_data_bytes, maximum: max_data_bytes })?;
            }
            if is_batch {
                // Where a container forbids it, the browser is only slower.
                libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const BATCH_PRIORITY);
            }
            set_parent_process_death_signal(Some(Signal::KILL)).map_err(io::Error::from)
        });
    }
    let (reply, spawned) = oneshot::channel();
    let requests = REQUESTS.get_or_init(|| Mutex::new(start_thread()));
    let request = SpawnRequest { command, reaper, reply };
    let sent = requests.lock().unwrap_or_else(PoisonError::into_inner).send(request);
    sent.map_err(|_| io::Error::other("the thread that starts browsers has ended"))?;
    spawned.await.map_err(|_| io::Error::other("the thread that starts browsers has ended"))?
}

fn start_thread() -> mpsc::Sender<SpawnRequest> {
    let (requests, inbox) = mpsc::channel::<SpawnRequest>();
    let run = move || {
        for SpawnRequest { command, reaper, reply } in inbox {
            let _ = reply.send(spawn_here(command, reaper));
        }
    };
    // If the thread cannot be created, the inbox is dropped with the closure and every request fails with a message.
    let _ = thread::Builder::new().name("webgym-spawner".into()).spawn(run);
    requests
}

fn spawn_here(mut command: Command, reaper: Reaper) -> io::Result<Spawned> {
    let mut child = command.spawn()?;
    Ok(Spawned { stderr: child.stderr.take(), exited: wait_in_background(child), reaper })
}

/// Waits for the child in a thread of its own, so that it never remains a zombie.
pub(crate) fn wait_in_background(mut child: Child) -> watch::Receiver<Option<ExitStatus>> {
    let (exited, exit) = watch::channel(None);
    let wait = move || {
        if let Ok(status) = child.wait() {
            exited.send_replace(Some(status));
        }
    };
    if let Err(error) = thread::Builder::new().name("webgym-wait".into()).spawn(wait) {
        tracing::warn!(%error, "cannot start a thread to wait for a child process");
    }
    exit
}
