//! A rank other than 0: reads the leader's state and does its part of the phase that runs.

use std::time::Duration;

use store::loop_state::{IterationState, LoopState, LoopStatus, Phase, PhaseStatus};

use super::worker::Worker;
use super::{LoopError, LoopOutcome, PhaseError};
use crate::ranks::{Job, JobStatus, Ranks};

const POLL_INTERVAL: Duration = Duration::from_millis(300);

pub(super) async fn follow(mut worker: Worker) -> Result<LoopOutcome, LoopError> {
    let outcome = follow_state(&mut worker).await;
    worker.server.stop().await;
    outcome
}

async fn follow_state(worker: &mut Worker) -> Result<LoopOutcome, LoopError> {
    let (stop, ranks) = (worker.launcher.stop.soft.clone(), worker.ranks.clone());
    let mut joined =
        Joined { ranks: ranks.clone(), first_beat: ranks.leader().map(|(beat, _)| beat), run_id: None };
    let mut done: Option<Job> = None;
    let mut leader = std::pin::pin!(ranks.watch_leader());
    loop {
        let state = LoopState::read(&worker.save_path)?.filter(|state| joined.is_current(state));
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

/// Which start of the loop this rank follows. The state on disk may be that of a leader that was killed.
struct Joined {
    ranks: Ranks,
    /// The leader's heartbeat when this rank started, which may be a dead one's.
    first_beat: Option<u64>,
    run_id: Option<String>,
}

impl Joined {
    /// Returns whether a state is that of a leader that lives, or lived after this rank had joined it.
    fn is_current(&mut self, state: &LoopState) -> bool {
        if let Some((beat, run_id)) = self.ranks.leader()
            && Some(beat) != self.first_beat
        {
            self.run_id = run_id.or_else(|| self.run_id.take());
        }
        self.run_id.as_deref() == Some(&*state.run_id)
    }
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
