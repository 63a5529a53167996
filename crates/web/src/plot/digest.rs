//! What the curves need of an iteration, small enough to keep for all iterations of a long training at once.

use std::hash::{DefaultHasher, Hash, Hasher};

use store::Summary;
use store::metrics::{DifficultyClass, Metrics, Standing, standing};

use super::chart::Line;

/// What is asked and where: two trajectories with the same are attempts at one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TaskKey(u64);

impl TaskKey {
    pub fn of(summary: &Summary) -> Self {
        Self(hash(&(&summary.task_name, site(&summary.website))))
    }
}

/// The host of an address without its port: practice sites have another port in every run.
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

/// A trajectory, as far as diversity goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) class: DifficultyClass,
    pub(super) task: TaskKey,
    pub(super) website: u64,
}

/// The figures of one line of the charts in one iteration.
#[derive(Clone, Debug, Default)]
pub(super) struct Figures {
    pub(super) metrics: Metrics,
    /// Of the trajectories neither crashed nor blocked: how many, their steps that have a next one, and those of them
    /// whose screenshot equals the next.
    pub(super) kept: u64,
    pub(super) steps: u64,
    pub(super) transitions: u64,
    pub(super) unchanged: u64,
}

impl Figures {
    fn of<'a>(summaries: impl Iterator<Item = &'a Summary> + Clone) -> Self {
        let mut figures = Self { metrics: Metrics::of(summaries.clone()), ..Self::default() };
        for summary in summaries {
            if matches!(standing(summary), Standing::Crashed(_) | Standing::Blocked) {
                continue;
            }
            figures.kept += 1;
            figures.steps += summary.steps;
            figures.transitions += summary.steps.saturating_sub(1);
            figures.unchanged += summary.unchanged_screenshots;
        }
        figures
    }
}

#[derive(Clone, Debug)]
pub struct Digest {
    figures: [Figures; Line::ALL.len()],
    pub(super) seen: Vec<Seen>,
}

impl Digest {
    pub fn of(summaries: &[Summary]) -> Self {
        let figures = Line::ALL.map(|line| Figures::of(summaries.iter().filter(move |one| line.holds(one))));
        let seen = |summary: &Summary| Seen {
            class: DifficultyClass::of(summary.difficulty),
            task: TaskKey::of(summary),
            website: hash(&site(&summary.website)),
        };
        Self { figures, seen: summaries.iter().map(seen).collect() }
    }

    pub(super) fn figures(&self, line: Line) -> &Figures {
        &self.figures[line as usize]
    }

    pub(super) fn seen(&self, line: Line) -> impl Iterator<Item = &Seen> {
        self.seen.iter().filter(move |one| line.class().is_none_or(|class| class == one.class))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_its_host_whatever_the_port_or_page() {
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
