//! Watches the process that started this one, for `--exit-with-parent`.

use anyhow::{Context, bail};
use rustix::{
    fd::OwnedFd,
    process::{Pid, PidfdFlags, getppid, pidfd_open},
};
use tokio::io::{Interest, unix::AsyncFd};

/// The process whose end stops this one; without one it never ends.
pub(super) struct Parent(Option<AsyncFd<OwnedFd>>);

impl Parent {
    /// Starts to watch the parent. A parent that has already ended is an error, also if its id was given to another process.
    pub(super) fn watch(id: Option<i32>) -> anyhow::Result<Self> {
        let Some(id) = id else { return Ok(Self(None)) };
        let Some(parent) = Pid::from_raw(id).filter(|_| id > 0) else {
            bail!("--exit-with-parent is {id}; it must be the id of the process that starts webgym")
        };
        let descriptor = pidfd_open(parent, PidfdFlags::empty())
            .with_context(|| format!("--exit-with-parent: cannot watch process {id}"))?;
        // Checked after opening, so the descriptor cannot refer to a later process with the same id.
        if getppid() != Some(parent) {
            bail!("--exit-with-parent is {id}, but that process is not the parent of this one, or has ended");
        }
        Ok(Self(Some(AsyncFd::with_interest(descriptor, Interest::READABLE)?)))
    }

    /// Waits until the parent has ended.
    pub(super) async fn ended(&self) {
        match &self.0 {
            // An error means that the descriptor cannot be watched any more; stopping is the safe choice.
            Some(descriptor) => drop(descriptor.readable().await),
            None => std::future::pending().await,
        }
    }
}
