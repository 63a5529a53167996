//! Summaries of the iterations in a save path: the list of iterations, the metrics of each, the trajectories of one task,
//! and the curves over iterations. What was computed from an iteration is kept until its files change.

use std::collections::HashMap;
use std::sync::Arc;

use proto::trajectory::Outcome;
use serde::Serialize;
use store::metrics::{Breakdown, TaskKey};
use store::{RunMetadata, Split, Summary};

use super::cache::{IterationCache, Memo};
use super::iteration::Iteration;
use super::{ViewError, outcome_of};
use crate::plot::{ChartOptions, Charts, Curves, IterationStats};

/// Split and number of an iteration, known from the directory listing alone.
#[derive(Debug, Serialize)]
pub struct IterationName {
    pub split: Split,
    pub iteration: u64,
}

/// The iterations of a save path.
#[derive(Debug, Serialize)]
pub struct Contents {
    pub save_path: String,
    pub iterations: Vec<IterationName>,
}

/// Metrics and metadata of one iteration.
#[derive(Clone, Debug, Serialize)]
pub struct Overview {
    pub split: Split,
    pub iteration: u64,
    pub is_finished: bool,
    pub trajectories: u64,
    /// Episodes that are still running.
    pub running: u64,
    /// Number of trajectories that the run plans, while it is not finished.
    pub announced: Option<u64>,
    pub steps: u64,
    pub bytes: u64,
    /// Time of the last change in Unix seconds.
    pub changed: u64,
    pub outcomes: Vec<(&'static str, u64)>,
    #[serde(flatten)]
    pub metrics: Breakdown,
    pub metadata: Option<RunMetadata>,
    pub problems: Vec<String>,
}

/// The result of one trajectory, as offered for comparison.
#[derive(Clone, Debug, Serialize)]
pub struct TrajectoryResult {
    pub key: String,
    pub outcome: &'static str,
    pub reward: i64,
    pub steps: u64,
}

/// A trajectory of the same task, with its iteration.
#[derive(Clone, Debug, Serialize)]
pub struct Sibling {
    pub split: Split,
    pub iteration: u64,
    #[serde(flatten)]
    pub result: TrajectoryResult,
}

/// Everything that is computed from one iteration.
#[derive(Debug)]
struct Computed {
    overview: Overview,
    stats: IterationStats,
    /// The numbers of the tasks out of distribution, if an iteration of the test split has others too.
    ood_stats: Option<IterationStats>,
    results: HashMap<TaskKey, Vec<TrajectoryResult>>,
}

/// Computes summaries of iterations and keeps them.
#[derive(Debug, Default)]
pub(super) struct Overviews {
    computed: Memo<Computed>,
}

impl Overviews {
    pub(super) fn contents(cache: &IterationCache) -> Result<Contents, ViewError> {
        let mut iterations = Vec::new();
        for split in Split::ALL {
            let numbers = cache.numbers(split)?;
            iterations.extend(numbers.into_iter().map(|iteration| IterationName { split, iteration }));
        }
        Ok(Contents { save_path: cache.save_path().root().display().to_string(), iterations })
    }

    fn computed(
        &self,
        cache: &IterationCache,
        split: Split,
        number: u64,
    ) -> Result<Arc<Computed>, ViewError> {
        self.computed.get(cache, (split, number), Computed::from_iteration)
    }

    pub(super) fn overview(
        &self,
        cache: &IterationCache,
        split: Split,
        number: u64,
    ) -> Result<Overview, ViewError> {
        Ok(self.computed(cache, split, number)?.overview.clone())
    }

    /// Returns every trajectory of a task, in all iterations of both splits.
    pub(super) fn siblings(&self, cache: &IterationCache, task: TaskKey) -> Result<Vec<Sibling>, ViewError> {
        let mut siblings = Vec::new();
        for IterationName { split, iteration } in Self::contents(cache)?.iterations {
            let computed = self.computed(cache, split, iteration)?;
            let results = computed.results.get(&task).into_iter().flatten();
            siblings.extend(results.map(|result| Sibling { split, iteration, result: result.clone() }));
        }
        Ok(siblings)
    }

    /// Returns messages about unreadable files and damaged lines of all iterations.
    pub(super) fn problems(&self, cache: &IterationCache) -> Result<Vec<String>, ViewError> {
        let mut problems = Vec::new();
        for IterationName { split, iteration } in Self::contents(cache)?.iterations {
            problems.extend(self.computed(cache, split, iteration)?.overview.problems.iter().cloned());
        }
        Ok(problems)
    }

    pub(super) fn charts(&self, cache: &IterationCache, options: ChartOptions) -> Result<Charts, ViewError> {
        let mut curves = Curves::default();
        for IterationName { split, iteration } in Self::contents(cache)?.iterations {
            let computed = self.computed(cache, split, iteration)?;
            let ood_stats = computed.ood_stats.as_ref().filter(|_| options.is_ood_only);
            curves.add(split, iteration, ood_stats.unwrap_or(&computed.stats));
        }
        if curves.is_empty() {
            let root = cache.save_path().root().display();
            let filter =
                if options.is_ood_only { " without test tasks whose distribution is not ood" } else { "" };
            return Err(ViewError::NothingToPlot(format!("{root}{filter}")));
        }
        Ok(curves.charts(options))
    }
}

impl Computed {
    fn from_iteration(iteration: &Iteration) -> Self {
        let finished: Vec<Summary> = iteration.finished().cloned().collect();
        let mut results: HashMap<TaskKey, Vec<TrajectoryResult>> = HashMap::new();
        for entry in iteration.entries() {
            let Some(summary) = iteration.summary(entry) else { continue };
            let result = TrajectoryResult {
                key: entry.key.clone(),
                outcome: outcome_of(summary, entry),
                reward: summary.reward,
                steps: summary.steps,
            };
            results.entry(TaskKey::of(summary)).or_default().push(result);
        }
        Self {
            overview: overview(iteration, &finished),
            stats: IterationStats::of(&finished),
            ood_stats: ood_stats(iteration.split, &finished),
            results,
        }
    }
}

fn ood_stats(split: Split, finished: &[Summary]) -> Option<IterationStats> {
    let is_filtered = split == Split::Test && !finished.iter().all(Summary::is_ood);
    is_filtered.then(|| IterationStats::of(finished.iter().filter(|summary| summary.is_ood())))
}

fn overview(iteration: &Iteration, finished: &[Summary]) -> Overview {
    let count =
        |outcome| finished.iter().filter(|summary| summary.outcome_or_inferred() == outcome).count() as u64;
    Overview {
        split: iteration.split,
        iteration: iteration.number,
        is_finished: iteration.is_finished,
        trajectories: finished.len() as u64,
        running: iteration.running() as u64,
        announced: iteration.planned(),
        steps: finished.iter().map(|summary| summary.steps).sum(),
        bytes: iteration.bytes(),
        changed: iteration.changed(),
        outcomes: Outcome::ALL.into_iter().map(|outcome| (outcome.as_str(), count(outcome))).collect(),
        metrics: Breakdown::of(finished),
        metadata: iteration.metadata().cloned(),
        problems: iteration.problems.clone(),
    }
}
