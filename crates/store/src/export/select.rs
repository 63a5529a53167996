//! Which trajectories and steps are exported, and on which side of the split. Pure functions of the options and the
//! seed, so that the same command gives the same files.

use std::cmp::Ordering;
use std::collections::{BTreeSet, BinaryHeap};

use proto::trajectory::{Step, Task};

use super::ExportOptions;
use crate::metrics::{Standing, standing};
use crate::summary::Summary;

pub(super) fn keeps_trajectory(summary: &Summary, options: &ExportOptions) -> bool {
    let is_success = matches!(standing(summary), Standing::Scored { is_success: true });
    summary.steps >= options.min_steps && (is_success || !options.only_successful)
}

/// A step is an example when the model was asked and said something.
pub(super) fn is_example(step: &Step) -> bool {
    step.action.is_some() && !step.response.raw_response.is_empty() && !step.response.raw_prompt.is_empty()
}

pub(super) fn keeps_step(step: &Step, options: &ExportOptions) -> bool {
    is_example(step) && !(options.drop_unchanged && step.same_as_next_screenshot == Some(true))
}

/// Whether a task belongs to the validation part. Goes by the task itself, so that repeated attempts stay together.
pub(super) fn is_validation(task: &Task, options: &ExportOptions) -> bool {
    let words = [&task.website, &task.subdomain, &task.task_name];
    let mut state = mix(options.seed ^ 0x5eed_0f57_a5c5_0001);
    for word in words {
        for byte in word.as_bytes() {
            state = mix(state ^ u64::from(*byte));
        }
        state = mix(state ^ 0x100);
    }
    unit(state) < options.validation_share
}

/// Draws `wanted` of a stream of numbered candidates by weight, without replacement: each gets a key that is the
/// larger the heavier it is, and the largest keys win.
#[derive(Debug)]
pub(super) struct Draw {
    wanted: usize,
    seed: u64,
    best: BinaryHeap<Candidate>,
}

#[derive(Debug, PartialEq)]
struct Candidate {
    key: f64,
    number: u64,
}

impl Eq for Candidate {}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Candidate {
    /// The smallest key comes out of the heap first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.key.total_cmp(&self.key).then(self.number.cmp(&other.number))
    }
}

impl Draw {
    pub(super) const fn new(wanted: usize, seed: u64) -> Self {
        Self { wanted, seed, best: BinaryHeap::new() }
    }

    pub(super) fn offer(&mut self, number: u64, weight: f64) {
        let chance = unit(mix(mix(self.seed).wrapping_add(number)));
        // ln(u)/w orders as u^(1/w) does, and does not vanish for small weights.
        let key = (chance + f64::MIN_POSITIVE).ln() / weight.max(f64::MIN_POSITIVE);
        self.best.push(Candidate { key, number });
        if self.best.len() > self.wanted {
            self.best.pop();
        }
    }

    pub(super) fn chosen(self) -> BTreeSet<u64> {
        self.best.into_iter().map(|candidate| candidate.number).collect()
    }
}

/// Weight of the iteration at `position` of `count`, oldest first.
pub(super) fn recency(position: usize, count: usize, power: f64) -> f64 {
    ((position + 1) as f64 / count.max(1) as f64).powf(power)
}

/// SplitMix64: a fixed, well-mixed function, so that a seed means the same in every version.
const fn mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// From 0 to below 1.
fn unit(state: u64) -> f64 {
    (state >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::Format;
    use crate::sample;

    fn draw(wanted: usize, seed: u64, weights: &[f64]) -> BTreeSet<u64> {
        let mut draw = Draw::new(wanted, seed);
        for (number, weight) in (0..).zip(weights) {
            draw.offer(number, *weight);
        }
        draw.chosen()
    }

    #[test]
    fn a_draw_has_the_size_asked_for_and_repeats_with_its_seed() {
        let weights = [1.0; 100];
        assert_eq!(draw(10, 7, &weights).len(), 10);
        assert_eq!(draw(10, 7, &weights), draw(10, 7, &weights));
        assert_ne!(draw(10, 7, &weights), draw(10, 8, &weights));
        assert_eq!(draw(500, 7, &weights).len(), 100, "no more than there are");
    }

    #[test]
    fn heavier_candidates_are_drawn_more_often() {
        let weights: Vec<f64> = (0..1000).map(|number| if number < 500 { 1.0 } else { 4.0 }).collect();
        let heavy = draw(200, 3, &weights).into_iter().filter(|number| *number >= 500).count();
        assert!((140..=180).contains(&heavy), "{heavy} of 200");
    }

    #[test]
    fn recency_favours_later_iterations_by_its_power() {
        assert!((recency(0, 4, 0.0) - recency(3, 4, 0.0)).abs() < 1e-12);
        assert!((recency(3, 4, 2.0) - 1.0).abs() < 1e-12);
        assert!((recency(1, 4, 2.0) - 0.25).abs() < 1e-12);
    }

    #[test]
    fn validation_takes_about_its_share_and_keeps_attempts_together() {
        let mut options = ExportOptions::new(Format::Jsonl);
        options.validation_share = 0.2;
        let count = (0..2000).filter(|index| is_validation(&sample::task(*index), &options)).count();
        assert!((340..=460).contains(&count), "{count} of 2000");
        let (first, mut second) = (sample::task(4), sample::task(4));
        second.trajectory_index = 999;
        second.attempt_level = 3;
        assert_eq!(is_validation(&first, &options), is_validation(&second, &options));
        options.validation_share = 0.0;
        assert!((0..2000).all(|index| !is_validation(&sample::task(index), &options)));
    }

    #[test]
    fn what_the_options_leave_out() {
        let mut options = ExportOptions::new(Format::LlamaFactory);
        let (success, failure) = (sample::trajectory(0, 3), sample::trajectory(1, 3));
        assert!(keeps_trajectory(&Summary::of(&failure), &options));
        options.only_successful = true;
        assert!(keeps_trajectory(&Summary::of(&success), &options));
        assert!(!keeps_trajectory(&Summary::of(&failure), &options));
        options.min_steps = 4;
        assert!(!keeps_trajectory(&Summary::of(&success), &options));

        let mut step = success.steps[0].clone();
        step.same_as_next_screenshot = Some(true);
        assert!(keeps_step(&step, &options));
        options.drop_unchanged = true;
        assert!(!keeps_step(&step, &options));
        step.same_as_next_screenshot = None;
        assert!(keeps_step(&step, &options));
        step.response.raw_response.clear();
        assert!(!keeps_step(&step, &options), "nothing was said");
    }
}
