//! What the page shows of a loop at a moment, as JSON. Times are Unix seconds.

use jiff::Timestamp;
use serde::Serialize;
use store::{
    SavePath,
    loop_state::{DeadRank, IterationState, LoopState, LoopStatus, Phase, PhaseState, PhaseStatus},
};

use super::{liveness::Liveness, log_tail, success::Success};

/// Iterations whose phases are sent; of earlier ones only the success is.
const MAX_ITERATIONS: usize = 60;
const MAX_REASON_CHARS: usize = 3000;

#[derive(Clone, Debug, Serialize)]
pub struct Snapshot {
    pub name: String,
    pub save_path: String,
    pub has_run_page: bool,
    /// Why the state of the loop cannot be read.
    pub problem: Option<String>,
    /// Absent if there is no loop, or none that can be read.
    #[serde(rename = "loop")]
    pub state: Option<LoopSummary>,
}

#[derive(Clone, Debug, Serialize)]
pub struct LoopSummary {
    pub status: LoopStatus,
    /// Absent if the state says that the loop has ended.
    pub liveness: Option<Liveness>,
    pub reason: Option<String>,
    pub first_iteration: u64,
    pub iterations_planned: u64,
    /// The latest ones, in order.
    pub iterations: Vec<IterationSummary>,
    pub earlier_iterations: usize,
    pub activity: Option<Activity>,
    pub checkpoint: Option<LastCheckpoint>,
    pub failure: Option<LastFailure>,
    pub dead_ranks: Vec<DeadRank>,
    pub success: Vec<Success>,
}

#[derive(Clone, Debug, Serialize)]
pub struct IterationSummary {
    pub number: u64,
    pub model: String,
    pub checkpoint: Option<String>,
    pub rollbacks: u32,
    pub phases: Vec<PhaseSummary>,
}

#[derive(Clone, Debug, Serialize)]
pub struct PhaseSummary {
    pub phase: Phase,
    pub status: PhaseStatus,
    pub failures: u32,
    pub started_at: Option<f64>,
    pub ended_at: Option<f64>,
    pub reason: Option<String>,
}

/// The phase that runs, or that ran when the loop ended.
#[derive(Clone, Debug, Serialize)]
pub struct Activity {
    pub iteration: u64,
    pub phase: Phase,
    pub status: PhaseStatus,
    pub attempt: u32,
    pub since: Option<f64>,
    pub log: Option<String>,
    pub log_lines: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct LastCheckpoint {
    pub path: String,
    pub iteration: u64,
    pub at: Option<f64>,
}

#[derive(Clone, Debug, Serialize)]
pub struct LastFailure {
    pub iteration: u64,
    pub phase: Phase,
    pub at: f64,
    pub reason: String,
    pub is_rollback: bool,
}

impl LoopSummary {
    pub(super) fn new(
        state: &LoopState,
        save_path: &SavePath,
        liveness: Option<Liveness>,
        success: Vec<Success>,
    ) -> Self {
        let earlier_iterations = state.iterations.len().saturating_sub(MAX_ITERATIONS);
        Self {
            status: state.status,
            liveness,
            reason: state.reason.as_deref().map(shortened),
            first_iteration: state.first_iteration,
            iterations_planned: state.iterations_planned,
            iterations: state.iterations[earlier_iterations..].iter().map(IterationSummary::new).collect(),
            earlier_iterations,
            activity: activity(state, save_path),
            checkpoint: last_checkpoint(state),
            failure: last_failure(state),
            dead_ranks: state.dead_ranks.clone(),
            success,
        }
    }
}

impl IterationSummary {
    fn new(iteration: &IterationState) -> Self {
        Self {
            number: iteration.number,
            model: iteration.model.clone(),
            checkpoint: iteration.checkpoint.as_ref().map(|path| path.display().to_string()),
            rollbacks: iteration.rollbacks,
            phases: iteration.phases.iter().map(PhaseSummary::new).collect(),
        }
    }
}

impl PhaseSummary {
    fn new(phase: &PhaseState) -> Self {
        Self {
            phase: phase.phase,
            status: phase.status,
            failures: phase.failures,
            started_at: phase.started_at.map(seconds),
            ended_at: phase.ended_at.map(seconds),
            reason: phase.reason.as_deref().map(shortened),
        }
    }
}

fn activity(state: &LoopState, save_path: &SavePath) -> Option<Activity> {
    if state.status == LoopStatus::Finished {
        return None;
    }
    let iteration = state.current()?;
    let phase = iteration.current()?;
    Some(Activity {
        iteration: iteration.number,
        phase: phase.phase,
        status: phase.status,
        attempt: phase.failures + u32::from(phase.status != PhaseStatus::Failed),
        since: phase.started_at.map(seconds),
        log: phase.log.as_ref().map(|log| log.display().to_string()),
        log_lines: phase.log.as_deref().map(|log| log_tail::read(save_path, log)).unwrap_or_default(),
    })
}

fn last_checkpoint(state: &LoopState) -> Option<LastCheckpoint> {
    let trained = state.iterations.iter().rev().find(|iteration| iteration.checkpoint.is_some())?;
    Some(LastCheckpoint {
        path: trained.checkpoint.as_ref()?.display().to_string(),
        iteration: trained.number,
        at: trained.phase(Phase::Switch).and_then(|phase| phase.ended_at).map(seconds),
    })
}

fn last_failure(state: &LoopState) -> Option<LastFailure> {
    let failure = state.last_failure.as_ref()?;
    Some(LastFailure {
        iteration: failure.iteration,
        phase: failure.phase,
        at: seconds(failure.at),
        reason: shortened(&failure.reason),
        is_rollback: failure.is_rollback,
    })
}

fn seconds(time: Timestamp) -> f64 {
    time.as_millisecond() as f64 / 1000.0
}

fn shortened(text: &str) -> String {
    text.chars().take(MAX_REASON_CHARS).collect()
}
