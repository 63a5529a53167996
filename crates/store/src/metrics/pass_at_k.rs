//! pass@k: the share of repeated tasks that k attempts solve at least once.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Category, TaskKey, category};
use crate::summary::Summary;

/// The judged trajectories of one task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attempts {
    pub judged: u64,
    pub successes: u64,
}

impl Attempts {
    /// Counts the judged trajectories of every task.
    pub fn by_task<'a>(summaries: impl IntoIterator<Item = &'a Summary>) -> BTreeMap<TaskKey, Self> {
        let mut tasks: BTreeMap<TaskKey, Self> = BTreeMap::new();
        for summary in summaries {
            if let Category::Scored { is_success } = category(summary) {
                let attempts = tasks.entry(TaskKey::of(summary)).or_default();
                attempts.judged += 1;
                attempts.successes += u64::from(is_success);
            }
        }
        tasks
    }

    const fn is_repeated(self) -> bool {
        self.judged >= 2
    }

    /// Estimates without bias the probability that at least one of `k` attempts succeeds: 1 − C(n−c, k) / C(n, k) for c
    /// successes in n attempts.
    fn pass_at(self, k: u64) -> f64 {
        let failures = self.judged - self.successes;
        if failures < k {
            return 1.0;
        }
        // C(n−c, k) / C(n, k) as a product, because the binomial coefficients themselves overflow.
        let all_fail: f64 =
            (0..k).map(|drawn| (failures - drawn) as f64 / (self.judged - drawn) as f64).product();
        1.0 - all_fail
    }
}

/// Success of repeated tasks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PassAtK {
    /// The smallest number of judged trajectories of a repeated task.
    pub k: u64,
    /// Number of tasks with several judged trajectories.
    pub tasks: u64,
    /// pass@1: the mean over these tasks of the share of attempts that succeeded.
    pub mean: f64,
    /// pass@k.
    pub rate: f64,
}

impl PassAtK {
    /// Returns the largest k that every repeated task allows; `None` if no task is repeated.
    pub fn largest_k(tasks: impl IntoIterator<Item = Attempts>) -> Option<u64> {
        tasks.into_iter().filter(|task| task.is_repeated()).map(|task| task.judged).min()
    }

    /// Averages over the repeated tasks, each of which must have at least `k` attempts; `None` if no task is repeated.
    pub fn at(k: u64, tasks: impl IntoIterator<Item = Attempts>) -> Option<Self> {
        let (mut count, mut single, mut sum) = (0, 0.0, 0.0);
        for task in tasks.into_iter().filter(|task| task.is_repeated()) {
            count += 1;
            single += task.pass_at(1);
            sum += task.pass_at(k);
        }
        (count > 0).then(|| Self { k, tasks: count, mean: single / count as f64, rate: sum / count as f64 })
    }

    /// Computes pass@k with the largest k that every repeated task allows; `None` if no task is repeated.
    pub fn of(tasks: &[Attempts]) -> Option<Self> {
        Self::at(Self::largest_k(tasks.iter().copied())?, tasks.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempts(judged: u64, successes: u64) -> Attempts {
        Attempts { judged, successes }
    }

    #[test]
    fn estimate_equals_the_share_of_draws_with_a_success() {
        // Of the 6 pairs of 4 attempts, 3 contain the only success.
        let table = [
            (attempts(4, 1), 2, 0.5),
            (attempts(4, 2), 2, 5.0 / 6.0),
            (attempts(4, 0), 4, 0.0),
            (attempts(4, 1), 4, 1.0),
            (attempts(4, 4), 2, 1.0),
            (attempts(3, 1), 1, 1.0 / 3.0),
        ];
        for (task, k, expected) in table {
            assert!((task.pass_at(k) - expected).abs() < 1e-12, "{task:?}, k = {k}: {}", task.pass_at(k));
        }
        let many = attempts(5000, 1).pass_at(2500);
        assert!((many - 0.5).abs() < 1e-9, "{many}");
    }

    #[test]
    fn k_is_the_smallest_number_of_repeats() {
        let tasks = [attempts(4, 1), attempts(2, 0), attempts(1, 1)];
        assert_eq!(
            PassAtK::of(&tasks),
            Some(PassAtK { k: 2, tasks: 2, mean: 0.125, rate: 0.25 }),
            "the single attempt is left out"
        );
        assert_eq!(PassAtK::of(&[attempts(1, 1), attempts(0, 0)]), None);
        assert_eq!(PassAtK::at(2, [attempts(1, 1)]), None);
    }
}
