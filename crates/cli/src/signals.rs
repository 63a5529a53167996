//! Ctrl-C and SIGTERM: the first asks to finish, the second means now.

use tokio::signal::unix::{SignalKind, signal};

/// Somebody at a terminal wants it over; a service manager has its own limit and gives time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Interrupt,
    Terminate,
}

/// Waits for the next request to stop.
pub(crate) struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    pub(crate) fn listen() -> std::io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    pub(crate) async fn next(&mut self) {
        self.which().await;
    }

    /// The same, telling which it was.
    pub(crate) async fn which(&mut self) -> Asked {
        tokio::select! {
            _ = self.interrupt.recv() => Asked::Interrupt,
            _ = self.terminate.recv() => Asked::Terminate,
        }
    }
}
