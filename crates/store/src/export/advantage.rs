//! Advantages of trajectories for policy-gradient trainers: how much better a trajectory did than the others of its group.
//! Masked trajectories have no reward, so they have no advantage and change that of no other.

use std::collections::{BTreeMap, HashMap};
use std::str::FromStr;

use crate::metrics::TaskKey;
use crate::summary::Summary;

/// How advantages are computed from rewards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advantage {
    /// The reward minus the group's mean, divided by the group's standard deviation.
    Grpo,
    /// The reward minus the mean of the others of the group.
    Rloo,
    /// The reward minus the mean of all trajectories of the iteration.
    ReinforceBaseline,
}

impl Advantage {
    const ALL: [Self; 3] = [Self::Grpo, Self::Rloo, Self::ReinforceBaseline];
    /// Added to the standard deviation, as in verl, so that a group of equal rewards has advantages of 0.
    const EPSILON: f64 = 1e-6;

    const fn as_str(self) -> &'static str {
        match self {
            Self::Grpo => "grpo",
            Self::Rloo => "rloo",
            Self::ReinforceBaseline => "reinforce-baseline",
        }
    }

    /// Returns the advantages of trajectories that are compared with each other. One without others keeps its reward, as in
    /// verl, unless the iteration is its baseline.
    fn of_rewards(self, rewards: &[f64]) -> Vec<f64> {
        let count = rewards.len() as f64;
        let mean = rewards.iter().sum::<f64>() / count;
        match self {
            Self::Grpo | Self::Rloo if rewards.len() < 2 => rewards.to_vec(),
            Self::Grpo => {
                let squares: f64 = rewards.iter().map(|reward| (reward - mean).powi(2)).sum();
                let deviation = (squares / (count - 1.0)).sqrt();
                rewards.iter().map(|reward| (reward - mean) / (deviation + Self::EPSILON)).collect()
            }
            Self::Rloo => rewards.iter().map(|reward| (reward - mean) * count / (count - 1.0)).collect(),
            Self::ReinforceBaseline => rewards.iter().map(|reward| reward - mean).collect(),
        }
    }
}

impl FromStr for Advantage {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|advantage| advantage.as_str() == text).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|advantage| advantage.as_str()).collect();
            format!("{text:?} is not a kind of advantage; the kinds are {}", names.join(", "))
        })
    }
}

/// What the trajectories of an iteration are compared within.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    Iteration,
    Id(String),
    /// Trajectories without a group id, such as those of the Python system: the attempts at the same task.
    Task(TaskKey),
}

/// The advantages of the trajectories of all iterations to export.
#[derive(Debug, Default)]
pub(super) struct Advantages(HashMap<(u64, i64), f64>);

impl Advantages {
    /// Adds the trajectories of an iteration.
    pub(super) fn add(&mut self, kind: Advantage, iteration: u64, summaries: &[Summary]) {
        let mut groups: BTreeMap<Group, Vec<&Summary>> = BTreeMap::new();
        for summary in summaries.iter().filter(|summary| !summary.outcome_or_inferred().is_masked()) {
            let group = match (kind, &summary.group_id) {
                (Advantage::ReinforceBaseline, _) => Group::Iteration,
                (_, Some(id)) => Group::Id(id.clone()),
                (_, None) => Group::Task(TaskKey::of(summary)),
            };
            groups.entry(group).or_default().push(summary);
        }
        for members in groups.values() {
            let rewards: Vec<f64> = members.iter().map(|member| member.reward as f64).collect();
            let advantages = kind.of_rewards(&rewards);
            let keys = members.iter().map(|member| (iteration, member.trajectory_index));
            self.0.extend(keys.zip(advantages));
        }
    }

    pub(super) fn of(&self, iteration: u64, trajectory_index: i64) -> Option<f64> {
        self.0.get(&(iteration, trajectory_index)).copied()
    }
}

#[cfg(test)]
mod tests {
    use proto::trajectory::Outcome;

    use super::*;

    fn summary(index: i64, group: Option<&str>, reward: i64, outcome: Outcome) -> Summary {
        let group_id = group.map(str::to_owned);
        Summary { trajectory_index: index, group_id, reward, outcome: Some(outcome), ..Summary::default() }
    }

    fn advantages(kind: Advantage, summaries: &[Summary]) -> Vec<Option<f64>> {
        let mut advantages = Advantages::default();
        advantages.add(kind, 3, summaries);
        let rounded = |value: f64| (value * 1000.0).round() / 1000.0;
        summaries.iter().map(|summary| advantages.of(3, summary.trajectory_index).map(rounded)).collect()
    }

    #[test]
    fn advantages_compare_within_groups_and_skip_masked_trajectories() {
        use Outcome::{Cancelled, Failure, InfraLost, JudgeError, Success};
        let summaries = [
            summary(0, Some("a"), 1, Success),
            summary(1, Some("a"), 0, Failure),
            summary(2, Some("a"), 0, InfraLost),
            summary(3, Some("a"), 0, Failure),
            summary(4, Some("b"), 1, Success),
            summary(5, Some("b"), 0, JudgeError),
            summary(6, Some("c"), 1, Success),
            summary(7, Some("c"), 1, Success),
            summary(8, Some("c"), 0, Cancelled),
        ];
        // The values of torch for the rewards 1, 0, 0: mean 1/3, standard deviation 0.57735.
        let grpo = [1.155, -0.577, f64::NAN, -0.577, 1.0, f64::NAN, 0.0, 0.0, f64::NAN];
        let rloo = [1.0, -0.5, f64::NAN, -0.5, 1.0, f64::NAN, 0.0, 0.0, f64::NAN];
        let baseline = [0.333, -0.667, f64::NAN, -0.667, 0.333, f64::NAN, 0.333, 0.333, f64::NAN];
        let kinds = [Advantage::Grpo, Advantage::Rloo, Advantage::ReinforceBaseline];
        for (kind, expected) in kinds.into_iter().zip([grpo, rloo, baseline]) {
            let expected: Vec<Option<f64>> =
                expected.iter().map(|value| Some(*value).filter(|value| !value.is_nan())).collect();
            assert_eq!(advantages(kind, &summaries), expected, "{kind:?}");
        }
    }

    #[test]
    fn attempts_at_a_task_are_a_group_without_an_id() {
        let named = |index, name: &str, reward, outcome| Summary {
            task_name: name.to_owned(),
            ..summary(index, None, reward, outcome)
        };
        let summaries = [
            named(0, "x", 1, Outcome::Success),
            named(1, "y", 0, Outcome::Failure),
            named(2, "x", 0, Outcome::Failure),
        ];
        assert_eq!(advantages(Advantage::Rloo, &summaries), [Some(1.0), Some(0.0), Some(-1.0)]);
    }

    #[test]
    fn unknown_kind_is_named() {
        let error = "ppo".parse::<Advantage>().unwrap_err();
        assert_eq!(error, "\"ppo\" is not a kind of advantage; the kinds are grpo, rloo, reinforce-baseline");
        assert_eq!("rloo".parse(), Ok(Advantage::Rloo));
    }
}
