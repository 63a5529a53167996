//! Starts the programs of a loop, each with a log of its own, and stops them when the loop is asked to stop.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::command::Program;
use crate::supervisor::{Placement, ProgramError, Report, Supervised};

/// How long a program may take to end when its work has become useless.
const ABORT_GRACE: Duration = Duration::from_secs(3);

/// Requests the loop to stop.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    /// Ask the running program to finish, and start no other.
    pub soft: CancellationToken,
    /// End the running program.
    pub hard: CancellationToken,
}

/// How long a program may run, and how long it may take to end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) timeout: Duration,
    pub(crate) grace: Duration,
}

#[derive(Clone, Debug)]
pub(crate) struct Launcher {
    pub(crate) webgym: PathBuf,
    pub(crate) programs_lock: PathBuf,
    pub(crate) stop: Stop,
}

impl Launcher {
    pub(crate) fn start(&self, program: &Program, log: &Path) -> Result<Supervised, ProgramError> {
        let placement =
            Placement { webgym: self.webgym.clone(), log: log.to_owned(), lock: self.programs_lock.clone() };
        tracing::debug!("starting {program}");
        Supervised::start(program, &placement).map_err(|error| ProgramError::NotStarted {
            program: program.arguments.first().cloned().unwrap_or_default(),
            reason: error.to_string(),
        })
    }

    /// Runs a program to its end. A request to stop is passed on to it.
    pub(crate) async fn run(
        &self,
        program: &Program,
        log: &Path,
        limits: Limits,
    ) -> Result<Report, ProgramError> {
        self.run_unless(program, log, limits, std::future::pending::<ProgramError>()).await
    }

    /// Like [`Launcher::run`], but ends the program when `abort` has an error, and returns that error when the program is gone.
    pub(crate) async fn run_unless<E: From<ProgramError>>(
        &self,
        program: &Program,
        log: &Path,
        limits: Limits,
        abort: impl Future<Output = E>,
    ) -> Result<Report, E> {
        let mut running = self.start(program, log)?;
        tokio::select! {
            ended = running.wait_at_most(limits.timeout, limits.grace) => return Ok(ended?),
            () = self.stop.soft.cancelled() => {}
            error = abort => {
                running.stop(limits.grace.min(ABORT_GRACE)).await;
                return Err(error);
            }
        }
        running.request_stop(limits.grace).await;
        tokio::select! {
            _ = running.wait() => {}
            () = self.stop.hard.cancelled() => running.stop(Duration::ZERO).await,
        }
        let program = program.arguments.first().cloned().unwrap_or_default();
        Err(ProgramError::Stopped { program }.into())
    }
}
