//! Merges the files of all ranks: rank 0 waits, up to a timeout, until the other ranks have written their files to the shared
//! disk.

use std::{sync::Arc, time::Duration};

use store::{
    IterationId, SavePath,
    aggregate::{self, AggregateError, AggregateOptions, AggregateReport},
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::plan::{Plan, SharedPlan};

const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// Limits how often a directory on a network disk is listed.
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// When all tasks are done, live ranks have this long to turn their journals into files, which are faster to read.
const FINISH_TIMEOUT: Duration = Duration::from_secs(5);
/// Attempts at a merge: a journal that becomes a file while it is read is read again.
const MAX_ATTEMPTS: usize = 5;

/// The merge of one iteration.
#[derive(Clone)]
pub struct Merge {
    save_path: SavePath,
    id: IterationId,
    options: AggregateOptions,
}

#[derive(Debug)]
pub enum Merged {
    /// All trajectories of the run are in the file.
    Complete(AggregateReport),
    /// Some are missing, because of the timeout or because the ranks ended without them.
    Partial(AggregateReport),
    /// The wait was stopped on request. Nothing was merged.
    Stopped,
}

impl From<AggregateReport> for Merged {
    fn from(report: AggregateReport) -> Self {
        if report.missing_indices.is_empty() { Self::Complete(report) } else { Self::Partial(report) }
    }
}

impl Merge {
    /// Returns the merge of a run; `None` for a run with a single rank.
    pub fn of(plan: &Plan) -> Option<Self> {
        let shared = plan.shared.as_ref().filter(|_| plan.ranks.count() > 1)?;
        Some(Self::with(plan.save_path.clone(), plan.id, shared, plan.ranks.count()))
    }

    fn with(save_path: SavePath, id: IterationId, shared: &SharedPlan, ranks: usize) -> Self {
        let options = AggregateOptions {
            ranks: u32::try_from(ranks).ok(),
            tasks: Some(shared.total() as u64),
            run_id: Some(shared.run_id.clone()),
            ..AggregateOptions::default()
        };
        Self { save_path, id: id.with_rank(None), options }
    }

    pub const fn id(&self) -> IterationId {
        self.id
    }

    pub const fn save_path(&self) -> &SavePath {
        &self.save_path
    }

    /// Returns the command that performs this merge.
    pub fn command(&self) -> String {
        let IterationId { split, iteration, .. } = self.id;
        let ranks = self.options.ranks.unwrap_or(0);
        let root = self.save_path.root().display();
        format!("webgym aggregate {root} --split {split} --iteration {iteration} --ranks {ranks}")
    }

    /// Merges as soon as all files are complete, and after `timeout` whatever is there.
    pub async fn when_ready(
        self,
        all_done: bool,
        timeout: Duration,
        stop: &CancellationToken,
    ) -> Result<Merged, AggregateError> {
        let merge = Arc::new(self);
        let end = Instant::now().checked_add(timeout);
        let mut pause = FIRST_PAUSE;
        let mut reported = Vec::new();
        let started = Instant::now();
        // When all tasks are done, journals of dead ranks are merged as they are.
        let mut may_be_complete = all_done;
        loop {
            let absent = merge.absent()?;
            let is_finishing = started.elapsed() < FINISH_TIMEOUT && merge.is_any_being_written(&absent);
            if (may_be_complete && !is_finishing) || absent.is_empty() {
                match Arc::clone(&merge).attempt(false).await {
                    Err(AggregateError::Incomplete { .. } | AggregateError::NoFiles { .. }) => {
                        may_be_complete = false;
                    }
                    other => return other.map(Merged::from),
                }
            }
            if reported != absent && !may_be_complete {
                tracing::info!(
                    "waiting for ranks {absent:?} to finish; after {} s, the available files are merged",
                    timeout.as_secs()
                );
                reported = absent;
            }
            if end.is_some_and(|end| Instant::now() >= end) {
                return Arc::clone(&merge).attempt(true).await.map(Merged::from);
            }
            let until = end.map_or(pause, |end| end.saturating_duration_since(Instant::now()).min(pause));
            tokio::select! {
                () = tokio::time::sleep(until) => {}
                () = stop.cancelled() => return Ok(Merged::Stopped),
            }
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }

    /// Returns the ranks without a finished file.
    fn absent(&self) -> Result<Vec<u32>, AggregateError> {
        let IterationId { split, iteration, .. } = self.id;
        let status = aggregate::rank_status(&self.save_path, split, iteration, self.options.ranks);
        let failed = |error| store::pt::PtError::io("list", &self.save_path.split_directory(split), error);
        let status = status.map_err(failed)?;
        let mut absent = [status.missing, status.unfinished].concat();
        absent.sort_unstable();
        Ok(absent)
    }

    fn is_any_being_written(&self, ranks: &[u32]) -> bool {
        let journal = |rank: &u32| self.save_path.journal(self.id.with_rank(Some(*rank)));
        ranks.iter().any(|rank| store::journal::is_being_written(&journal(rank)))
    }

    async fn attempt(self: Arc<Self>, partial: bool) -> Result<AggregateReport, AggregateError> {
        let work = tokio::task::spawn_blocking(move || {
            let options = AggregateOptions { partial, ..self.options.clone() };
            let merge = || aggregate::aggregate(&self.save_path, self.id.split, self.id.iteration, &options);
            let mut merged = merge();
            for _ in 1..MAX_ATTEMPTS {
                if !matches!(merged, Err(AggregateError::File(_))) {
                    break;
                }
                merged = merge();
            }
            merged
        });
        work.await.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
    }
}
