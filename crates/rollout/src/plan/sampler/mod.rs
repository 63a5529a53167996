//! Which tasks a run works on, in which order, and which of them are this rank's. Pure functions of the task file, the
//! configuration and a seed: every rank, and every later run with the same seed, chooses alike.

mod random;

use std::collections::HashSet;

use indexmap::IndexMap;
use proto::trajectory::Task;

pub use random::Random;

use crate::{
    config::{MaxSteps, RatioClass},
    plan::{
        shares::{Ranks, largest_remainder},
        tasks::{Entry, TaskError, TaskFile, TaskKey},
    },
};

/// A task of the queue: its place in the file, and its place in the order of the whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selected {
    pub place: usize,
    pub trajectory_index: usize,
}

/// This rank's tasks in queue order, and what the user should know about the choice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    pub tasks: Vec<Selected>,
    pub notes: Vec<String>,
    /// How many tasks all ranks have together.
    pub total: usize,
}

impl Selection {
    /// The tasks themselves, with their step limits and indices.
    pub fn load(&self, file: &TaskFile, max_steps: &MaxSteps) -> Result<Vec<Task>, TaskError> {
        let places: Vec<usize> = self.tasks.iter().map(|selected| selected.place).collect();
        let mut tasks = file.load(&places)?;
        for (task, selected) in tasks.iter_mut().zip(&self.tasks) {
            task.trajectory_index = i64::try_from(selected.trajectory_index).unwrap_or(i64::MAX);
            task.max_steps = i64::from(max_steps.of(task.difficulty));
        }
        Ok(tasks)
    }
}

/// How train tasks are drawn.
#[derive(Clone, Copy, Debug)]
pub enum Sampler<'a> {
    Uniform,
    Ratio(&'a IndexMap<String, RatioClass>),
}

/// One draw of train tasks.
#[derive(Clone, Debug)]
pub struct Draw<'a> {
    pub size: usize,
    pub sampler: Sampler<'a>,
    pub seed: u64,
}

/// Draws train tasks: not on a blocked domain, not seen in an earlier iteration, no task twice.
pub fn train(
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
    let queue = hardest_first(&chosen, entries);
    let owners = ranks.deal(queue.len());
    let own =
        queue.iter().zip(owners).filter(|(_, owner)| *owner == ranks.rank).map(|(selected, _)| *selected);
    Selection { tasks: own.collect(), notes, total: queue.len() }
}

/// The first `size` test tasks (0 or less: all), each `repeat` times, dealt out in file order.
pub fn test(entries: &[Entry], size: i64, repeat: u32, ranks: &Ranks) -> Selection {
    let count = usize::try_from(size).ok().filter(|size| *size > 0).unwrap_or(usize::MAX).min(entries.len());
    let repeat = repeat.max(1) as usize;
    let chosen: Vec<usize> = (0..count).flat_map(|place| std::iter::repeat_n(place, repeat)).collect();
    let owners = ranks.deal(chosen.len());
    let mut order: Vec<usize> = (0..chosen.len()).collect();
    order.sort_by_key(|position| std::cmp::Reverse(entries[chosen[*position]].difficulty));
    let queue = order.iter().enumerate();
    let own = queue.filter(|(_, position)| owners[**position] == ranks.rank);
    let tasks =
        own.map(|(trajectory_index, position)| Selected { place: chosen[*position], trajectory_index });
    let mut notes = Vec::new();
    if size > 0 && (size as usize) > entries.len() {
        notes.push(format!("{size} test tasks were asked for; the file has {}", entries.len()));
    }
    Selection { tasks: tasks.collect(), notes, total: chosen.len() }
}

fn eligible(
    file: &TaskFile,
    is_blocked: impl Fn(&str) -> bool,
    is_seen: impl Fn(&TaskKey) -> bool,
) -> (Vec<usize>, Vec<String>) {
    let entries = file.entries();
    let mut met = HashSet::with_capacity(entries.len());
    let (mut blocked, mut before, mut repeated) = (0, 0, 0);
    let mut candidates = Vec::new();
    for (place, entry) in entries.iter().enumerate() {
        if is_blocked(file.domain(entry)) {
            blocked += 1;
        } else if is_seen(&entry.key) {
            before += 1;
        } else if met.insert(entry.key) {
            candidates.push(place);
        } else {
            repeated += 1;
        }
    }
    let counts = [
        (blocked, "are on websites that blocked us lately"),
        (before, "were seen in earlier iterations"),
        (repeated, "repeat another task of the file"),
    ];
    let notes = counts.iter().filter(|(count, _)| *count > 0);
    (candidates, notes.map(|(count, what)| format!("left out: {count} tasks that {what}")).collect())
}

fn uniform(
    mut candidates: Vec<usize>,
    size: usize,
    random: &mut Random,
    notes: &mut Vec<String>,
) -> Vec<usize> {
    if candidates.len() < size {
        notes.push(format!("{size} tasks were asked for; there are {} and all are taken", candidates.len()));
    }
    random.draw(&mut candidates, size);
    candidates.truncate(size);
    candidates
}

fn ratio(
    entries: &[Entry],
    candidates: &[usize],
    size: usize,
    classes: &IndexMap<String, RatioClass>,
    random: &mut Random,
    notes: &mut Vec<String>,
) -> Vec<usize> {
    let weights: Vec<f64> = classes.values().map(|class| class.weight).collect();
    let mut chosen = Vec::with_capacity(size);
    let mut taken = HashSet::new();
    for ((name, class), count) in classes.iter().zip(largest_remainder(size, &weights)) {
        let [low, high] = class.range;
        let within =
            |place: &&usize| (low..=high).contains(&entries[**place].difficulty) && !taken.contains(*place);
        let mut pool: Vec<usize> = candidates.iter().filter(within).copied().collect();
        if pool.len() < count {
            notes.push(format!("{count} {name} tasks were asked for; there are {}", pool.len()));
        }
        random.draw(&mut pool, count);
        pool.truncate(count);
        taken.extend(pool.iter().copied());
        chosen.extend(pool);
    }
    let whole = chosen.len();
    random.draw(&mut chosen, whole);
    chosen
}

/// The order of the queue. Equal difficulties keep the order they were drawn in.
fn hardest_first(chosen: &[usize], entries: &[Entry]) -> Vec<Selected> {
    let mut order = chosen.to_vec();
    order.sort_by_key(|place| std::cmp::Reverse(entries[*place].difficulty));
    order
        .into_iter()
        .enumerate()
        .map(|(trajectory_index, place)| Selected { place, trajectory_index })
        .collect()
}
