//! Selects the tasks of a run, their order, and the share of each rank. Pure functions of the task file, the configuration
//! and a seed: every rank, and every later run with the same seed, makes the same selection.

mod random;

use std::collections::{HashMap, HashSet};

use indexmap::IndexMap;
use proto::trajectory::Task;

pub use random::Random;

use crate::{
    config::{MaxSteps, RatioClass},
    plan::{
        ranks::{Ranks, largest_remainder},
        tasks::{TaskEntry, TaskError, TaskFile, TaskKey},
    },
};

/// A selected task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selected {
    /// The task's index among the entries of the task file.
    pub entry_index: usize,
    /// The task's position in the queue of the whole run.
    pub trajectory_index: usize,
}

/// The tasks of one rank in queue order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    pub tasks: Vec<Selected>,
    /// Messages for the user about the selection.
    pub notes: Vec<String>,
    /// The number of tasks of all ranks together.
    pub total: usize,
}

impl Selection {
    /// Loads the tasks and sets their step limits and trajectory indices.
    pub fn load(&self, file: &TaskFile, max_steps: &MaxSteps) -> Result<Vec<Task>, TaskError> {
        let indices: Vec<usize> = self.tasks.iter().map(|selected| selected.entry_index).collect();
        let mut tasks = file.load(&indices)?;
        for (task, selected) in tasks.iter_mut().zip(&self.tasks) {
            task.trajectory_index = i64::try_from(selected.trajectory_index).unwrap_or(i64::MAX);
            task.max_steps = i64::from(max_steps.of(task.difficulty));
        }
        Ok(tasks)
    }

    /// Returns by trajectory index how many attempts at the same task come before it. All attempts at a task belong to one rank.
    pub fn attempts(&self) -> HashMap<i64, u32> {
        let mut tasks: Vec<&Selected> = self.tasks.iter().collect();
        tasks.sort_by_key(|selected| selected.trajectory_index);
        let mut counts: HashMap<usize, u32> = HashMap::new();
        let number = |selected: &Selected| {
            let count = counts.entry(selected.entry_index).or_default();
            *count += 1;
            (i64::try_from(selected.trajectory_index).unwrap_or(i64::MAX), *count - 1)
        };
        tasks.into_iter().map(number).collect()
    }
}

/// How train tasks are drawn.
#[derive(Clone, Copy, Debug)]
pub enum Sampler<'a> {
    /// Every task is equally likely.
    Uniform,
    /// Each class of difficulties gets a share in proportion to its weight.
    Ratio(&'a IndexMap<String, RatioClass>),
}

/// The parameters of a draw of train tasks.
#[derive(Clone, Debug)]
pub struct Draw<'a> {
    /// The number of tasks.
    pub size: usize,
    /// The number of attempts at each task. They follow each other in the queue and belong to one rank.
    pub group_size: usize,
    pub sampler: Sampler<'a>,
    pub seed: u64,
}

/// Draws train tasks. Tasks on blocked domains, tasks of earlier iterations and repeated tasks are left out.
pub fn draw_train_tasks(
    file: &TaskFile,
    draw: &Draw<'_>,
    is_blocked: impl Fn(&str) -> bool,
    is_seen: impl Fn(&TaskKey) -> bool,
    ranks: &Ranks,
) -> Selection {
    let entries = file.entries();
    let (candidates, mut notes) = eligible(file, is_blocked, is_seen);
    let mut random = Random::new(draw.seed);
    let chosen = match draw.sampler {
        Sampler::Uniform => uniform(candidates, draw.size, &mut random, &mut notes),
        Sampler::Ratio(classes) => ratio(entries, &candidates, draw.size, classes, &mut random, &mut notes),
    };
    let groups = hardest_first(&chosen, entries);
    let owners = ranks.assign(groups.len());
    let own = groups.iter().zip(owners).filter(|(_, owner)| *owner == ranks.rank);
    let attempts = |group: &Selected| {
        let Selected { entry_index, trajectory_index: position } = *group;
        let first = position * draw.group_size;
        (first..first + draw.group_size)
            .map(move |trajectory_index| Selected { entry_index, trajectory_index })
    };
    let tasks = own.flat_map(|(group, _)| attempts(group)).collect();
    Selection { tasks, notes, total: groups.len() * draw.group_size }
}

/// Selects the first `size` test tasks (all if `size` is 0 or less) and assigns them to the ranks in file order. Then the
/// whole list is repeated, so that all repeats of a task belong to one rank, as in the Python system.
pub fn select_test_tasks(entries: &[TaskEntry], size: i64, repeat: u32, ranks: &Ranks) -> Selection {
    let count = usize::try_from(size).ok().filter(|size| *size > 0).unwrap_or(usize::MAX).min(entries.len());
    let repeat = repeat.max(1) as usize;
    let chosen: Vec<usize> = std::iter::repeat_n(0..count, repeat).flatten().collect();
    let owners = ranks.assign(count);
    let mut tasks = hardest_first(&chosen, entries);
    tasks.retain(|selected| owners[selected.entry_index] == ranks.rank);
    let mut notes = Vec::new();
    if size > 0 && (size as usize) > entries.len() {
        notes.push(format!("requested {size} test tasks, but the file has only {}", entries.len()));
    }
    Selection { tasks, notes, total: chosen.len() }
}

fn eligible(
    file: &TaskFile,
    is_blocked: impl Fn(&str) -> bool,
    is_seen: impl Fn(&TaskKey) -> bool,
) -> (Vec<usize>, Vec<String>) {
    let entries = file.entries();
    let mut keys = HashSet::with_capacity(entries.len());
    let (mut blocked, mut seen, mut repeated) = (0, 0, 0);
    let mut candidates = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        if is_blocked(file.domain(entry)) {
            blocked += 1;
        } else if is_seen(&entry.key) {
            seen += 1;
        } else if keys.insert(entry.key) {
            candidates.push(index);
        } else {
            repeated += 1;
        }
    }
    let counts = [
        (blocked, "are on websites that blocked the agent recently"),
        (seen, "were used in earlier iterations"),
        (repeated, "repeat another task of the file"),
    ];
    let notes = counts.iter().filter(|(count, _)| *count > 0);
    (candidates, notes.map(|(count, reason)| format!("left out: {count} tasks that {reason}")).collect())
}

fn uniform(
    mut candidates: Vec<usize>,
    size: usize,
    random: &mut Random,
    notes: &mut Vec<String>,
) -> Vec<usize> {
    if candidates.len() < size {
        notes.push(format!(
            "requested {size} tasks, but only {} can be used; all of them are selected",
            candidates.len()
        ));
    }
    random.partial_shuffle(&mut candidates, size);
    candidates.truncate(size);
    candidates
}

fn ratio(
    entries: &[TaskEntry],
    candidates: &[usize],
    size: usize,
    classes: &IndexMap<String, RatioClass>,
    random: &mut Random,
    notes: &mut Vec<String>,
) -> Vec<usize> {
    let weights: Vec<f64> = classes.values().map(|class| class.weight).collect();
    let mut chosen = Vec::with_capacity(size);
    // The ranges of two classes may overlap.
    let mut taken = HashSet::new();
    for ((name, class), count) in classes.iter().zip(largest_remainder(size, &weights)) {
        let [low, high] = class.range;
        let is_in_class =
            |index: &&usize| (low..=high).contains(&entries[**index].difficulty) && !taken.contains(*index);
        let mut class_tasks: Vec<usize> = candidates.iter().filter(is_in_class).copied().collect();
        if class_tasks.len() < count {
            notes.push(format!("requested {count} {name} tasks, but only {} can be used", class_tasks.len()));
        }
        random.partial_shuffle(&mut class_tasks, count);
        class_tasks.truncate(count);
        taken.extend(class_tasks.iter().copied());
        chosen.extend(class_tasks);
    }
    let count = chosen.len();
    random.partial_shuffle(&mut chosen, count);
    chosen
}

/// Orders the queue by difficulty. Tasks of equal difficulty keep the order in which they were drawn.
fn hardest_first(chosen: &[usize], entries: &[TaskEntry]) -> Vec<Selected> {
    let mut order = chosen.to_vec();
    order.sort_by_key(|index| std::cmp::Reverse(entries[*index].difficulty));
    order
        .into_iter()
        .enumerate()
        .map(|(trajectory_index, entry_index)| Selected { entry_index, trajectory_index })
        .collect()
}
