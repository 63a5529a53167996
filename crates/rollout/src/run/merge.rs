//! Rank 0's last duty: waits until the other ranks have left their files on the shared disk, not for ever, and makes one
//! file of what is there.

use std::{sync::Arc, time::Duration};

use store::{
    IterationId, SavePath,
    aggregate::{self, AggregateError, AggregateOptions, AggregateReport},
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::plan::{Plan, SharedPlan};

const FIRST_LOOK: Duration = Duration::from_millis(200);
/// A directory on a network disk is looked at this seldom while nothing happens.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// When all is done, ranks that live get this long to turn their journals into files: less to read twice.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// A journal that becomes a file while it is read is read again from there.
const TRIES: usize = 5;

/// What is to become one.
#[derive(Clone)]
pub struct Merge {
    save_path: SavePath,
    id: IterationId,
    options: AggregateOptions,
}

#[derive(Debug)]
pub enum Merged {
    /// Every trajectory of the run is there.
    Whole(AggregateReport),
    /// Some are missing: the time was over, or the ranks are done without them.
    Partial(AggregateReport),
    /// Somebody asked to stop waiting. Nothing was merged.
    Stopped,
}

impl From<AggregateReport> for Merged {
    fn from(report: AggregateReport) -> Self {
        if report.missing_indices.is_empty() { Self::Whole(report) } else { Self::Partial(report) }
    }
}

impl Merge {
    /// Of a run of several ranks.
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

    /// The command that does it by hand.
    pub fn command(&self) -> String {
        let IterationId { split, iteration, .. } = self.id;
        let ranks = self.options.ranks.unwrap_or(0);
        let root = self.save_path.root().display();
        format!("webgym aggregate {root} --split {split} --iteration {iteration} --ranks {ranks}")
    }

    /// Merges as soon as everything is there; at the end of `patience` what is there.
    pub async fn when_ready(
        self,
        all_done: bool,
        patience: Duration,
        stop: &CancellationToken,
    ) -> Result<Merged, AggregateError> {
        let merge = Arc::new(self);
        let end = Instant::now().checked_add(patience);
        let mut pause = FIRST_LOOK;
        let mut told = Vec::new();
        let begun = Instant::now();
        // When all is known to be done, journals of ranks that died need not become files first.
        let mut looks_whole = all_done;
        loop {
            let absent = merge.absent()?;
            let ends = begun.elapsed() < LAST_WORDS && merge.is_any_being_written(&absent);
            if (looks_whole && !ends) || absent.is_empty() {
                match Arc::clone(&merge).attempt(false).await {
                    Err(AggregateError::Incomplete { .. } | AggregateError::NoFiles { .. }) => {
                        looks_whole = false
                    }
                    other => return other.map(Merged::from),
                }
            }
            if told != absent && !looks_whole {
                tracing::info!(
                    "waiting for ranks {absent:?} to finish; what is there is merged after {} s",
                    patience.as_secs()
                );
                told = absent;
            }
            if end.is_some_and(|end| Instant::now() >= end) {
                return Arc::clone(&merge).attempt(true).await.map(Merged::from);
            }
            let until = end.map_or(pause, |end| end.saturating_duration_since(Instant::now()).min(pause));
            tokio::select! {
                () = tokio::time::sleep(until) => {}
                () = stop.cancelled() => return Ok(Merged::Stopped),
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// The ranks that have left no finished file.
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
            let once = || aggregate::aggregate(&self.save_path, self.id.split, self.id.iteration, &options);
            let mut merged = once();
            for _ in 1..TRIES {
                if !matches!(merged, Err(AggregateError::File(_))) {
                    break;
                }
                merged = once();
            }
            merged
        });
        work.await.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
    }
}
