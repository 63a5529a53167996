//! How well the archives of replayed episodes answered the requests of their pages: in total, by website and by task.

use std::collections::BTreeMap;

use proto::network::MatchCounts;
use proto::trajectory::TaskId;
use serde::Serialize;

use super::{TaskKey, task_key::site};
use crate::summary::Summary;

/// Requests of replayed episodes, by how the archive answered them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Coverage {
    pub overall: CoverageGroup,
    /// By the website of the task, sorted by name.
    pub by_site: Vec<CoverageGroup>,
    /// The tasks with the most missed requests, at most [`Self::MAX_TASKS`].
    pub by_task: Vec<CoverageGroup>,
}

/// The requests of one group of trajectories.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CoverageGroup {
    pub name: String,
    pub trajectories: u64,
    #[serde(flatten)]
    pub matches: MatchCounts,
}

impl CoverageGroup {
    fn named(name: String) -> Self {
        Self { name, ..Self::default() }
    }

    fn add(&mut self, matches: &MatchCounts) {
        self.trajectories += 1;
        self.matches.add(matches);
    }
}

impl Coverage {
    pub const MAX_TASKS: usize = 50;

    /// Returns `None` if no trajectory was replayed.
    pub fn of<'a>(summaries: impl IntoIterator<Item = &'a Summary>) -> Option<Self> {
        let mut overall = CoverageGroup::named("overall".to_owned());
        let mut sites: BTreeMap<&str, CoverageGroup> = BTreeMap::new();
        let mut tasks: BTreeMap<TaskKey, CoverageGroup> = BTreeMap::new();
        for summary in summaries {
            let Some(matches) = &summary.replay else { continue };
            overall.add(matches);
            let site = site(&summary.website);
            sites.entry(site).or_insert_with(|| CoverageGroup::named(site.to_owned())).add(matches);
            let task = tasks.entry(TaskKey::of(summary));
            task.or_insert_with(|| CoverageGroup::named(task_name(summary))).add(matches);
        }
        let mut by_task: Vec<CoverageGroup> = tasks.into_values().collect();
        by_task.sort_by(|a, b| b.matches.missed.cmp(&a.matches.missed).then_with(|| a.name.cmp(&b.name)));
        by_task.truncate(Self::MAX_TASKS);
        let by_site = sites.into_values().collect();
        (overall.trajectories > 0).then_some(Self { overall, by_site, by_task })
    }
}

fn task_name(summary: &Summary) -> String {
    match &summary.task_id {
        Some(TaskId::Text(id)) => id.clone(),
        Some(TaskId::Number(id)) => id.to_string(),
        None => summary.task_name.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_site_and_task() {
        let summary = |id: i64, website: &str, exact, missed| Summary {
            task_id: Some(TaskId::Number(id)),
            website: website.to_owned(),
            replay: Some(MatchCounts { exact, missed, ..MatchCounts::default() }),
            ..Summary::default()
        };
        let live = Summary { website: "https://live.test".into(), ..Summary::default() };
        assert_eq!(Coverage::of([&live]), None);
        let all = [
            summary(1, "https://shop.test/a", 10, 0),
            summary(1, "https://shop.test/a", 9, 1),
            summary(2, "http://shop.test:8080/b", 5, 3),
            summary(3, "https://bank.test", 4, 0),
            live,
        ];
        let coverage = Coverage::of(&all).unwrap();
        let short = |group: &CoverageGroup| {
            (group.name.clone(), group.trajectories, group.matches.exact, group.matches.missed)
        };
        assert_eq!(short(&coverage.overall), ("overall".into(), 4, 28, 4));
        let sites: Vec<_> = coverage.by_site.iter().map(short).collect();
        assert_eq!(sites, [("bank.test".into(), 1, 4, 0), ("shop.test".into(), 3, 24, 4)]);
        let tasks: Vec<_> = coverage.by_task.iter().map(short).collect();
        assert_eq!(tasks, [("2".into(), 1, 5, 3), ("1".into(), 2, 19, 1), ("3".into(), 1, 4, 0)]);
    }
}
