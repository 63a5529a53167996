//! What a client can ask its instance to do, and the results.

use std::fmt;

use browser::{BrowserError, Instance, Observation, ObserveRequest, Settled};
use bytes::Bytes;
use proto::{Command, SessionOptions, StorageState};
use serde_json::Value;

use super::network::LeaseNetwork;
use crate::computer::{ComputerCall, ComputerResult};

/// What a client can ask its instance to do.
#[derive(Debug)]
pub(crate) enum Operation {
    Execute(Command),
    Observe(ObserveRequest),
    Step {
        command: Command,
        observe: ObserveRequest,
    },
    /// A step whose command is not allowed: observe only, and report the error.
    Refused {
        error: BrowserError,
        observe: ObserveRequest,
    },
    Size,
    Probe,
    /// Replaces the clean instance of a new lease by one with these options.
    Configure {
        options: Box<SessionOptions>,
        network: Option<LeaseNetwork>,
    },
    StorageState,
    SetStorageState(Box<StorageState>),
    Computer(Box<ComputerCall>),
    ListFiles,
    ReadFile(String),
    WriteFile {
        name: String,
        content: Bytes,
    },
    DeleteFile(String),
    /// Applies what a person has opened or closed in the live view.
    FollowWindows,
}

impl Operation {
    /// Whether it acts on the page or observes it.
    pub(super) const fn uses_page(&self) -> bool {
        matches!(
            self,
            Self::Execute(_)
                | Self::Observe(_)
                | Self::Step { .. }
                | Self::Refused { .. }
                | Self::Computer(_)
        )
    }

    /// Whether it needs the CPU for a while.
    pub(super) const fn is_work(&self) -> bool {
        self.uses_page() && !matches!(self, Self::Execute(Command::Sleep { .. }))
    }

    /// Returns the name used in metrics.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Execute(command) => command.name(),
            Self::Observe(request) if request.screenshot && !request.metadata => "screenshot",
            Self::Observe(_) => "observe",
            Self::Step { .. } | Self::Refused { .. } => "step",
            Self::Configure { .. } => "configure",
            Self::StorageState => "storage_state",
            Self::SetStorageState(_) => "set_storage_state",
            Self::Computer(_) => "computer",
            Self::ListFiles => "list_files",
            Self::ReadFile(_) => "read_file",
            Self::WriteFile { .. } => "write_file",
            Self::DeleteFile(_) => "delete_file",
            Self::FollowWindows => "follow_windows",
            Self::Size => "metadata",
            Self::Probe => "probe",
        }
    }
}

/// The result of an operation.
#[derive(Debug)]
pub(crate) enum OperationResult {
    Answer(Value),
    Size(u32, u32),
    Alive,
    /// The instance that session options have replaced.
    Configured(Box<Replaced>),
    File(Bytes),
    Observed(Box<ObserveResult>),
    Computer(Box<ComputerResult>),
}

/// An instance that session options have replaced.
pub(crate) struct Replaced {
    pub(super) instance: Instance,
    /// A client that repeated its request may have used it already.
    pub(super) is_used: bool,
}

impl fmt::Debug for Replaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replaced").field("is_used", &self.is_used).finish_non_exhaustive()
    }
}

/// An observation, and for a step the result of its command.
#[derive(Debug)]
pub(crate) struct ObserveResult {
    pub(crate) result: Option<Result<Value, BrowserError>>,
    pub(crate) settled: Option<Settled>,
    pub(crate) observation: Observation,
    /// The screenshot has the same bytes as the previous one of this lease.
    pub(crate) unchanged: bool,
}
