//! The steps that the attempts of a group share (`env_config.group_from_step`): the first attempt publishes its first steps,
//! and the others wait for them before they acquire a browser. Groups are those of this process; it owns no browsers.

use std::{
    collections::HashMap,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use proto::{
    text::cut,
    trajectory::{Action, Observation, Step, Task, Trajectory},
};
use store::IterationFile;
use tokio::sync::watch;

use crate::episode::fingerprint::Fingerprint;

/// The first steps of an attempt, and what the page showed before each of them and after the last.
#[derive(Debug)]
pub struct Prefix {
    steps: Vec<Step>,
    /// What the page showed after the steps.
    end: Observation,
    /// The screenshots before each step, and after the last.
    fingerprints: Vec<Fingerprint>,
}

impl Prefix {
    /// `fingerprints` are those of the screenshots before each step, and of the one after the last.
    pub(crate) fn new(steps: Vec<Step>, end: Observation, fingerprints: Vec<Fingerprint>) -> Self {
        debug_assert_eq!(fingerprints.len(), steps.len() + 1);
        Self { steps, end, fingerprints }
    }

    /// Reads the first steps of a finished trajectory with its screenshots. Returns `None` if it ended before it saw the page
    /// after them, or if a screenshot is gone.
    fn of_trajectory(trajectory: Trajectory, count: usize) -> Option<Self> {
        let mut steps = trajectory.steps;
        let is_invalid = |step: &Step| step.action.as_ref().is_none_or(|it| it.key == Action::INVALID_STEP);
        if steps.iter().take(count + 1).any(is_invalid) {
            return None;
        }
        let end = steps.get(count)?.observation.clone();
        steps.truncate(count);
        let shown = steps.iter().map(|step| &step.observation).chain([&end]);
        let fingerprint = |page: &Observation| Some(Fingerprint::of(&std::fs::read(&page.image_path).ok()?));
        let fingerprints = shown.map(fingerprint).collect::<Option<Vec<_>>>()?;
        Some(Self::new(steps, end, fingerprints))
    }

    /// Returns a step; `None` after the last.
    pub(crate) fn step(&self, number: usize) -> Option<&Step> {
        self.steps.get(number)
    }

    /// Returns the name of the folder with the screenshots of the attempt that made the steps.
    pub(crate) fn folder(&self) -> Option<&str> {
        Path::new(&self.end.image_path).parent()?.file_name()?.to_str()
    }

    /// Describes the first difference between a page and what the first attempt saw before the step `number`.
    pub(crate) fn difference(
        &self,
        number: usize,
        page: &Observation,
        fingerprint: Fingerprint,
    ) -> Option<String> {
        let expected = self.steps.get(number).map_or(&self.end, |step| &step.observation);
        let tree = |page: &Observation| page.ac_tree.clone().unwrap_or_default();
        let (expected_line, line) = different_line(&tree(expected), &tree(page));
        let shown = |fingerprint: Option<Fingerprint>| {
            fingerprint.map(|fingerprint| fingerprint.to_string()).unwrap_or_default()
        };
        let parts = [
            ("URL", expected.url.clone(), page.url.clone()),
            ("title", expected.title.clone(), page.title.clone()),
            ("accessibility tree", expected_line, line),
            ("screenshot", shown(self.fingerprints.get(number).copied()), shown(Some(fingerprint))),
        ];
        let (part, expected, found) = parts.into_iter().find(|(_, expected, found)| expected != found)?;
        Some(format!("step {number}: {part}: expected {:?}, found {:?}", cut(&expected), cut(&found)))
    }
}

/// Returns the first line in which two texts differ; empty where a text has ended, or if they are equal.
fn different_line(expected: &str, found: &str) -> (String, String) {
    let (mut expected, mut found) = (expected.lines(), found.lines());
    loop {
        match (expected.next(), found.next()) {
            (None, None) => return Default::default(),
            (expected, found) if expected == found => {}
            (expected, found) => {
                return (expected.unwrap_or_default().to_owned(), found.unwrap_or_default().to_owned());
            }
        }
    }
}

/// What is known about the prefix of a group.
#[derive(Clone, Debug)]
enum PrefixState {
    /// The first attempt has not made enough steps yet.
    Pending,
    Published(Arc<Prefix>),
    /// The first attempt ended before, so the others start at the beginning.
    Absent,
}

/// A group with attempts that are still to be collected.
#[derive(Debug)]
struct Group {
    prefix: watch::Sender<PrefixState>,
    /// The number of attempts that have not ended.
    remaining: usize,
}

/// The prefixes of the groups of a run. That of a group is dropped when its last attempt has ended.
#[derive(Debug)]
pub struct GroupPrefixes {
    /// The number of steps that are shared.
    from_step: usize,
    group_size: i64,
    /// By number.
    groups: Mutex<HashMap<i64, Group>>,
}

impl GroupPrefixes {
    /// Creates the prefixes for the tasks that are still to be collected. `journal` has what an earlier part of the run finished.
    pub fn new(from_step: usize, group_size: usize, tasks: &[Task], journal: Option<&Path>) -> Self {
        let group_size = i64::try_from(group_size).unwrap_or(i64::MAX).max(1);
        let prefixes = Self { from_step, group_size, groups: Mutex::default() };
        let mut groups: HashMap<i64, Group> = HashMap::new();
        for task in tasks {
            let index = task.trajectory_index;
            let absent = || Group { prefix: watch::Sender::new(PrefixState::Absent), remaining: 0 };
            let group = groups.entry(prefixes.group(index)).or_insert_with(absent);
            group.remaining += 1;
            if prefixes.is_first(index) {
                group.prefix.send_replace(PrefixState::Pending);
            }
        }
        if let Some(journal) = journal {
            prefixes.read_begun(journal, &mut groups);
        }
        Self { groups: Mutex::new(groups), ..prefixes }
    }

    /// Reads the prefixes of groups that an interrupted run has begun: from an attempt that took the steps over, otherwise from
    /// the first attempt.
    fn read_begun(&self, journal: &Path, groups: &mut HashMap<i64, Group>) {
        let file = match IterationFile::open(journal) {
            Ok(file) => file,
            Err(error) => return tracing::warn!(%error, "cannot read the steps that attempts share"),
        };
        for (position, summary) in file.summaries().iter().enumerate() {
            let index = summary.trajectory_index;
            let Some(group) = groups.get_mut(&self.group(index)) else { continue };
            let Ok(trajectory) = file.read(position) else { continue };
            let forked = trajectory.metadata.forked_at_step.and_then(|step| usize::try_from(step).ok());
            if forked.is_none() && !self.is_first(index) {
                continue;
            }
            // A later one may be a fork, whose steps are those that the group shares in any case.
            if let Some(prefix) = Prefix::of_trajectory(trajectory, forked.unwrap_or(self.from_step)) {
                group.prefix.send_replace(PrefixState::Published(Arc::new(prefix)));
            }
        }
    }

    const fn group(&self, index: i64) -> i64 {
        index / self.group_size
    }

    /// Returns whether a trajectory is the first attempt of its group.
    pub(crate) const fn is_first(&self, index: i64) -> bool {
        index % self.group_size == 0
    }

    /// Returns the trajectory index of the first attempt of the group.
    pub(crate) const fn first_of(&self, index: i64) -> i64 {
        self.group(index) * self.group_size
    }

    /// Returns the number of steps after which the first attempt publishes its prefix.
    pub(crate) const fn shared_steps(&self) -> usize {
        self.from_step
    }

    fn groups(&self) -> MutexGuard<'_, HashMap<i64, Group>> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Publishes the first steps of a first attempt.
    pub(crate) fn publish(&self, index: i64, prefix: Prefix) {
        if let Some(group) = self.groups().get(&self.group(index)) {
            group.prefix.send_replace(PrefixState::Published(Arc::new(prefix)));
        }
    }

    /// Returns the prefix of an attempt's group. The first attempt has one, too, if it published it before it was lost.
    pub(crate) fn get(&self, index: i64) -> Option<Arc<Prefix>> {
        match &*self.groups().get(&self.group(index))?.prefix.borrow() {
            PrefixState::Published(prefix) => Some(Arc::clone(prefix)),
            PrefixState::Pending | PrefixState::Absent => None,
        }
    }

    /// Returns whether an attempt can start now: it is the first of its group, or has nothing to wait for.
    pub(super) fn can_start(&self, index: i64) -> bool {
        let groups = self.groups();
        let group = groups.get(&self.group(index)).filter(|_| !self.is_first(index));
        !group.is_some_and(|group| matches!(*group.prefix.borrow(), PrefixState::Pending))
    }

    /// Waits until an attempt can start.
    pub(super) async fn wait(&self, index: i64) {
        if self.can_start(index) {
            return;
        }
        let state = self.groups().get(&self.group(index)).map(|group| group.prefix.subscribe());
        if let Some(mut state) = state {
            // Fails when the group is dropped, which needs no waiting either.
            let _ = state.wait_for(|state| !matches!(state, PrefixState::Pending)).await;
        }
    }

    /// Returns a guard for the time in which an attempt, with its retries, waits or runs.
    pub(super) const fn enter(&self, index: i64) -> GroupMember<'_> {
        GroupMember { prefixes: self, index }
    }
}

/// An attempt that waits or runs. When a first attempt ends without a published prefix, the others can start.
#[must_use]
pub(super) struct GroupMember<'a> {
    prefixes: &'a GroupPrefixes,
    index: i64,
}

impl Drop for GroupMember<'_> {
    fn drop(&mut self) {
        let number = self.prefixes.group(self.index);
        let mut groups = self.prefixes.groups();
        let Some(group) = groups.get_mut(&number) else { return };
        let is_pending = matches!(*group.prefix.borrow(), PrefixState::Pending);
        if is_pending && self.prefixes.is_first(self.index) {
            group.prefix.send_replace(PrefixState::Absent);
        }
        group.remaining = group.remaining.saturating_sub(1);
        if group.remaining == 0 {
            groups.remove(&number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(url: &str, title: &str, ac_tree: Option<&str>) -> Observation {
        let (url, title, ac_tree) = (url.to_owned(), title.to_owned(), ac_tree.map(str::to_owned));
        Observation { url, title, ac_tree, image_path: "images/task_0000_1f/step_000.png".to_owned() }
    }

    fn prefix(count: usize) -> Prefix {
        let observation = page("http://a.test/", "A", Some("1 Go\n2 Stop"));
        let step = Step { observation: observation.clone(), ..Step::default() };
        Prefix::new(vec![step; count], observation, vec![Fingerprint::of(b"x"); count + 1])
    }

    fn prefixes(indices: std::ops::Range<i64>) -> GroupPrefixes {
        let task = |trajectory_index| Task { trajectory_index, ..Task::default() };
        GroupPrefixes::new(1, 3, &indices.map(task).collect::<Vec<_>>(), None)
    }

    #[test]
    fn first_difference_is_described() {
        let tree = Some("1 Go\n2 Stop");
        let x = Fingerprint::of(b"x");
        let shown = prefix(1);
        assert_eq!(shown.difference(0, &page("http://a.test/", "A", tree), x), None);
        for (page, fingerprint, expected) in [
            (
                page("http://b.test/", "B", None),
                x,
                "URL: expected \"http://a.test/\", found \"http://b.test/\"",
            ),
            (page("http://a.test/", "B", None), x, "title: expected \"A\", found \"B\""),
            (
                page("http://a.test/", "A", Some("1 Go\n2 Halt")),
                x,
                "accessibility tree: expected \"2 Stop\", found \"2 Halt\"",
            ),
            (
                page("http://a.test/", "A", Some("1 Go")),
                x,
                "accessibility tree: expected \"2 Stop\", found \"\"",
            ),
            (page("http://a.test/", "A", tree), Fingerprint::of(b"y"), "screenshot: expected \""),
        ] {
            for number in [0, 1] {
                let found = shown.difference(number, &page, fingerprint).unwrap();
                assert!(found.starts_with(&format!("step {number}: {expected}")), "{found}");
            }
        }
    }

    #[tokio::test]
    async fn others_wait_for_the_first_attempt() {
        let groups = prefixes(0..6);
        assert!(groups.can_start(0) && groups.can_start(3) && !groups.can_start(1) && !groups.can_start(5));
        groups.publish(0, prefix(1));
        groups.wait(1).await;
        assert!(groups.get(2).is_some() && groups.get(0).is_some() && groups.get(4).is_none());
        drop(groups.enter(0));
        assert!(groups.get(1).is_some(), "the end of the first attempt does not take it back");
        drop(groups.enter(3));
        groups.wait(4).await;
        assert!(groups.get(4).is_none());
    }

    #[test]
    fn group_without_attempts_is_dropped() {
        let groups = prefixes(0..3);
        groups.publish(0, prefix(1));
        for index in 0..3 {
            assert!(groups.get(index).is_some());
            drop(groups.enter(index));
        }
        assert!(groups.groups().is_empty());
    }

    #[test]
    fn group_whose_first_attempt_is_gone_does_not_wait() {
        let groups = prefixes(1..3);
        assert!(groups.can_start(1) && groups.can_start(2) && groups.get(1).is_none());
    }
}
