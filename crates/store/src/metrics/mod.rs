//! Metrics of an iteration: crash, block and success rates, number of steps, length of replies. Pure functions compute
//! them from summaries; reading the save path is a thin layer on top.

mod category;
mod coverage;
mod pass_at_k;
mod table;
mod task_key;

use serde::Serialize;

pub use category::{Category, CrashReason, DifficultyClass, category, crash_reason};
pub use coverage::{Coverage, CoverageGroup};
pub use pass_at_k::{Attempts, PassAtK};
pub use task_key::{SiteKey, TaskKey, site};

use crate::iteration;
use crate::layout::{IterationId, SavePath, Split};
use crate::pt::PtError;
use crate::summary::Summary;
use proto::trajectory::Outcome;

/// Metrics of a set of trajectories. A rate over zero trajectories is zero.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Metrics {
    pub total_trajectories: u64,
    pub crashed: u64,
    pub crashed_rate: f64,
    pub blocked: u64,
    pub blocked_rate: f64,
    /// Trajectories that are judged and neither crashed nor blocked: the denominator of `success_rate`.
    pub scored: u64,
    pub successes: u64,
    pub success_rate: f64,
    pub avg_steps: f64,
    pub avg_chars_per_response: f64,
    pub goback_rate: f64,
    /// Collected, but not judged because of an error of the judge.
    pub judge_errors: u64,
    /// Lost because of infrastructure errors.
    pub infra_lost: u64,
    pub cancelled: u64,
    /// Ended by a request that the archive of a replay lacks.
    pub replay_misses: u64,
}

impl Metrics {
    pub fn of<'a>(summaries: impl IntoIterator<Item = &'a Summary>) -> Self {
        let mut metrics = Self::default();
        let (mut kept, mut steps, mut chars, mut gobacks) = (0, 0, 0, 0);
        for summary in summaries {
            metrics.total_trajectories += 1;
            match summary.outcome {
                Some(Outcome::JudgeError) => metrics.judge_errors += 1,
                Some(Outcome::InfraLost) => metrics.infra_lost += 1,
                Some(Outcome::Cancelled) => metrics.cancelled += 1,
                Some(Outcome::ReplayMiss) => metrics.replay_misses += 1,
                _ => {}
            }
            match category(summary) {
                Category::Cancelled | Category::ReplayMiss => continue,
                Category::Crashed(_) => {
                    metrics.crashed += 1;
                    continue;
                }
                Category::Blocked => {
                    metrics.blocked += 1;
                    continue;
                }
                Category::Unscored => {}
                Category::Scored { is_success } => {
                    metrics.scored += 1;
                    metrics.successes += u64::from(is_success);
                }
            }
            kept += 1;
            steps += summary.steps;
            chars += summary.response_chars;
            gobacks += summary.gobacks;
        }
        let total = metrics.total_trajectories;
        metrics.crashed_rate = rate(metrics.crashed, total);
        metrics.blocked_rate = rate(metrics.blocked, metrics.counted() - metrics.crashed);
        metrics.success_rate = rate(metrics.successes, metrics.scored);
        metrics.avg_steps = rate(steps, kept);
        metrics.avg_chars_per_response = rate(chars, steps);
        metrics.goback_rate = rate(gobacks, steps);
        metrics
    }

    /// Returns the number of trajectories that count in rates: all but cancelled ones and those that an incomplete archive
    /// ended.
    pub const fn counted(&self) -> u64 {
        self.total_trajectories - self.cancelled - self.replay_misses
    }
}

fn rate(part: u64, total: u64) -> f64 {
    if total == 0 { 0.0 } else { part as f64 / total as f64 }
}

/// The metrics of one named group of trajectories.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Group {
    pub name: String,
    #[serde(flatten)]
    pub metrics: Metrics,
}

/// Metrics of a set of trajectories, in total and by group.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Breakdown {
    pub overall: Metrics,
    /// Groups `easy`, `medium` and `hard`; empty groups are left out.
    pub by_difficulty: Vec<Group>,
    /// Groups by domain, sorted by name.
    pub by_domain: Vec<Group>,
    /// How well archives answered the requests of replayed episodes, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coverage: Option<Coverage>,
}

impl Breakdown {
    pub fn of(summaries: &[Summary]) -> Self {
        let mut domains: Vec<&str> = summaries.iter().map(|summary| summary.domain.as_str()).collect();
        domains.sort_unstable();
        domains.dedup();
        let group = |name: &str, belongs: &dyn Fn(&Summary) -> bool| Group {
            name: name.to_owned(),
            metrics: Metrics::of(summaries.iter().filter(|summary| belongs(summary))),
        };
        let by_difficulty = DifficultyClass::ALL
            .iter()
            .map(|class| group(class.as_str(), &|summary| DifficultyClass::of(summary.difficulty) == *class))
            .filter(|group| group.metrics.total_trajectories > 0)
            .collect();
        let by_domain =
            domains.iter().map(|domain| group(domain, &|summary| summary.domain == *domain)).collect();
        Self { overall: Metrics::of(summaries), by_difficulty, by_domain, coverage: Coverage::of(summaries) }
    }
}

/// The trajectories that a report covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    Iteration(u64),
    /// The latest trajectories of the split, from as many iterations as needed.
    Last(usize),
}

/// The metrics of a split and what they cover.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MetricsReport {
    pub split: Split,
    pub scope: Scope,
    #[serde(flatten)]
    pub breakdown: Breakdown,
    /// Success of the tasks that were repeated within an iteration, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pass_at_k: Option<PassAtK>,
}

/// Metrics of the latest iteration of a split or, if `last` is given, of its latest trajectories. Returns `None` if
/// the split has no files.
pub fn of_save_path(
    save_path: &SavePath,
    split: Split,
    last: Option<usize>,
) -> Result<Option<MetricsReport>, PtError> {
    let directory = save_path.split_directory(split);
    let iterations =
        iteration::iterations(save_path, split).map_err(|error| PtError::io("list", &directory, error))?;
    let Some(latest) = iterations.last().copied() else { return Ok(None) };
    let Some(window_size) = last else {
        return of_iteration(save_path, split, latest).map(Some);
    };
    let mut window: Vec<Summary> = Vec::new();
    let mut attempts: Vec<Attempts> = Vec::new();
    for number in iterations.into_iter().rev() {
        if window.len() >= window_size {
            break;
        }
        let mut earlier = iteration::summaries_of(save_path, split, number)?;
        let surplus = (window.len() + earlier.len()).saturating_sub(window_size);
        earlier.drain(..surplus);
        // The policy may differ between iterations, so that only trajectories of one iteration are repeats.
        attempts.extend(Attempts::by_task(&earlier).into_values());
        window.splice(..0, earlier);
    }
    Ok(Some(MetricsReport {
        split,
        scope: Scope::Last(window_size),
        breakdown: Breakdown::of(&window),
        pass_at_k: PassAtK::of(&attempts),
    }))
}

/// Metrics of trajectories of one iteration, such as those that one rank collected.
pub fn of_summaries(id: IterationId, summaries: &[Summary]) -> MetricsReport {
    let attempts: Vec<Attempts> = Attempts::by_task(summaries).into_values().collect();
    MetricsReport {
        split: id.split,
        scope: Scope::Iteration(id.iteration),
        breakdown: Breakdown::of(summaries),
        pass_at_k: PassAtK::of(&attempts),
    }
}

/// Metrics of one iteration of a split, over the files of all ranks.
pub fn of_iteration(save_path: &SavePath, split: Split, iteration: u64) -> Result<MetricsReport, PtError> {
    let summaries = iteration::summaries_of(save_path, split, iteration)?;
    Ok(of_summaries(IterationId::new(split, iteration), &summaries))
}
