//! A rank other than 0: reads the leader's state and does its part of the phase that runs.

use std::time::Duration;

use store::loop_state::{IterationState, LoopState, LoopStatus, Phase, PhaseStatus};

use super::worker::Worker;
use super::{LoopError, LoopOutcome, PhaseError};
use crate::ranks::{Job, JobStatus};

const POLL_INTERVAL: Duration = Duration::from_millis(300);

pub(super) async fn follow(mut worker: Worker) -> Result<LoopOutcome, LoopError> {
    let outcome = follow_state(&mut worker).await;
    worker.server.stop().await;
    outcome
}

async fn follow_state(worker: &mut Worker) -> Result<LoopOutcome, LoopError> {
    let (stop, ranks) = (worker.launcher.stop.soft.clone(), worker.ranks.clone());
    // A state of an earlier start of the loop says nothing; its leader may have failed or finished.
    let stale = LoopState::read(&worker.save_path)?.map(|state| state.run_id);
    let mut done: Option<Job> = None;
    let mut leader = std::pin::pin!(ranks.watch_leader());
    loop {
        let state = LoopState::read(&worker.save_path)?;
        let state = state.filter(|state| is_live(state) || Some(&state.run_id) != stale.as_ref());
        match state.as_ref().map(|state| (state.status, current_job(state))) {
            Some((LoopStatus::Finished, _)) => return Ok(LoopOutcome::Finished),
            Some((LoopStatus::Stopped, _)) => return Ok(LoopOutcome::Stopped),
            Some((LoopStatus::Failed, _)) => {
                tracing::warn!("rank 0 has stopped the loop; its log has the reason");
                return Ok(LoopOutcome::Stopped);
            }
            Some((LoopStatus::Running, Some((job, iteration)))) if done.as_ref() != Some(&job) => {
                if let Stopped::Yes = take_part(worker, &job, iteration).await {
                    return Ok(LoopOutcome::Stopped);
                }
                done = Some(job);
            }
            _ => {}
        }
        tokio::select! {
            () = stop.cancelled() => return Ok(LoopOutcome::Stopped),
            error = &mut leader => return Err(LoopError::Leader(error)),
            () = tokio::time::sleep(POLL_INTERVAL) => {}
        }
    }
}

const fn is_live(state: &LoopState) -> bool {
    matches!(state.status, LoopStatus::Running)
}

/// The phase that runs now.
fn current_job(state: &LoopState) -> Option<(Job, &IterationState)> {
    let iteration = state.current()?;
    let phase = iteration.current().filter(|phase| phase.status == PhaseStatus::Running)?;
    let (run_id, attempt) = (state.run_id.clone(), phase.failures);
    Some((Job { run_id, iteration: iteration.number, phase: phase.phase, attempt }, iteration))
}

enum Stopped {
    Yes,
    No,
}

async fn take_part(worker: &mut Worker, job: &Job, iteration: &IterationState) -> Stopped {
    let needs_memory = matches!(job.phase, Phase::Export | Phase::Train);
    if needs_memory && worker.config.serve.stop_while_training {
        worker.server.stop().await;
    }
    if !worker.is_shared(job.phase) {
        return Stopped::No;
    }
    tracing::info!("iteration {}: {} (rank {})", job.iteration, job.phase, worker.ranks.own.number);
    worker.ranks.report(job.clone(), JobStatus::Running);
    // Collecting needs a model server, which a rank that was started again does not have yet.
    let mut result = Ok(());
    if matches!(job.phase, Phase::Collect | Phase::Evaluate) {
        result = worker.serve(iteration.number, &iteration.model).await.map_err(PhaseError::from);
    }
    if result.is_ok() {
        result = worker.execute(job.phase, iteration).await.map(drop);
    }
    let status = match result {
        Ok(()) => JobStatus::Done,
        Err(error) if error.is_stop() => return Stopped::Yes,
        Err(error) => {
            tracing::warn!("iteration {}, {}: {error}", job.iteration, job.phase);
            JobStatus::Failed(error.to_string())
        }
    };
    worker.ranks.report(job.clone(), status);
    Stopped::No
}
