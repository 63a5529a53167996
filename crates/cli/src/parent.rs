//! Watches the process that started this one, for `--exit-with-parent`.

use anyhow::{Context, bail};
use rustix::{
    event::{PollFd, PollFlags, poll},
    fd::OwnedFd,
    io::Errno,
    process::{Pid, PidfdFlags, getppid, pidfd_open},
};
use tokio_util::sync::CancellationToken;

/// The process whose end stops this one; without one it never ends.
#[derive(Clone)]
pub(crate) struct Parent(CancellationToken);

impl Parent {
    /// Starts to watch the parent. A parent that has already ended is an error, also if its id was given to another process.
    pub(crate) fn watch(id: Option<i32>) -> anyhow::Result<Self> {
        let ended = CancellationToken::new();
        let Some(id) = id else { return Ok(Self(ended)) };
        let Some(parent) = Pid::from_raw(id).filter(|_| id > 0) else {
            bail!("--exit-with-parent is {id}; it must be the id of the process that starts webgym")
        };
        let descriptor = pidfd_open(parent, PidfdFlags::empty())
            .with_context(|| format!("--exit-with-parent: cannot watch process {id}"))?;
        // Checked after opening, so the descriptor cannot refer to a later process with the same id.
        if getppid() != Some(parent) {
            bail!("--exit-with-parent is {id}, but that process is not the parent of this one, or has ended");
        }
        let token = ended.clone();
        std::thread::Builder::new().name("parent".into()).spawn(move || {
            wait_for_end(&descriptor);
            token.cancel();
        })?;
        Ok(Self(ended))
    }

    /// Waits until the parent has ended.
    pub(crate) async fn ended(&self) {
        self.0.cancelled().await;
    }
}

/// Waits until the process of this descriptor has ended. If it cannot be watched any more, returns: stopping is the safe
/// choice.
fn wait_for_end(process: &OwnedFd) {
    while poll(&mut [PollFd::new(process, PollFlags::IN)], None) == Err(Errno::INTR) {}
}
