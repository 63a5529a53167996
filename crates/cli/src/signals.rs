//! Ctrl-C and SIGTERM: the first signal asks to finish, the second one to exit immediately.

use tokio::signal::unix::{SignalKind, signal};

/// The kind of a stop signal. After Ctrl-C a user waits; a service manager that sends SIGTERM allows more time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopSignal {
    Interrupt,
    Terminate,
}

/// Receives stop signals.
pub(crate) struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    pub(crate) fn listen() -> std::io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) {
        self.next_kind().await;
    }

    /// Waits for the next signal and returns its kind.
    pub(crate) async fn next_kind(&mut self) -> StopSignal {
        tokio::select! {
            _ = self.interrupt.recv() => StopSignal::Interrupt,
            _ = self.terminate.recv() => StopSignal::Terminate,
        }
    }
}
