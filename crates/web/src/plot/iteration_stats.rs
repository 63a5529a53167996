//! The numbers that the curves need from one iteration, small enough to keep for all iterations of a long training.

use std::collections::{HashMap, HashSet};

use proto::network::MatchCounts;
use store::Summary;
use store::metrics::{Attempts, Category, DifficultyClass, Metrics, PassAtK, SiteKey, TaskKey, category};

use super::chart::Line;

/// Task and website of a trajectory, to measure how many were seen in earlier iterations.
#[derive(Clone, Copy, Debug)]
pub(super) struct TaskAndSite {
    pub(super) class: DifficultyClass,
    pub(super) task: TaskKey,
    pub(super) website: SiteKey,
}

/// The numbers of one line of the charts in one iteration. All but `metrics` and `replay` count only trajectories that neither crashed
/// nor were blocked.
#[derive(Clone, Debug, Default)]
pub(super) struct LineStats {
    pub(super) metrics: Metrics,
    pub(super) trajectories: u64,
    pub(super) steps: u64,
    /// Steps that are followed by another one.
    pub(super) transitions: u64,
    /// Transitions that left the screenshot unchanged.
    pub(super) unchanged: u64,
    /// The same two numbers of successful trajectories.
    pub(super) transitions_in_successes: u64,
    pub(super) unchanged_in_successes: u64,
    /// Successful trajectories within the step limit of their difficulty.
    pub(super) successes_in_limit: u64,
    /// Steps of trajectories whose memory length is known, and its sum.
    pub(super) steps_with_memory: u64,
    pub(super) memory_chars: u64,
    pub(super) pass_at_k: Option<PassAtK>,
    /// Requests of all replayed trajectories.
    pub(super) replay: MatchCounts,
}

impl LineStats {
    /// `k` is that of the whole iteration, so that its lines are comparable.
    fn of<'a>(summaries: impl Iterator<Item = &'a Summary> + Clone, k: Option<u64>) -> Self {
        let attempts = Attempts::by_task(summaries.clone());
        let mut stats = Self {
            metrics: Metrics::of(summaries.clone()),
            pass_at_k: k.and_then(|k| PassAtK::at(k, attempts.into_values())),
            ..Self::default()
        };
        for summary in summaries {
            stats.add(summary);
        }
        stats
    }

    fn add(&mut self, summary: &Summary) {
        if let Some(matches) = &summary.replay {
            self.replay.add(matches);
        }
        let is_success = match category(summary) {
            Category::Cancelled | Category::ReplayMiss | Category::Crashed(_) | Category::Blocked => return,
            Category::Unscored => false,
            Category::Scored { is_success } => is_success,
        };
        let transitions = summary.steps.saturating_sub(1);
        self.trajectories += 1;
        self.steps += summary.steps;
        self.transitions += transitions;
        self.unchanged += summary.unchanged_screenshots;
        if let Some(chars) = summary.memory_chars {
            self.steps_with_memory += summary.steps;
            self.memory_chars += chars;
        }
        if is_success {
            self.transitions_in_successes += transitions;
            self.unchanged_in_successes += summary.unchanged_screenshots;
            self.successes_in_limit += u64::from(summary.steps <= step_limit(summary.difficulty));
        }
    }
}

/// Returns the number of steps within which a success counts in [`super::Measure::SuccessInLimit`].
const fn step_limit(difficulty: i64) -> u64 {
    match difficulty {
        1 => 5,
        2 => 8,
        3 => 10,
        4 => 15,
        5 => 20,
        6 => 30,
        _ => 50,
    }
}

/// The numbers of one iteration.
#[derive(Clone, Debug)]
pub struct IterationStats {
    lines: [LineStats; Line::ALL.len()],
    pub(super) tasks: Vec<TaskAndSite>,
}

impl IterationStats {
    pub fn of<'a>(summaries: impl IntoIterator<Item = &'a Summary>) -> Self {
        let summaries: Vec<&Summary> = summaries.into_iter().collect();
        let k = PassAtK::largest_k(Attempts::by_task(summaries.iter().copied()).into_values());
        let lines = Line::ALL.map(|line| {
            LineStats::of(summaries.iter().copied().filter(move |summary| line.includes(summary)), k)
        });
        let task = |summary: &&Summary| TaskAndSite {
            class: DifficultyClass::of(summary.difficulty),
            task: TaskKey::of(summary),
            website: SiteKey::of(summary),
        };
        Self { lines, tasks: summaries.iter().map(task).collect() }
    }

    pub(super) fn line(&self, line: Line) -> &LineStats {
        &self.lines[line as usize]
    }

    pub(super) fn tasks(&self, line: Line) -> impl Iterator<Item = &TaskAndSite> {
        self.tasks.iter().filter(move |task| line.class().is_none_or(|class| class == task.class))
    }
    /// Returns for each distinct task of a line whether another task of the iteration has the same website.
    pub(super) fn has_repeated_website(&self, line: Line) -> impl Iterator<Item = bool> {
        let mut tasks_of_site: HashMap<SiteKey, HashSet<TaskKey>> = HashMap::new();
        for task in &self.tasks {
            tasks_of_site.entry(task.website).or_default().insert(task.task);
        }
        let mut counted = HashSet::new();
        let distinct = self.tasks(line).filter(move |task| counted.insert(task.task));
        distinct.map(move |task| tasks_of_site.get(&task.website).is_some_and(|tasks| tasks.len() > 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn step_limit_grows_with_difficulty() {
        let limits: Vec<u64> = (1..=9).map(step_limit).collect();
        assert_eq!(limits, [5, 8, 10, 15, 20, 30, 50, 50, 50]);
    }
}
