//! Rank 0: walks through the phases, records each before it starts and after it ends, tries failed ones again, and rolls a
//! checkpoint back that cannot be served.

use store::loop_state::{Failure, IterationState, LoopState, LoopStatus, Phase, PhaseStatus};

use super::worker::{Done, Worker};
use super::{LoopError, LoopOutcome, PhaseError, place};
use crate::config::{LoopConfig, seconds};
use crate::phases;
use crate::ranks::{Job, JobStatus, RankError};
use crate::schedule::{self, Next};
use crate::server::ServeError;

struct Leader {
    worker: Worker,
    state: LoopState,
}

pub(super) async fn lead(worker: Worker) -> Result<LoopOutcome, LoopError> {
    let saved = LoopState::read(&worker.save_path)?;
    let state = place::find(&worker.config, &worker.save_path, &worker.checkpoints, saved, worker.resume)?;
    worker.ranks.set_run_id(&state.run_id);
    let mut leader = Leader { worker, state };
    let ended = leader.walk().await;
    leader.worker.server.stop().await;
    (leader.state.status, leader.state.reason) = match &ended {
        Ok(LoopOutcome::Finished) => (LoopStatus::Finished, None),
        Ok(LoopOutcome::Stopped) => (LoopStatus::Stopped, None),
        Err(error) => (LoopStatus::Failed, Some(error.to_string())),
    };
    leader.save()?;
    ended
}

impl Leader {
    fn save(&self) -> Result<(), LoopError> {
        Ok(self.state.write(&self.worker.save_path)?)
    }

    async fn walk(&mut self) -> Result<LoopOutcome, LoopError> {
        loop {
            if self.worker.launcher.stop.soft.is_cancelled() {
                return Ok(LoopOutcome::Stopped);
            }
            match schedule::next(&self.state, &self.worker.config) {
                Next::Begin(number) => self.begin(number)?,
                Next::Run(phase) => {
                    if self.run(phase).await? == LoopOutcome::Stopped {
                        return Ok(LoopOutcome::Stopped);
                    }
                }
                Next::Finished => {
                    let (iterations, model) = (self.worker.config.iterations, self.model_of_next());
                    tracing::info!("all {iterations} iterations are done; the model is {model}");
                    return Ok(LoopOutcome::Finished);
                }
            }
        }
    }

    fn begin(&mut self, number: u64) -> Result<(), LoopError> {
        let model = self.model_of_next();
        let phases = schedule::phases(&self.worker.config, number);
        if schedule::is_closing(&self.worker.config, number) {
            tracing::info!("the last checkpoint, {model}, is served once more");
        } else {
            tracing::info!("iteration {number} begins with {model}");
        }
        self.state.iterations.push(IterationState::new(number, model, phases));
        self.save()
    }

    /// The checkpoint of the last iteration; its own model if it has none; at the beginning the current or configured one.
    fn model_of_next(&self) -> String {
        let root = self.worker.save_path.root();
        match self.state.current() {
            Some(IterationState { checkpoint: Some(path), .. }) => root.join(path).display().to_string(),
            Some(iteration) => iteration.model.clone(),
            None => {
                let current = self.worker.checkpoints.current().map(|(path, _)| path.display().to_string());
                current.or_else(|| self.worker.config.model.clone()).unwrap_or_default()
            }
        }
    }

    fn iteration(&mut self) -> Option<&mut IterationState> {
        self.state.iterations.last_mut()
    }

    /// Runs a phase, again if it fails and attempts are left.
    async fn run(&mut self, phase: Phase) -> Result<LoopOutcome, LoopError> {
        let Some(iteration) = self.state.current().cloned() else { return Ok(LoopOutcome::Finished) };
        let number = iteration.number;
        self.mark_running(phase, number)?;
        let error = match self.attempt(phase, &iteration).await {
            Ok(done) => {
                self.mark_done(phase, &done)?;
                return Ok(LoopOutcome::Finished);
            }
            Err(error) if error.is_stop() => return Ok(LoopOutcome::Stopped),
            Err(error) => error,
        };
        let failures = self.mark_failed(phase, &error)?;
        let error = match error {
            PhaseError::Serve(reason) if failures > retries(&self.worker.config, phase) => {
                match self.roll_back(&iteration, reason).await? {
                    // The training is tried again.
                    None => return Ok(LoopOutcome::Finished),
                    Some(error) => error,
                }
            }
            error => error,
        };
        if !error.may_be_retried() || failures > retries(&self.worker.config, phase) {
            return Err(LoopError::Phase { iteration: number, phase, source: Box::new(error) });
        }
        tracing::warn!("iteration {number}, {phase}: {}; trying again", one_line(&error));
        let stop = self.worker.launcher.stop.soft.clone();
        tokio::select! {
            () = tokio::time::sleep(seconds(self.worker.config.retry_pause)) => Ok(LoopOutcome::Finished),
            () = stop.cancelled() => Ok(LoopOutcome::Stopped),
        }
    }

    /// Does the own part of a phase, and waits for the parts of other ranks.
    async fn attempt(&mut self, phase: Phase, iteration: &IterationState) -> Result<Done, PhaseError> {
        if !self.worker.is_shared(phase) {
            return self.worker.execute(phase, iteration).await;
        }
        let attempt = self.state.current().and_then(|now| now.phase(phase)).map_or(0, |state| state.failures);
        let job = Job { run_id: self.state.run_id.clone(), iteration: iteration.number, phase, attempt };
        let ranks = self.worker.ranks.clone();
        ranks.report(job.clone(), JobStatus::Running);
        match phase {
            Phase::Serve | Phase::Train => {
                self.worker.awaited = Some(job.clone());
                let done = self.worker.execute(phase, iteration).await;
                self.worker.awaited = None;
                let both = match done {
                    Ok(done) => ranks.others_done(&job).await.map(|()| done).map_err(PhaseError::from),
                    failed => failed,
                };
                both.inspect_err(|error| self.name_dead(error))
            }
            // The merge of the collected files waits for the others; here, dead ones are only named.
            _ => {
                let (state, save_path) = (&mut self.state, self.worker.save_path.clone());
                let mut own = std::pin::pin!(self.worker.execute(phase, iteration));
                let mut is_named = false;
                loop {
                    tokio::select! {
                        done = &mut own => return done,
                        error = ranks.watch(), if !is_named => {
                            is_named = true;
                            record_dead(state, &error);
                            let _ = state.write(&save_path);
                        }
                    }
                }
            }
        }
    }

    fn name_dead(&mut self, error: &PhaseError) {
        if let PhaseError::Rank(error) = error {
            record_dead(&mut self.state, error);
        }
    }

    fn mark_running(&mut self, phase: Phase, number: u64) -> Result<(), LoopError> {
        let log = phases::log_name(number, phase, self.worker.ranks.own);
        let has_log = !matches!(phase, Phase::Verify | Phase::Switch);
        if let Some(state) = self.iteration().and_then(|iteration| iteration.phase_mut(phase)) {
            state.status = PhaseStatus::Running;
            (state.started_at, state.ended_at) = (Some(jiff::Timestamp::now()), None);
            state.log = has_log.then_some(log);
        }
        tracing::info!("iteration {number}: {phase}");
        self.save()
    }

    fn mark_done(&mut self, phase: Phase, done: &Done) -> Result<(), LoopError> {
        let checkpoints = self.worker.checkpoints.clone();
        let Some(iteration) = self.state.iterations.last_mut() else { return Ok(()) };
        let number = iteration.number;
        if let Some(state) = iteration.phase_mut(phase) {
            state.status = PhaseStatus::Done;
            state.ended_at = Some(jiff::Timestamp::now());
            state.reason = match done {
                Done::Done(remark) => remark.clone(),
                Done::NoData(reason) => Some(reason.clone()),
            };
        }
        if let Done::NoData(reason) = done {
            tracing::warn!("iteration {number}: {reason}");
            for phase in [Phase::Train, Phase::Verify, Phase::Switch] {
                if let Some(state) = iteration.phase_mut(phase) {
                    (state.status, state.reason) = (PhaseStatus::Skipped, Some(reason.clone()));
                }
            }
        }
        if phase == Phase::Switch {
            iteration.checkpoint = Some(checkpoints.relative(&checkpoints.published(number)));
        }
        self.save()?;
        if phase == Phase::Serve
            && let Some(latest) = number.checked_sub(1)
        {
            // Only a checkpoint that was served may replace older ones.
            let removed = checkpoints.remove_old(latest, self.worker.config.checkpoint.keep);
            removed.unwrap_or_else(|error| tracing::warn!("old checkpoints are not removed: {error}"));
        }
        Ok(())
    }

    /// Records a failed attempt. Returns the number of failures.
    fn mark_failed(&mut self, phase: Phase, error: &PhaseError) -> Result<u32, LoopError> {
        let is_server_lost = matches!(error, PhaseError::ServerLost(_));
        self.record_failure(phase, error.to_string(), false);
        let Some(iteration) = self.iteration() else { return Ok(0) };
        let mut failures = 0;
        if let Some(state) = iteration.phase_mut(phase) {
            state.status = PhaseStatus::Failed;
            state.failures += 1;
            state.ended_at = Some(jiff::Timestamp::now());
            state.reason = Some(error.to_string());
            failures = state.failures;
        }
        if is_server_lost && let Some(serve) = iteration.phase_mut(Phase::Serve) {
            serve.status = PhaseStatus::Pending;
        }
        // A checkpoint that is not usable is trained again, within the limits of the training.
        if phase == Phase::Verify
            && let Some(train) = iteration.phase_mut(Phase::Train)
        {
            train.status = PhaseStatus::Pending;
        }
        self.save()?;
        Ok(failures)
    }

    fn record_failure(&mut self, phase: Phase, reason: String, is_rollback: bool) {
        let Some(iteration) = self.state.current().map(|iteration| iteration.number) else { return };
        let at = jiff::Timestamp::now();
        self.state.last_failure = Some(Failure { iteration, phase, at, reason, is_rollback });
    }

    /// The model of this iteration cannot be served. If the model before it can, the checkpoint is set aside and trained
    /// again, within the limits of the training. Returns the error that ends the loop, or `None` to go on.
    async fn roll_back(
        &mut self,
        iteration: &IterationState,
        reason: ServeError,
    ) -> Result<Option<PhaseError>, LoopError> {
        let before =
            self.state.iterations.len().checked_sub(2).map(|index| self.state.iterations[index].clone());
        let Some(trained) = before.filter(|before| before.checkpoint.is_some()) else {
            return Ok(Some(reason.into()));
        };
        if reason.is_independent_of_model() {
            return Ok(Some(reason.into()));
        }
        tracing::warn!(
            "{} cannot be served: {}; trying {}, the last good model",
            iteration.model,
            one_line(&reason),
            trained.model
        );
        if let Err(old) = self.worker.serve(trained.number, &trained.model).await {
            return Ok(Some(PhaseError::NothingServable { new: Box::new(reason), old: Box::new(old) }));
        }
        self.worker.server.stop().await;
        match self.set_aside(&trained, &reason) {
            Err(error) => Ok(Some(error)),
            Ok(error) => {
                let rollbacks = self.state.iterations.last().map_or(0, |trained| trained.rollbacks);
                self.record_failure(Phase::Train, error.to_string(), true);
                self.save()?;
                if rollbacks > self.worker.config.train.retries {
                    return Ok(Some(error));
                }
                tracing::warn!("{error}; training again");
                Ok(None)
            }
        }
    }

    fn set_aside(&mut self, trained: &IterationState, reason: &ServeError) -> Result<PhaseError, PhaseError> {
        let checkpoints = &self.worker.checkpoints;
        let good = std::path::Path::new(&trained.model);
        if good.is_dir() && good.starts_with(self.worker.save_path.checkpoints()) {
            checkpoints.switch_to(good)?;
        } else if checkpoints.folder_of_others().is_dir() && good == checkpoints.link() {
            checkpoints.switch_to(&checkpoints.folder_of_others())?;
        } else {
            checkpoints.remove_link()?;
        }
        let aside = checkpoints.set_aside(trained.number)?;
        self.state.iterations.pop();
        if let Some(last) = self.state.iterations.last_mut() {
            last.checkpoint = None;
            last.rollbacks += 1;
            for phase in [Phase::Train, Phase::Verify, Phase::Switch] {
                if let Some(state) = last.phase_mut(phase) {
                    state.status = PhaseStatus::Pending;
                    state.reason = Some(format!("rolled back: {reason}"));
                }
            }
        }
        let (iteration, model) = (trained.number, trained.model.clone());
        Ok(PhaseError::RolledBack { iteration, reason: reason.to_string(), aside, model })
    }
}

fn record_dead(state: &mut LoopState, error: &RankError) {
    tracing::warn!("{error}");
    if let RankError::Dead { dead, .. } = error
        && !state.dead_ranks.contains(dead)
    {
        state.dead_ranks.push(dead.clone());
    }
}

fn retries(config: &LoopConfig, phase: Phase) -> u32 {
    match phase {
        Phase::Serve => config.serve.retries,
        Phase::Collect => config.collect.retries,
        Phase::Evaluate => config.evaluate.rollout.retries,
        Phase::Export => config.export.retries,
        Phase::Train | Phase::Verify => config.train.retries,
        Phase::Switch => 0,
    }
}

/// Formats an error for the log, in which a message is one line.
fn one_line(error: &impl std::fmt::Display) -> String {
    error.to_string().lines().map(str::trim).collect::<Vec<_>>().join(" | ")
}
