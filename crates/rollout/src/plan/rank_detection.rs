//! Detects the rank of this collector from the command line, the configuration or the launcher (Slurm, torchrun), in this
//! order. Every value keeps its source, so that an error about contradictory values can name both.

use std::fmt::Write as _;

use crate::{
    config::{Config, EnvConfig, RankWeights, Split},
    plan::{
        launcher::{Sourced, Variables, launch_id, launched_rank},
        ranks::Ranks,
    },
};

/// The values from the command line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RankFlags {
    pub rank: Option<usize>,
    pub num_ranks: Option<usize>,
    pub weights: Option<RankWeights>,
}

/// Detects the rank and writes it into the configuration. Returns a line for the user about rank and sources when there are
/// several ranks.
pub fn detect(
    config: &mut Config,
    flags: &RankFlags,
    variables: Variables<'_>,
) -> Result<Option<String>, String> {
    let env = &mut config.env_config;
    if env.launch_id.is_none() {
        env.launch_id = launch_id(variables);
    }
    let found = detect_rank(env, flags, variables)?;
    env.test_rank = None;
    env.test_total_workers = None;
    let Some(DetectedRank { rank, count, weights }) = found.filter(|rank| rank.count.value > 1) else {
        (env.multinode_rank, env.multinode_total_workers, env.all_rank_weights) = (None, None, None);
        return Ok(None);
    };
    let mut line = format!(
        "rank {} of {} (rank from {}, number from {}",
        rank.value, count.value, rank.source, count.source
    );
    if let Some(weights) = &weights {
        let _ = write!(line, ", weights {} from {}", String::from(weights.value.clone()), weights.source);
    }
    env.multinode_rank = Some(rank.value);
    env.multinode_total_workers = Some(count.value);
    env.all_rank_weights = weights.map(|weights| weights.value);
    Ranks::from_config(env).map_err(|(key, reason)| format!("env_config.{key}: {reason}"))?;
    Ok(Some(line + ")"))
}

struct DetectedRank {
    rank: Sourced<usize>,
    count: Sourced<usize>,
    weights: Option<Sourced<RankWeights>>,
}

fn detect_rank(
    env: &EnvConfig,
    flags: &RankFlags,
    variables: Variables<'_>,
) -> Result<Option<DetectedRank>, String> {
    let GivenRank { rank, count, weights } = given_rank(env, flags);
    if count.as_ref().is_some_and(|count| count.value == 1)
        && rank.as_ref().is_none_or(|rank| rank.value == 0)
    {
        return Ok(None);
    }
    // The number of weights is the number of ranks unless a count is given.
    let counted = count.clone().or_else(|| {
        weights
            .as_ref()
            .map(|weights| Sourced { value: weights.value.0.len(), source: weights.source.clone() })
    });
    let launched = if rank.is_some() && counted.is_some() { None } else { launched_rank(variables)? };
    let (launched_rank, launched_count) = launched.unzip();
    let Some(rank) = rank.or_else(|| launched_rank.clone()) else {
        return without_rank(flags, count.as_ref());
    };
    let Some(count) = counted.or_else(|| launched_count.clone()) else {
        return Err(format!(
            "{} is rank {}, but the number of ranks is not given; add --num-ranks",
            rank.source, rank.value
        ));
    };
    let detected = DetectedRank { rank, count, weights };
    let is_launched = launched_rank.is_some_and(|launched| launched == detected.rank);
    detected.check(launched_count.filter(|_| is_launched))?;
    Ok(Some(detected))
}

/// What the command line or the configuration sets.
struct GivenRank {
    rank: Option<Sourced<usize>>,
    count: Option<Sourced<usize>>,
    weights: Option<Sourced<RankWeights>>,
}

fn given_rank(env: &EnvConfig, flags: &RankFlags) -> GivenRank {
    let (rank_key, rank, total_key, total) = match env.split {
        Split::Test if env.test_rank.is_some() => {
            ("test_rank", env.test_rank, "test_total_workers", env.test_total_workers)
        }
        _ => ("multinode_rank", env.multinode_rank, "multinode_total_workers", env.multinode_total_workers),
    };
    GivenRank {
        rank: Sourced::new("--rank", flags.rank)
            .or_else(|| Sourced::new(format!("env_config.{rank_key}"), rank)),
        count: Sourced::new("--num-ranks", flags.num_ranks)
            .or_else(|| Sourced::new(format!("env_config.{total_key}"), total)),
        weights: Sourced::new("--rank-weights", flags.weights.clone())
            .or_else(|| Sourced::new("env_config.all_rank_weights", env.all_rank_weights.clone())),
    }
}

/// Without a rank, this collector is the only one, unless the command line asks for more.
fn without_rank(flags: &RankFlags, count: Option<&Sourced<usize>>) -> Result<Option<DetectedRank>, String> {
    let given = match count {
        Some(count) if flags.num_ranks.is_some() => {
            format!("{} gives {} ranks", count.source, count.value)
        }
        _ if flags.weights.is_some() => "--rank-weights is given".to_owned(),
        _ => return Ok(None),
    };
    Err(format!(
        "{given}, but the rank of this collector is not given; add --rank, or start it under Slurm or torchrun"
    ))
}

impl DetectedRank {
    /// Refuses values that contradict each other. `launched` is the number of ranks from the launcher, if the rank is from
    /// there too.
    fn check(&self, launched: Option<Sourced<usize>>) -> Result<(), String> {
        let Self { rank, count, weights } = self;
        if count.value == 0 {
            return Err(format!("{} gives 0 ranks; there must be at least 1", count.source));
        }
        if rank.value >= count.value {
            return Err(format!(
                "{} is rank {}, but {} gives {} ranks; ranks count from 0",
                rank.source, rank.value, count.source, count.value
            ));
        }
        if let Some(launched) = launched.filter(|launched| launched.value != count.value) {
            return Err(format!(
                "{} gives {} ranks, but {} gives {}",
                launched.source, launched.value, count.source, count.value
            ));
        }
        match weights {
            Some(weights) if weights.value.0.len() != count.value => Err(format!(
                "{} has {} weights, but {} gives {} ranks",
                weights.source,
                weights.value.0.len(),
                count.source,
                count.value
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detect_with(
        flags: &RankFlags,
        change: impl Fn(&mut EnvConfig),
        variables: &[(&str, &str)],
    ) -> Result<(Ranks, Option<String>), String> {
        let mut config = Config::default();
        change(&mut config.env_config);
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        let line = detect(&mut config, flags, &variable)?;
        Ok((Ranks::from_config(&config.env_config).unwrap(), line))
    }

    fn flags(rank: Option<usize>, num_ranks: Option<usize>, weights: Option<&[f64]>) -> RankFlags {
        RankFlags { rank, num_ranks, weights: weights.map(|weights| RankWeights(weights.to_vec())) }
    }

    fn nothing(_: &mut EnvConfig) {}

    fn three(env: &mut EnvConfig) {
        (env.multinode_rank, env.multinode_total_workers) = (Some(2), Some(3));
    }

    const SLURM: [(&str, &str); 3] = [("SLURM_PROCID", "1"), ("SLURM_NTASKS", "3"), ("SLURM_JOB_ID", "77")];

    #[test]
    fn command_line_precedes_config_and_launcher() {
        let rank = |flags: &RankFlags, change: &dyn Fn(&mut EnvConfig), variables: &[(&str, &str)]| {
            let (ranks, line) = detect_with(flags, change, variables).unwrap();
            (ranks.rank, ranks.count(), line.unwrap_or_default())
        };
        let (own, count, line) = rank(&flags(Some(0), Some(2), None), &three, &SLURM);
        assert_eq!((own, count), (0, 2));
        assert_eq!(line, "rank 0 of 2 (rank from --rank, number from --num-ranks)");
        let (own, count, line) = rank(&RankFlags::default(), &three, &SLURM);
        assert_eq!((own, count), (2, 3));
        assert!(line.contains("env_config.multinode_rank"), "{line}");
        let (own, count, line) = rank(&RankFlags::default(), &nothing, &SLURM);
        assert_eq!((own, count), (1, 3));
        assert!(line.contains("SLURM_PROCID") && line.contains("SLURM_NTASKS"), "{line}");
        assert_eq!(rank(&RankFlags::default(), &nothing, &[("RANK", "3"), ("WORLD_SIZE", "4")]).0, 3);
        assert_eq!(rank(&RankFlags::default(), &nothing, &[("NODE_RANK", "1"), ("NNODES", "2")]).0, 1);
        // Weights from a shared file, rank from the launcher.
        let weighted = |env: &mut EnvConfig| env.all_rank_weights = Some(RankWeights(vec![2.0, 1.0, 1.0]));
        let (own, count, line) = rank(&RankFlags::default(), &weighted, &SLURM);
        assert_eq!((own, count), (1, 3));
        assert!(line.contains("weights 2,1,1 from env_config.all_rank_weights"), "{line}");
    }

    #[test]
    fn single_collector_has_no_rank() {
        for variables in [&[][..], &[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "1")], &[("RANK", "0")]] {
            assert_eq!(
                detect_with(&RankFlags::default(), nothing, variables).unwrap(),
                (Ranks::single(), None)
            );
        }
        let alone = detect_with(&flags(None, Some(1), None), nothing, &SLURM).unwrap();
        assert_eq!(alone, (Ranks::single(), None), "--num-ranks 1 overrides any launcher");
        // A launcher that started one process is ignored when another started several.
        let both = [("SLURM_PROCID", "0"), ("SLURM_NTASKS", "1"), ("RANK", "2"), ("WORLD_SIZE", "4")];
        assert_eq!(detect_with(&RankFlags::default(), nothing, &both).unwrap().0.rank, 2);
    }

    #[test]
    fn contradictions_name_both_sources() {
        let assert_refused = |flags: &RankFlags,
                              change: &dyn Fn(&mut EnvConfig),
                              variables: &[(&str, &str)],
                              words: [&str; 2]| {
            let error = detect_with(flags, change, variables).unwrap_err();
            assert!(words.iter().all(|word| error.contains(word)), "{error}");
        };
        assert_refused(
            &flags(Some(3), None, None),
            &three,
            &[],
            ["--rank", "env_config.multinode_total_workers"],
        );
        assert_refused(&flags(Some(3), None, None), &nothing, &SLURM, ["--rank", "SLURM_NTASKS"]);
        assert_refused(&flags(None, Some(4), None), &nothing, &SLURM, ["--num-ranks", "SLURM_NTASKS"]);
        assert_refused(
            &flags(None, None, Some(&[1.0, 2.0])),
            &nothing,
            &SLURM,
            ["--rank-weights", "SLURM_NTASKS"],
        );
        assert_refused(
            &flags(None, None, Some(&[1.0, 2.0])),
            &three,
            &[],
            ["--rank-weights", "multinode_total_workers"],
        );
        let both = [SLURM[0], SLURM[1], ("RANK", "2"), ("WORLD_SIZE", "8")];
        assert_refused(&RankFlags::default(), &nothing, &both, ["SLURM_PROCID", "WORLD_SIZE"]);
        assert_refused(&flags(None, Some(2), None), &nothing, &[], ["--num-ranks", "--rank,"]);
        assert_refused(&flags(Some(1), None, None), &nothing, &[], ["--rank", "--num-ranks"]);
        assert_refused(
            &RankFlags::default(),
            &nothing,
            &[("RANK", "x"), ("WORLD_SIZE", "2")],
            ["RANK", "\"x\""],
        );
    }

    #[test]
    fn launch_id_is_the_slurm_job() {
        let mut config = Config::default();
        let job = |name: &str| (name == "SLURM_JOB_ID").then(|| "77".to_owned());
        detect(&mut config, &RankFlags::default(), &job).unwrap();
        assert_eq!(config.env_config.launch_id.as_deref(), Some("slurm 77.."));
        detect(&mut config, &RankFlags::default(), &|_| None).unwrap();
        assert_eq!(config.env_config.launch_id.as_deref(), Some("slurm 77.."), "an id that is set is kept");
    }
}
