//! Starts browsers from one thread that lives as long as we do. The kernel ties "die when your parent dies" to
//! the parent *thread*, so a browser started from a worker thread would be killed when that thread retires.

use std::{
    io,
    process::{Child, Command, ExitStatus},
    sync::{Mutex, OnceLock, PoisonError, mpsc},
    thread,
};

use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit};
use std::os::unix::process::CommandExt;
use tokio::sync::{oneshot, watch};

struct Order {
    command: Command,
    reply: oneshot::Sender<io::Result<Child>>,
}

static ORDERS: OnceLock<Mutex<mpsc::Sender<Order>>> = OnceLock::new();

/// Starts `command` so that it is killed when this process ends, whatever way it ends. No process that comes of it may
/// hold more than `most` bytes of its own.
pub(crate) async fn spawn(mut command: Command, most: Option<u64>) -> io::Result<Child> {
    #[allow(
        unsafe_code,
        reason = "between fork and exec; the closure only makes two async-signal-safe system calls"
    )]
    unsafe {
        command.pre_exec(move || {
            if most.is_some() {
                setrlimit(Resource::Data, Rlimit { current: most, maximum: most })?;
            }
            set_parent_process_death_signal(Some(Signal::KILL)).map_err(io::Error::from)
        });
    }
    let (reply, child) = oneshot::channel();
    let orders = ORDERS.get_or_init(|| Mutex::new(start()));
    let sent = orders.lock().unwrap_or_else(PoisonError::into_inner).send(Order { command, reply });
    sent.map_err(|_| io::Error::other("the thread that starts browsers has ended"))?;
    child.await.map_err(|_| io::Error::other("the thread that starts browsers has ended"))?
}

fn start() -> mpsc::Sender<Order> {
    let (orders, inbox) = mpsc::channel::<Order>();
    let run = move || {
        for Order { mut command, reply } in inbox {
            let _ = reply.send(command.spawn());
        }
    };
    // If no thread can be had the inbox is dropped with the closure, and every order fails with a message.
    let _ = thread::Builder::new().name("webgym-spawner".into()).spawn(run);
    orders
}

/// Waits for the child in a thread of its own, so that it never stays a zombie.
pub(crate) fn reap(mut child: Child) -> watch::Receiver<Option<ExitStatus>> {
    let (ended, exit) = watch::channel(None);
    let wait = move || {
        if let Ok(status) = child.wait() {
            ended.send_replace(Some(status));
        }
    };
    if let Err(error) = thread::Builder::new().name("webgym-reaper".into()).spawn(wait) {
        tracing::warn!(%error, "no thread to wait for a child process");
    }
    exit
}
