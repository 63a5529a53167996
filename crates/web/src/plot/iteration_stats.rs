//! The numbers that the curves need from one iteration, small enough to keep for all iterations of a long training.

use std::hash::{DefaultHasher, Hash, Hasher};

use store::Summary;
use store::metrics::{Category, DifficultyClass, Metrics, category};

use super::chart::Line;

/// Identifies a task by its name and website: trajectories with the same key belong to one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TaskKey(u64);

impl TaskKey {
    pub fn of(summary: &Summary) -> Self {
        Self(hash(&(&summary.task_name, site(&summary.website))))
    }
}

/// Returns the host of a URL without its port: practice sites get a different port in every run.
fn site(website: &str) -> &str {
    let host = website.split_once("://").map_or(website, |(_, rest)| rest);
    let host = host.split(['/', '?', '#']).next().unwrap_or(host);
    host.rsplit_once(':')
        .filter(|(_, port)| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()))
        .map_or(host, |(name, _)| name)
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Task and website of a trajectory, to measure how many were seen in earlier iterations.
#[derive(Clone, Copy, Debug)]
pub(super) struct TaskAndSite {
    pub(super) class: DifficultyClass,
    pub(super) task: TaskKey,
    pub(super) website: u64,
}

/// The numbers of one line of the charts in one iteration. All but `metrics` count only trajectories that neither crashed
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
}

impl LineStats {
    fn of<'a>(summaries: impl Iterator<Item = &'a Summary> + Clone) -> Self {
        let mut stats = Self { metrics: Metrics::of(summaries.clone()), ..Self::default() };
        for summary in summaries {
            if matches!(category(summary), Category::Cancelled | Category::Crashed(_) | Category::Blocked) {
                continue;
            }
            stats.trajectories += 1;
            stats.steps += summary.steps;
            stats.transitions += summary.steps.saturating_sub(1);
            stats.unchanged += summary.unchanged_screenshots;
        }
        stats
    }
}

/// The numbers of one iteration.
#[derive(Clone, Debug)]
pub struct IterationStats {
    lines: [LineStats; Line::ALL.len()],
    pub(super) tasks: Vec<TaskAndSite>,
}

impl IterationStats {
    pub fn of(summaries: &[Summary]) -> Self {
        let lines = Line::ALL
            .map(|line| LineStats::of(summaries.iter().filter(move |summary| line.includes(summary))));
        let task = |summary: &Summary| TaskAndSite {
            class: DifficultyClass::of(summary.difficulty),
            task: TaskKey::of(summary),
            website: hash(&site(&summary.website)),
        };
        Self { lines, tasks: summaries.iter().map(task).collect() }
    }

    pub(super) fn line(&self, line: Line) -> &LineStats {
        &self.lines[line as usize]
    }

    pub(super) fn tasks(&self, line: Line) -> impl Iterator<Item = &TaskAndSite> {
        self.tasks.iter().filter(move |task| line.class().is_none_or(|class| class == task.class))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn site_is_host_without_port_and_path() {
        let table = [
            ("https://a.example", "a.example"),
            ("https://a.example:8443/x?y", "a.example"),
            ("a.example/x:1", "a.example"),
            ("http://[::1]:80/", "[::1]"),
            ("nonsense:", "nonsense:"),
            ("", ""),
        ];
        for (website, host) in table {
            assert_eq!(site(website), host, "{website}");
        }
    }
}
