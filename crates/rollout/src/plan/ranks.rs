//! Divides a run among several collectors (ranks) by weight: tasks, browsers, request permits and policy sessions. Pure
//! arithmetic; every rank computes the same result from the same configuration.

use crate::config::{EnvConfig, RankWeights, Split};

/// The rank of this collector and the weights of all ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranks {
    pub rank: usize,
    /// The weight of each rank in millionths, so that every machine rounds in the same way.
    weights: Vec<u64>,
}

/// A key of `env_config` and what is wrong with its value.
pub type RankProblem = (&'static str, String);

const SCALE: f64 = 1e6;

impl Ranks {
    pub fn single() -> Self {
        Self { rank: 0, weights: vec![SCALE as u64] }
    }

    pub fn new(rank: usize, weights: &[f64]) -> Result<Self, RankProblem> {
        let is_usable = |weight: &f64| weight.is_finite() && *weight >= 1.0 / SCALE && *weight <= 1e9;
        if weights.is_empty() || !weights.iter().all(is_usable) {
            return Err(("all_rank_weights", "every rank needs a weight above 0".into()));
        }
        if rank >= weights.len() {
            let reason = format!("rank {rank} has no weight among the {} given", weights.len());
            return Err(("all_rank_weights", reason));
        }
        Ok(Self { rank, weights: weights.iter().map(|weight| (weight * SCALE).round() as u64).collect() })
    }

    /// Reads the ranks from the configuration. Contradictory keys are an error.
    pub fn from_config(env: &EnvConfig) -> Result<Self, RankProblem> {
        let (rank, total) = match env.split {
            Split::Test if env.test_rank.is_some() => (env.test_rank, env.test_total_workers),
            _ => (env.multinode_rank, env.multinode_total_workers),
        };
        let Some(rank) = rank else { return Ok(Self::single()) };
        let weights = match (&env.all_rank_weights, total) {
            (Some(RankWeights(weights)), _) => weights.clone(),
            (None, Some(total)) => vec![1.0; total],
            (None, None) => {
                return Err(("multinode_total_workers", "must be given together with the rank".into()));
            }
        };
        if let Some(total) = total.filter(|total| *total != weights.len()) {
            let reason = format!("{} weights for {total} ranks", weights.len());
            return Err(("all_rank_weights", reason));
        }
        let ranks = Self::new(rank, &weights)?;
        check_loads(env, &weights, rank)?;
        Ok(ranks)
    }

    /// Returns the weights as they were given.
    pub fn weights(&self) -> Vec<f64> {
        self.weights.iter().map(|weight| *weight as f64 / SCALE).collect()
    }

    pub fn count(&self) -> usize {
        self.weights.len()
    }

    fn total(&self) -> u64 {
        self.weights.iter().sum()
    }

    /// Returns this rank's share of `whole` items by largest remainder, at least 1.
    pub fn share(&self, whole: usize) -> usize {
        let weights: Vec<f64> = self.weights.iter().map(|weight| *weight as f64).collect();
        largest_remainder(whole, &weights).get(self.rank).copied().unwrap_or(0).max(1)
    }

    /// Assigns the items 0.. to ranks by weighted round robin, so that every range of items is divided fairly.
    pub fn assign(&self, items: usize) -> Vec<usize> {
        let total = i128::from(self.total());
        let mut assigned = vec![0_i128; self.weights.len()];
        let mut owners = Vec::with_capacity(items);
        for position in 1..=items as i128 {
            // The rank that is furthest behind its share gets the item; among equals, the lowest rank.
            let owner = (0..self.weights.len())
                .max_by_key(|rank| {
                    let due = i128::from(self.weights[*rank]) * position - assigned[*rank] * total;
                    (due, std::cmp::Reverse(*rank))
                })
                .unwrap_or(0);
            assigned[owner] += 1;
            owners.push(owner);
        }
        owners
    }
}

/// The per-rank keys of the Python system must not contradict the list of all weights.
fn check_loads(env: &EnvConfig, weights: &[f64], rank: usize) -> Result<(), RankProblem> {
    let is_close = |left: f64, right: f64| (left - right).abs() < 1e-6;
    let total: f64 = weights.iter().sum();
    match (env.rank_load_weight, env.total_load_weight) {
        (Some(own), Some(all)) if !is_close(own / all, weights[rank] / total) => Err((
            "rank_load_weight",
            format!(
                "{own} of {all} is not rank {rank}'s share by all_rank_weights; give all_rank_weights for every rank"
            ),
        )),
        (Some(own), None) if env.all_rank_weights.is_some() && !is_close(own, weights[rank]) => Err((
            "rank_load_weight",
            format!("all_rank_weights gives rank {rank} the weight {}", weights[rank]),
        )),
        _ => Ok(()),
    }
}

/// Divides `whole` by weights so that the parts add up: floors first, then the rest to the largest remainders (the earlier
/// among equals).
pub fn largest_remainder(whole: usize, weights: &[f64]) -> Vec<usize> {
    let total: f64 = weights.iter().sum();
    if total <= 0.0 {
        return vec![0; weights.len()];
    }
    let exact: Vec<f64> = weights.iter().map(|weight| whole as f64 * weight / total).collect();
    let mut parts: Vec<usize> = exact.iter().map(|share| (share + 1e-9).floor() as usize).collect();
    let mut order: Vec<usize> = (0..weights.len()).filter(|index| weights[*index] > 0.0).collect();
    order.sort_by(|a, b| {
        let left = exact[*a] - parts[*a] as f64;
        let right = exact[*b] - parts[*b] as f64;
        right.total_cmp(&left).then(a.cmp(b))
    });
    let rest = whole.saturating_sub(parts.iter().sum());
    for index in order.into_iter().cycle().take(rest) {
        parts[index] += 1;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ranks(rank: usize, weights: &[f64]) -> Ranks {
        Ranks::new(rank, weights).unwrap()
    }

    #[test]
    fn shares_match_the_contract_example() {
        let shares: Vec<usize> = (0..3).map(|rank| ranks(rank, &[2.0, 1.0, 1.0]).share(64)).collect();
        assert_eq!(shares, [32, 16, 16]);
        assert_eq!(ranks(0, &[2.0, 1.0, 1.0]).assign(8), [0, 1, 2, 0, 0, 1, 2, 0]);
    }

    #[test]
    fn smallest_share_is_one() {
        assert_eq!(ranks(1, &[100.0, 1.0]).share(4), 1);
        assert_eq!(ranks(2, &[1.0, 1.0, 1.0]).share(1), 1);
    }

    #[test]
    fn remainder_goes_to_largest_fractions() {
        assert_eq!(largest_remainder(10, &[1.0, 1.0, 1.0]), [4, 3, 3]);
        assert_eq!(largest_remainder(10, &[0.5, 0.3, 0.2]), [5, 3, 2]);
        assert_eq!(largest_remainder(7, &[0.0, 1.0, 1.0]), [0, 4, 3]);
        assert_eq!(largest_remainder(3, &[0.0]), [0]);
        assert_eq!(largest_remainder(100, &[1.0, 2.0]), [33, 67]);
    }

    fn configured(change: impl Fn(&mut EnvConfig)) -> Result<Ranks, RankProblem> {
        let mut env = EnvConfig::default();
        change(&mut env);
        Ranks::from_config(&env)
    }

    #[test]
    fn ranks_are_read_from_config() {
        assert_eq!(configured(|_| {}), Ok(Ranks::single()));
        let weighted = |env: &mut EnvConfig| {
            env.multinode_rank = Some(1);
            env.multinode_total_workers = Some(3);
            env.rank_load_weight = Some(1.0);
            env.total_load_weight = Some(4.0);
            env.all_rank_weights = Some(RankWeights(vec![2.0, 1.0, 1.0]));
        };
        assert_eq!(configured(weighted), Ok(ranks(1, &[2.0, 1.0, 1.0])));
        let test_split = |env: &mut EnvConfig| {
            env.split = Split::Test;
            env.test_rank = Some(1);
            env.test_total_workers = Some(2);
        };
        assert_eq!(configured(test_split), Ok(ranks(1, &[1.0, 1.0])));
    }

    #[test]
    fn contradictory_keys_are_named() {
        let key = |change: &dyn Fn(&mut EnvConfig)| configured(change).unwrap_err().0;
        assert_eq!(key(&|env| env.multinode_rank = Some(0)), "multinode_total_workers");
        let wrong_count = |env: &mut EnvConfig| {
            env.multinode_rank = Some(0);
            env.multinode_total_workers = Some(2);
            env.all_rank_weights = Some(RankWeights(vec![2.0, 1.0, 1.0]));
        };
        assert_eq!(key(&wrong_count), "all_rank_weights");
        let wrong_load = |env: &mut EnvConfig| {
            env.multinode_rank = Some(0);
            env.multinode_total_workers = Some(2);
            env.rank_load_weight = Some(2.0);
            env.total_load_weight = Some(3.0);
        };
        assert_eq!(key(&wrong_load), "rank_load_weight");
        let no_weight = |env: &mut EnvConfig| {
            env.multinode_rank = Some(3);
            env.all_rank_weights = Some(RankWeights(vec![2.0, 1.0]));
        };
        assert_eq!(key(&no_weight), "all_rank_weights");
        let zero = |env: &mut EnvConfig| {
            env.multinode_rank = Some(0);
            env.all_rank_weights = Some(RankWeights(vec![0.0, 1.0]));
        };
        assert_eq!(key(&zero), "all_rank_weights");
    }

    proptest! {
        #[test]
        fn parts_add_up_and_follow_the_weights(whole in 0_usize..5000, weights in prop::collection::vec(0.01_f64..50.0, 1..9)) {
            let parts = largest_remainder(whole, &weights);
            prop_assert_eq!(parts.iter().sum::<usize>(), whole);
            let total: f64 = weights.iter().sum();
            for (part, weight) in parts.iter().zip(&weights) {
                prop_assert!((*part as f64 - whole as f64 * weight / total).abs() < 1.0 + 1e-6);
            }
        }

        #[test]
        fn items_are_assigned_in_proportion_to_weights(items in 0_usize..400, weights in prop::collection::vec(1_u32..9, 1..6)) {
            let weights: Vec<f64> = weights.into_iter().map(f64::from).collect();
            let total: f64 = weights.iter().sum();
            let owners = ranks(0, &weights).assign(items);
            prop_assert_eq!(owners.len(), items);
            for (rank, weight) in weights.iter().enumerate() {
                let own = owners.iter().filter(|owner| **owner == rank).count() as f64;
                prop_assert!((own - items as f64 * weight / total).abs() <= weights.len() as f64);
            }
            // Every rank computes the same result, and fewer items give a prefix of it.
            let last = ranks(weights.len() - 1, &weights);
            prop_assert_eq!(&last.assign(items / 2)[..], &owners[..items / 2]);
        }
    }
}
