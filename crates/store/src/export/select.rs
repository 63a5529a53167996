//! Selects the trajectories and steps to export, and their subset (training or validation). Pure functions of the
//! options and the seed, so that the same command writes the same files.

use std::cmp::Ordering;
use std::collections::{BTreeSet, BinaryHeap};

use proto::trajectory::{Step, Task};

use super::ExportOptions;
use crate::summary::Summary;

pub(super) fn includes_trajectory(summary: &Summary, options: &ExportOptions) -> bool {
    summary.steps >= options.min_steps && (summary.reward == 1 || !options.only_successful)
}

/// Whether the model was asked in a step and acted. Its reply may be empty.
pub(super) fn is_example(step: &Step) -> bool {
    step.action.is_some() && !step.response.raw_prompt.is_empty()
}

pub(super) fn includes_step(step: &Step, options: &ExportOptions) -> bool {
    is_example(step) && !(options.drop_unchanged && step.same_as_next_screenshot == Some(true))
}

/// Whether a task belongs to the validation subset. Depends only on the task and the seed, so that all trajectories
/// of a task stay together.
pub(super) fn is_validation(task: &Task, options: &ExportOptions) -> bool {
    let fields = [&task.website, &task.subdomain, &task.task_name];
    let mut state = split_mix(options.seed ^ 0x5eed_0f57_a5c5_0001);
    for field in fields {
        for byte in field.as_bytes() {
            state = split_mix(state ^ u64::from(*byte));
        }
        state = split_mix(state ^ 0x100);
    }
    unit_interval(state) < options.validation_share
}

/// Weighted sampling without replacement of `size` numbered candidates from a stream: each candidate gets a random key
/// that grows with its weight, and the largest keys are kept.
#[derive(Debug)]
pub(super) struct WeightedSample {
    size: usize,
    seed: u64,
    largest: BinaryHeap<Candidate>,
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
    /// Reversed, so that the heap pops the smallest key first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.key.total_cmp(&self.key).then(self.number.cmp(&other.number))
    }
}

impl WeightedSample {
    pub(super) const fn new(size: usize, seed: u64) -> Self {
        Self { size, seed, largest: BinaryHeap::new() }
    }

    pub(super) fn offer(&mut self, number: u64, weight: f64) {
        let uniform = unit_interval(split_mix(split_mix(self.seed).wrapping_add(number)));
        // ln(u)/w gives the same order as u^(1/w) and does not underflow for small weights.
        let key = (uniform + f64::MIN_POSITIVE).ln() / weight.max(f64::MIN_POSITIVE);
        self.largest.push(Candidate { key, number });
        if self.largest.len() > self.size {
            self.largest.pop();
        }
    }

    pub(super) fn into_numbers(self) -> BTreeSet<u64> {
        self.largest.into_iter().map(|candidate| candidate.number).collect()
    }
}

/// The weight of the sample with this number, oldest first.
pub(super) fn recency_weight(number: u64, power: f64) -> f64 {
    (number as f64 + 1.0).powf(power)
}

/// SplitMix64: a fixed function, so that a seed gives the same result in every version.
const fn split_mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Maps to the interval from 0 to below 1.
fn unit_interval(state: u64) -> f64 {
    (state >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::Format;
    use crate::sample;

    fn sample_numbers(size: usize, seed: u64, weights: &[f64]) -> BTreeSet<u64> {
        let mut sample = WeightedSample::new(size, seed);
        for (number, weight) in (0..).zip(weights) {
            sample.offer(number, *weight);
        }
        sample.into_numbers()
    }

    #[test]
    fn sample_has_the_requested_size_and_is_deterministic() {
        let weights = [1.0; 100];
        assert_eq!(sample_numbers(10, 7, &weights).len(), 10);
        assert_eq!(sample_numbers(10, 7, &weights), sample_numbers(10, 7, &weights));
        assert_ne!(sample_numbers(10, 7, &weights), sample_numbers(10, 8, &weights));
        assert_eq!(sample_numbers(500, 7, &weights).len(), 100, "at most the number of candidates");
    }

    #[test]
    fn heavier_candidates_are_sampled_more_often() {
        let weights: Vec<f64> = (0..1000).map(|number| if number < 500 { 1.0 } else { 4.0 }).collect();
        let heavy = sample_numbers(200, 3, &weights).into_iter().filter(|number| *number >= 500).count();
        assert!((140..=180).contains(&heavy), "{heavy} of 200");
    }

    #[test]
    fn recency_weight_grows_with_the_number() {
        assert!((recency_weight(0, 0.0) - recency_weight(3, 0.0)).abs() < 1e-12);
        assert!((recency_weight(0, 2.0) - 1.0).abs() < 1e-12);
        assert!((recency_weight(3, 2.0) - 16.0).abs() < 1e-12);
    }

    #[test]
    fn validation_follows_share_and_keeps_tasks_together() {
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
    fn options_exclude_trajectories_and_steps() {
        let mut options = ExportOptions::new(Format::LlamaFactory);
        let (success, failure) = (sample::trajectory(0, 3), sample::trajectory(1, 3));
        assert!(includes_trajectory(&Summary::of(&failure), &options));
        options.only_successful = true;
        assert!(includes_trajectory(&Summary::of(&success), &options));
        assert!(!includes_trajectory(&Summary::of(&failure), &options));
        options.min_steps = 4;
        assert!(!includes_trajectory(&Summary::of(&success), &options));

        let mut step = success.steps[0].clone();
        step.same_as_next_screenshot = Some(true);
        assert!(includes_step(&step, &options));
        options.drop_unchanged = true;
        assert!(!includes_step(&step, &options));
        step.same_as_next_screenshot = None;
        assert!(includes_step(&step, &options));
        step.response.raw_response.clear();
        assert!(includes_step(&step, &options), "a reply may be empty");
        step.response.raw_prompt.clear();
        assert!(!includes_step(&step, &options), "the model was not asked");
    }
}
