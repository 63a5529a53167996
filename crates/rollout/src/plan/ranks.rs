//! Which of several collectors this one is: from the command line, else the configuration, else what started it (Slurm,
//! torchrun). Every answer remembers who gave it, so that two that do not fit together can both be named.

use crate::{
    config::{Config, EnvConfig, RankWeights, Split},
    plan::shares::Ranks,
};

/// What the command line says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flags {
    pub rank: Option<usize>,
    pub num_ranks: Option<usize>,
    pub weights: Option<RankWeights>,
}

/// Where each launcher puts the rank and the number of ranks.
const LAUNCHERS: [(&str, &str); 3] =
    [("SLURM_PROCID", "SLURM_NTASKS"), ("RANK", "WORLD_SIZE"), ("NODE_RANK", "NNODES")];

type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A value and who said so.
#[derive(Clone, Debug, PartialEq)]
struct Said<T> {
    value: T,
    by: String,
}

impl<T> Said<T> {
    fn by(by: impl Into<String>, value: Option<T>) -> Option<Self> {
        value.map(|value| Self { value, by: by.into() })
    }
}

/// Writes this collector's place into the configuration, where everything else looks for it. Answers a line that says
/// what was found where, when there are several ranks.
pub fn settle(
    config: &mut Config,
    flags: &Flags,
    variables: Variables<'_>,
) -> Result<Option<String>, String> {
    let env = &mut config.env_config;
    if env.launch_id.is_none() {
        env.launch_id = launch(variables);
    }
    let found = place(env, flags, variables)?;
    env.test_rank = None;
    env.test_total_workers = None;
    let Some(Place { rank, count, weights }) = found.filter(|place| place.count.value > 1) else {
        (env.multinode_rank, env.multinode_total_workers, env.all_rank_weights) = (None, None, None);
        return Ok(None);
    };
    let mut line =
        format!("rank {} of {} (rank from {}, number from {}", rank.value, count.value, rank.by, count.by);
    if let Some(weights) = &weights {
        line += &format!(", weights {} from {}", String::from(weights.value.clone()), weights.by);
    }
    env.multinode_rank = Some(rank.value);
    env.multinode_total_workers = Some(count.value);
    env.all_rank_weights = weights.map(|weights| weights.value);
    Ranks::of(env).map_err(|(key, why)| format!("env_config.{key}: {why}"))?;
    Ok(Some(line + ")"))
}

struct Place {
    rank: Said<usize>,
    count: Said<usize>,
    weights: Option<Said<RankWeights>>,
}

fn place(env: &EnvConfig, flags: &Flags, variables: Variables<'_>) -> Result<Option<Place>, String> {
    let (rank_key, total_key) = match env.split {
        Split::Test if env.test_rank.is_some() => ("test_rank", "test_total_workers"),
        _ => ("multinode_rank", "multinode_total_workers"),
    };
    let (set_rank, set_total) = match rank_key {
        "test_rank" => (env.test_rank, env.test_total_workers),
        _ => (env.multinode_rank, env.multinode_total_workers),
    };
    let weights = Said::by("--rank-weights", flags.weights.clone())
        .or_else(|| Said::by("env_config.all_rank_weights", env.all_rank_weights.clone()));
    let rank =
        Said::by("--rank", flags.rank).or_else(|| Said::by(format!("env_config.{rank_key}"), set_rank));
    let count = Said::by("--num-ranks", flags.num_ranks)
        .or_else(|| Said::by(format!("env_config.{total_key}"), set_total));
    if count.as_ref().is_some_and(|count| count.value == 1)
        && rank.as_ref().is_none_or(|rank| rank.value == 0)
    {
        return Ok(None);
    }
    // Weights alone say how many there are, unless the one who knows the rank knows that too.
    let counted = count.clone().or_else(|| {
        weights.as_ref().map(|weights| Said { value: weights.value.0.len(), by: weights.by.clone() })
    });
    let launched = if rank.is_some() && counted.is_some() { None } else { launcher(variables)? };
    let (launched_rank, launched_count) = launched.unzip();
    let Some(rank) = rank.or_else(|| launched_rank.clone()) else {
        return without_rank(flags, count.as_ref());
    };
    let Some(count) = counted.clone().or_else(|| launched_count.clone()) else {
        return Err(format!(
            "{} says rank {}, but nothing says how many ranks there are; add --num-ranks",
            rank.by, rank.value
        ));
    };
    let place = Place { rank, count, weights };
    place.check(launched_count.filter(|_| launched_rank.is_some_and(|launched| launched == place.rank)))?;
    Ok(Some(place))
}

/// Nobody says which rank this is: then it is the only one, unless the command line says that there are more.
fn without_rank(flags: &Flags, count: Option<&Said<usize>>) -> Result<Option<Place>, String> {
    let by = match count {
        Some(count) if flags.num_ranks.is_some() => {
            format!("{} says that there are {} ranks", count.by, count.value)
        }
        _ if flags.weights.is_some() => "--rank-weights is given".to_owned(),
        _ => return Ok(None),
    };
    Err(format!("{by}, but nothing says which rank this is; add --rank, or start it under Slurm or torchrun"))
}

impl Place {
    fn check(&self, launched: Option<Said<usize>>) -> Result<(), String> {
        let Self { rank, count, weights } = self;
        if count.value == 0 {
            return Err(format!("{} says that there are no ranks; there must be at least 1", count.by));
        }
        if rank.value >= count.value {
            return Err(format!(
                "{} says rank {}, but {} says that there are {}; ranks count from 0",
                rank.by, rank.value, count.by, count.value
            ));
        }
        if let Some(launched) = launched.filter(|launched| launched.value != count.value) {
            return Err(format!(
                "{} says that there are {} ranks, but {} says {}",
                launched.by, launched.value, count.by, count.value
            ));
        }
        match weights {
            Some(weights) if weights.value.0.len() != count.value => Err(format!(
                "{} has {} weights, but {} says that there are {} ranks",
                weights.by,
                weights.value.0.len(),
                count.by,
                count.value
            )),
            _ => Ok(()),
        }
    }
}

/// What the launchers say. One that started a single process says nothing; two that differ are an error.
fn launcher(variables: Variables<'_>) -> Result<Option<(Said<usize>, Said<usize>)>, String> {
    let mut found: Option<(Said<usize>, Said<usize>)> = None;
    for (rank_name, count_name) in LAUNCHERS {
        let (Some(rank), Some(count)) = (variables(rank_name), variables(count_name)) else { continue };
        let (rank, count) = (number(rank_name, &rank)?, number(count_name, &count)?);
        if count.value == 1 {
            continue;
        }
        match &found {
            Some((other, others)) if (other.value, others.value) != (rank.value, count.value) => {
                return Err(format!(
                    "{} and {} say rank {} of {}, but {rank_name} and {count_name} say rank {} of {}; say which with \
                     --rank and --num-ranks",
                    other.by, others.by, other.value, others.value, rank.value, count.value
                ));
            }
            Some(_) => {}
            None => found = Some((rank, count)),
        }
    }
    Ok(found)
}

fn number(name: &str, text: &str) -> Result<Said<usize>, String> {
    let value = text.trim().parse();
    let value = value
        .map_err(|_| format!("{name} is {text:?}; it must be a number, or give --rank and --num-ranks"))?;
    Ok(Said { value, by: name.to_owned() })
}

/// What started this process and its fellows, as far as the launcher says.
fn launch(variables: Variables<'_>) -> Option<String> {
    if let Some(job) = variables("SLURM_JOB_ID") {
        let more = ["SLURM_STEP_ID", "SLURM_RESTART_COUNT"].map(|name| variables(name).unwrap_or_default());
        return Some(format!("slurm {job}.{}", more.join(".")));
    }
    let torch = variables("TORCHELASTIC_RUN_ID").filter(|id| !id.is_empty() && id != "none")?;
    Some(format!("torchrun {torch}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(
        flags: &Flags,
        change: impl Fn(&mut EnvConfig),
        variables: &[(&str, &str)],
    ) -> Result<(Ranks, Option<String>), String> {
        let mut config = Config::default();
        change(&mut config.env_config);
        let look = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        let line = settle(&mut config, flags, &look)?;
        Ok((Ranks::of(&config.env_config).unwrap(), line))
    }

    fn flags(rank: Option<usize>, num_ranks: Option<usize>, weights: Option<&[f64]>) -> Flags {
        Flags { rank, num_ranks, weights: weights.map(|weights| RankWeights(weights.to_vec())) }
    }

    fn nothing(_: &mut EnvConfig) {}

    fn three(env: &mut EnvConfig) {
        (env.multinode_rank, env.multinode_total_workers) = (Some(2), Some(3));
    }

    const SLURM: [(&str, &str); 3] = [("SLURM_PROCID", "1"), ("SLURM_NTASKS", "3"), ("SLURM_JOB_ID", "77")];

    #[test]
    fn the_command_line_goes_before_the_configuration_and_that_before_the_launcher() {
        let rank = |flags: &Flags, change: &dyn Fn(&mut EnvConfig), variables: &[(&str, &str)]| {
            let (ranks, line) = settled(flags, change, variables).unwrap();
            (ranks.rank, ranks.count(), line.unwrap_or_default())
        };
        let (own, count, line) = rank(&flags(Some(0), Some(2), None), &three, &SLURM);
        assert_eq!((own, count), (0, 2));
        assert_eq!(line, "rank 0 of 2 (rank from --rank, number from --num-ranks)");
        let (own, count, line) = rank(&Flags::default(), &three, &SLURM);
        assert_eq!((own, count), (2, 3));
        assert!(line.contains("env_config.multinode_rank"), "{line}");
        let (own, count, line) = rank(&Flags::default(), &nothing, &SLURM);
        assert_eq!((own, count), (1, 3));
        assert!(line.contains("SLURM_PROCID") && line.contains("SLURM_NTASKS"), "{line}");
        assert_eq!(rank(&Flags::default(), &nothing, &[("RANK", "3"), ("WORLD_SIZE", "4")]).0, 3);
        assert_eq!(rank(&Flags::default(), &nothing, &[("NODE_RANK", "1"), ("NNODES", "2")]).0, 1);
        // Weights in a file that all share, ranks from the launcher.
        let weighted = |env: &mut EnvConfig| env.all_rank_weights = Some(RankWeights(vec![2.0, 1.0, 1.0]));
        let (own, count, line) = rank(&Flags::default(), &weighted, &SLURM);
        assert_eq!((own, count), (1, 3));
        assert!(line.contains("weights 2,1,1 from env_config.all_rank_weights"), "{line}");
    }

    #[test]
    fn one_collector_is_no_rank() {
        for variables in [&[][..], &[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "1")], &[("RANK", "0")]] {
            assert_eq!(settled(&Flags::default(), nothing, variables).unwrap(), (Ranks::single(), None));
        }
        let alone = settled(&flags(None, Some(1), None), nothing, &SLURM).unwrap();
        assert_eq!(alone, (Ranks::single(), None), "--num-ranks 1 says so under any launcher");
        // A launcher that started one process says nothing about another that started several.
        let both = [("SLURM_PROCID", "0"), ("SLURM_NTASKS", "1"), ("RANK", "2"), ("WORLD_SIZE", "4")];
        assert_eq!(settled(&Flags::default(), nothing, &both).unwrap().0.rank, 2);
    }

    #[test]
    fn contradictions_name_both_sources() {
        let refused =
            |flags: &Flags, change: &dyn Fn(&mut EnvConfig), variables: &[(&str, &str)], words: [&str; 2]| {
                let error = settled(flags, change, variables).unwrap_err();
                assert!(words.iter().all(|word| error.contains(word)), "{error}");
            };
        refused(&flags(Some(3), None, None), &three, &[], ["--rank", "env_config.multinode_total_workers"]);
        refused(&flags(Some(3), None, None), &nothing, &SLURM, ["--rank", "SLURM_NTASKS"]);
        refused(&flags(None, Some(4), None), &nothing, &SLURM, ["--num-ranks", "SLURM_NTASKS"]);
        refused(&flags(None, None, Some(&[1.0, 2.0])), &nothing, &SLURM, ["--rank-weights", "SLURM_NTASKS"]);
        refused(
            &flags(None, None, Some(&[1.0, 2.0])),
            &three,
            &[],
            ["--rank-weights", "multinode_total_workers"],
        );
        let both = [SLURM[0], SLURM[1], ("RANK", "2"), ("WORLD_SIZE", "8")];
        refused(&Flags::default(), &nothing, &both, ["SLURM_PROCID", "WORLD_SIZE"]);
        refused(&flags(None, Some(2), None), &nothing, &[], ["--num-ranks", "--rank,"]);
        refused(&flags(Some(1), None, None), &nothing, &[], ["--rank", "--num-ranks"]);
        refused(&Flags::default(), &nothing, &[("RANK", "x"), ("WORLD_SIZE", "2")], ["RANK", "\"x\""]);
    }

    #[test]
    fn a_launch_is_known_by_its_job() {
        let mut config = Config::default();
        let job = |name: &str| (name == "SLURM_JOB_ID").then(|| "77".to_owned());
        settle(&mut config, &Flags::default(), &job).unwrap();
        assert_eq!(config.env_config.launch_id.as_deref(), Some("slurm 77.."));
        settle(&mut config, &Flags::default(), &|_| None).unwrap();
        assert_eq!(config.env_config.launch_id.as_deref(), Some("slurm 77.."), "what was set stays");
    }
}
