//! The state of a training loop, in `loop/state.json` below the save path: which phase of which iteration has ended and how.
//! `webgym loop` writes it before and after every phase; the monitor only reads it, with the heartbeats in `loop/ranks`.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::SavePath;
use crate::durable::{self, Existing};

/// The format version that this code writes. Files with a later version are refused.
pub const FORMAT: u32 = 1;

/// A phase of an iteration, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// The model server serves the model of the iteration.
    Serve,
    /// `webgym rollout` collects the train split.
    Collect,
    /// `webgym rollout` collects the test split.
    Evaluate,
    /// `webgym export` writes the training data.
    Export,
    /// The trainer's command writes the next checkpoint.
    Train,
    /// The checkpoint is complete and readable.
    Verify,
    /// The checkpoint becomes the model of the next iteration.
    Switch,
}

impl Phase {
    pub const ALL: [Self; 7] =
        [Self::Serve, Self::Collect, Self::Evaluate, Self::Export, Self::Train, Self::Verify, Self::Switch];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Serve => "serve",
            Self::Collect => "collect",
            Self::Evaluate => "evaluate",
            Self::Export => "export",
            Self::Train => "train",
            Self::Verify => "verify",
            Self::Switch => "switch",
        }
    }
}

impl std::fmt::Display for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PhaseStatus {
    Pending,
    /// Also the status of a phase whose loop was killed.
    Running,
    Done,
    /// Not due in this iteration.
    Skipped,
    Failed,
}

impl PhaseStatus {
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Done | Self::Skipped)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseState {
    pub phase: Phase,
    pub status: PhaseStatus,
    /// Attempts that failed.
    #[serde(default)]
    pub failures: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<jiff::Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<jiff::Timestamp>,
    /// Why the last attempt failed, or why the phase was skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The log of its commands, relative to the save path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<PathBuf>,
}

impl PhaseState {
    pub const fn new(phase: Phase) -> Self {
        let status = PhaseStatus::Pending;
        Self { phase, status, failures: 0, started_at: None, ended_at: None, reason: None, log: None }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IterationState {
    pub number: u64,
    /// The model that collects in this iteration.
    pub model: String,
    pub phases: Vec<PhaseState>,
    /// The checkpoint that this iteration trained, relative to the save path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<PathBuf>,
    /// Checkpoints of this iteration that could not be served.
    #[serde(default)]
    pub rollbacks: u32,
}

impl IterationState {
    pub fn new(number: u64, model: String, phases: impl IntoIterator<Item = Phase>) -> Self {
        let phases = phases.into_iter().map(PhaseState::new).collect();
        Self { number, model, phases, checkpoint: None, rollbacks: 0 }
    }

    /// Returns the first phase that is not over.
    pub fn current(&self) -> Option<&PhaseState> {
        self.phases.iter().find(|phase| !phase.status.is_over())
    }

    pub fn phase(&self, phase: Phase) -> Option<&PhaseState> {
        self.phases.iter().find(|state| state.phase == phase)
    }

    pub fn phase_mut(&mut self, phase: Phase) -> Option<&mut PhaseState> {
        self.phases.iter_mut().find(|state| state.phase == phase)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LoopStatus {
    Running,
    /// Stopped on request.
    Stopped,
    Failed,
    Finished,
}

/// A rank of the loop that does not answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadRank {
    pub rank: usize,
    pub host: String,
}

/// An attempt at a phase that failed, or a checkpoint that was rolled back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub iteration: u64,
    pub phase: Phase,
    pub at: jiff::Timestamp,
    pub reason: String,
    #[serde(default)]
    pub is_rollback: bool,
}

/// What each rank of a loop writes again and again while it runs. No clock is compared between machines: a rank lives while
/// its `beat` changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    pub host: String,
    pub process: u32,
    pub beat: u64,
    /// The start of the loop that rank 0 runs.
    #[serde(default)]
    pub run_id: Option<String>,
}

impl Heartbeat {
    /// The longest time between two heartbeats.
    pub const MAX_INTERVAL: Duration = Duration::from_secs(5);

    pub fn path(save_path: &SavePath, rank: usize) -> PathBuf {
        save_path.loop_directory().join("ranks").join(format!("rank_{rank}.json"))
    }

    /// Reads the heartbeat of a rank; `None` if there is none, or none that can be read.
    pub fn read(save_path: &SavePath, rank: usize) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(Self::path(save_path, rank)).ok()?).ok()
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoopState {
    pub format: u32,
    pub status: LoopStatus,
    /// Why the loop failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Names one start of the loop, so that ranks do not take an order of an earlier one for a new one.
    #[serde(default)]
    pub run_id: String,
    pub first_iteration: u64,
    /// The number of iterations that train. One more follows that only serves, and evaluates, the last checkpoint.
    pub iterations_planned: u64,
    pub iterations: Vec<IterationState>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dead_ranks: Vec<DeadRank>,
    /// What failed last, also if another attempt succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<Failure>,
}

#[derive(Debug, thiserror::Error)]
pub enum LoopStateError {
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error(
        "{} is not the state of a loop: {reason}. Move it away to let the loop find its place from the files", path.display()
    )]
    Invalid { path: PathBuf, reason: String },
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

impl LoopState {
    /// The file of a save path.
    pub fn path(save_path: &SavePath) -> PathBuf {
        save_path.loop_directory().join("state.json")
    }

    /// Reads the state of a save path; `None` if there was no loop.
    pub fn read(save_path: &SavePath) -> Result<Option<Self>, LoopStateError> {
        let path = Self::path(save_path);
        let text = match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(LoopStateError::Read { path, source }),
            Ok(text) => text,
        };
        let invalid = |reason| LoopStateError::Invalid { path: path.clone(), reason };
        let state: Self = serde_json::from_str(&text).map_err(|error| invalid(error.to_string()))?;
        if state.format > FORMAT {
            let reason = format!("its format is {}, this version reads up to {FORMAT}", state.format);
            return Err(invalid(reason));
        }
        Ok(Some(state))
    }

    /// Replaces the file. A crash leaves the old or the new one.
    pub fn write(&self, save_path: &SavePath) -> Result<(), LoopStateError> {
        let path = Self::path(save_path);
        durable::write_json(&path, self, Existing::Replace)
            .map_err(|source| LoopStateError::Write { path, source })
    }

    /// The iteration that is not over, which is the last one.
    pub fn current(&self) -> Option<&IterationState> {
        self.iterations.last()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> LoopState {
        LoopState {
            format: FORMAT,
            status: LoopStatus::Running,
            reason: None,
            run_id: "run".into(),
            first_iteration: 0,
            iterations_planned: 3,
            iterations: vec![IterationState::new(0, "base".into(), Phase::ALL)],
            dead_ranks: Vec::new(),
            last_failure: None,
        }
    }

    #[test]
    fn state_survives_writing_and_reading() {
        let folder = tempfile::tempdir().unwrap();
        let save_path = SavePath::new(folder.path());
        assert_eq!(LoopState::read(&save_path).unwrap(), None);
        let mut state = state();
        state.write(&save_path).unwrap();
        state.iterations[0].phases[0].status = PhaseStatus::Done;
        state.write(&save_path).unwrap();
        let read = LoopState::read(&save_path).unwrap().unwrap();
        assert_eq!(read, state);
        assert_eq!(read.current().unwrap().current().unwrap().phase, Phase::Collect);
    }

    #[test]
    fn later_format_and_damage_are_refused_with_the_path() {
        let folder = tempfile::tempdir().unwrap();
        let save_path = SavePath::new(folder.path());
        LoopState { format: FORMAT + 1, ..state() }.write(&save_path).unwrap();
        let error = LoopState::read(&save_path).unwrap_err().to_string();
        assert!(error.contains("state.json") && error.contains("its format is 2"), "{error}");
        std::fs::write(LoopState::path(&save_path), "{").unwrap();
        assert!(LoopState::read(&save_path).unwrap_err().to_string().contains("Move it away"));
    }
}
