//! Runs a program under a supervisor: a process of our own binary that starts the program, and ends all of its descendants when
//! the program ends, when the loop asks for it, and when the loop is gone. `Supervised` is the loop's side, `process` the
//! supervisor itself.

mod descendants;
pub mod process;

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout};

use crate::command::Program;

/// How the loop's own binary is started as a supervisor: `webgym supervise …`.
pub const SUBCOMMAND: &str = "supervise";

/// What the supervisor reports at its end, as JSON on its standard output.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The exit code of the program; unset if a signal ended it or it did not start.
    pub code: Option<i32>,
    pub signal: Option<i32>,
    /// Why the program did not start.
    pub error: Option<String>,
    /// Processes that the program had started and that were running when it ended.
    pub left_behind: Vec<String>,
}

/// Why a program did not do its work.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ProgramError {
    #[error("{program} did not start: {reason}")]
    NotStarted { program: String, reason: String },
    #[error("{program} exited with code {code}{tail}")]
    Exited { program: String, code: i32, tail: String },
    #[error("{program} was ended by signal {signal}{tail}")]
    Signalled { program: String, signal: i32, tail: String },
    #[error("{program} ran for more than {minutes} minutes and was stopped{tail}")]
    TimedOut { program: String, minutes: f64, tail: String },
    #[error("the supervisor of {program} was killed; its processes were ended")]
    SupervisorLost { program: String },
    #[error("{program} was stopped")]
    Stopped { program: String },
}

/// Where a program runs.
#[derive(Clone, Debug)]
pub struct Placement {
    /// Our own binary, which is also the supervisor.
    pub webgym: PathBuf,
    /// Standard output and standard error are appended to this file.
    pub log: PathBuf,
    /// Locked by supervisors while anything of the program runs.
    pub lock: PathBuf,
}

/// A running program. Dropping it ends the program.
#[derive(Debug)]
pub struct Supervised {
    name: String,
    log: PathBuf,
    log_start: u64,
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    /// What was read of the report. A wait may be interrupted by another event, and must not lose it.
    report: Vec<u8>,
}

impl Supervised {
    /// Starts a program and writes the command to its log.
    pub fn start(program: &Program, placement: &Placement) -> io::Result<Self> {
        let name = program.arguments.first().cloned().unwrap_or_default();
        let log_start = write_header(&placement.log, program)?;
        let mut command = tokio::process::Command::new(&placement.webgym);
        command.arg(SUBCOMMAND).arg("--log").arg(&placement.log).arg("--lock").arg(&placement.lock);
        command.arg("--").args(&program.arguments).envs(program.variables.iter().cloned());
        if let Some(directory) = &program.directory {
            command.current_dir(directory);
        }
        // A group of its own: Ctrl-C on a terminal reaches only the loop, which then decides.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn()?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("the supervisor has no pipes"));
        };
        Ok(Self {
            name,
            log: placement.log.clone(),
            log_start,
            child,
            stdin: Some(stdin),
            stdout,
            report: Vec::new(),
        })
    }

    /// Waits until the program and everything that it started have ended. Can be dropped and called again.
    pub async fn wait(&mut self) -> Result<Report, ProgramError> {
        while matches!(self.stdout.read_buf(&mut self.report).await, Ok(1..)) {}
        let _ = self.child.wait().await;
        // Kept until here, because its end is the order to stop.
        self.stdin = None;
        let program = self.name.clone();
        let Ok(report) = serde_json::from_slice::<Report>(&self.report) else {
            descendants::end_orphans();
            return Err(ProgramError::SupervisorLost { program });
        };
        match (&report.error, report.code, report.signal) {
            (Some(reason), _, _) => Err(ProgramError::NotStarted { program, reason: reason.clone() }),
            (None, Some(0), _) => Ok(report),
            (None, Some(code), _) => Err(ProgramError::Exited { program, code, tail: self.tail() }),
            (None, None, signal) => {
                let signal = signal.unwrap_or_default();
                Err(ProgramError::Signalled { program, signal, tail: self.tail() })
            }
        }
    }

    /// Like [`Supervised::wait`], but stops the program after a time limit.
    pub async fn wait_at_most(&mut self, limit: Duration, grace: Duration) -> Result<Report, ProgramError> {
        if let Ok(ended) = tokio::time::timeout(limit, self.wait()).await {
            return ended;
        }
        self.stop(grace).await;
        let minutes = (limit.as_secs_f64() / 6.0).round() / 10.0;
        Err(ProgramError::TimedOut { program: self.name.clone(), minutes, tail: self.tail() })
    }

    /// Asks the program to end, then ends it after `grace`, with everything that it started.
    pub async fn stop(&mut self, grace: Duration) {
        self.request_stop(grace).await;
        let _ = self.wait().await;
    }

    /// Asks the program to end without waiting for it.
    pub async fn request_stop(&mut self, grace: Duration) {
        if let Some(stdin) = &mut self.stdin {
            let order = format!("stop {}\n", grace.as_millis());
            let _ = stdin.write_all(order.as_bytes()).await;
            let _ = stdin.flush().await;
        }
    }

    /// The last lines that the program wrote, for an error message.
    fn tail(&self) -> String {
        const MAX_LINES: usize = 8;
        const MAX_LINE: usize = 300;
        let written = std::fs::read(&self.log).unwrap_or_default();
        let own = written.get(self.log_start as usize..).unwrap_or_default();
        let text = String::from_utf8_lossy(own);
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = lines.iter().skip(lines.len().saturating_sub(MAX_LINES));
        let shown: Vec<String> = last
            .map(|line| {
                let cut = if line.chars().count() > MAX_LINE { "…" } else { "" };
                format!("\n    {}{cut}", line.chars().take(MAX_LINE).collect::<String>())
            })
            .collect();
        let log = self.log.display();
        if shown.is_empty() {
            format!("; {log} is empty")
        } else {
            format!("; the end of {log}:{}", shown.concat())
        }
    }
}

/// Appends the command to the log and returns the length of the log after it.
fn write_header(log: &Path, program: &Program) -> io::Result<u64> {
    if let Some(parent) = log.parent() {
        std::fs::create_dir_all(parent)?;
    }
    let mut file = std::fs::File::options().append(true).create(true).open(log)?;
    writeln!(file, "== {} {program}", jiff::Timestamp::now())?;
    Ok(file.metadata()?.len())
}
