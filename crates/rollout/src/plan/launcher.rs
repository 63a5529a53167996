//! What the launcher (Slurm, torchrun) sets in the environment: the rank, the number of ranks and an id of the launch.

/// The environment variables of each launcher for the rank and the number of ranks.
const LAUNCHER_VARIABLES: [(&str, &str); 3] =
    [("SLURM_PROCID", "SLURM_NTASKS"), ("RANK", "WORLD_SIZE"), ("NODE_RANK", "NNODES")];

/// Looks up an environment variable.
pub(super) type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A value and its source.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sourced<T> {
    pub(super) value: T,
    pub(super) source: String,
}

impl<T> Sourced<T> {
    pub(super) fn new(source: impl Into<String>, value: Option<T>) -> Option<Self> {
        value.map(|value| Self { value, source: source.into() })
    }
}

/// Rank and number of ranks as set by a launcher.
pub(super) type LaunchedRank = (Sourced<usize>, Sourced<usize>);

/// Reads rank and number of ranks from the variables of the launchers. A launcher of a single process is ignored; launchers
/// that contradict each other are an error.
pub(super) fn launched_rank(variables: Variables<'_>) -> Result<Option<LaunchedRank>, String> {
    let mut found: Option<LaunchedRank> = None;
    for (rank_name, count_name) in LAUNCHER_VARIABLES {
        let (Some(rank), Some(count)) = (variables(rank_name), variables(count_name)) else { continue };
        let (rank, count) = (parse_number(rank_name, &rank)?, parse_number(count_name, &count)?);
        if count.value == 1 {
            continue;
        }
        match &found {
            Some((other, others)) if (other.value, others.value) != (rank.value, count.value) => {
                return Err(format!(
                    "{} and {} give rank {} of {}, but {rank_name} and {count_name} give rank {} of {}; choose with \
                     --rank and --num-ranks",
                    other.source, others.source, other.value, others.value, rank.value, count.value
                ));
            }
            Some(_) => {}
            None => found = Some((rank, count)),
        }
    }
    Ok(found)
}

fn parse_number(name: &str, text: &str) -> Result<Sourced<usize>, String> {
    let value = text.trim().parse();
    let value = value
        .map_err(|_| format!("{name} is {text:?}; it must be a number, or give --rank and --num-ranks"))?;
    Ok(Sourced { value, source: name.to_owned() })
}

/// Returns an id of the launch that started all ranks, if the launcher has one.
pub(super) fn launch_id(variables: Variables<'_>) -> Option<String> {
    if let Some(job) = variables("SLURM_JOB_ID") {
        let step = ["SLURM_STEP_ID", "SLURM_RESTART_COUNT"].map(|name| variables(name).unwrap_or_default());
        return Some(format!("slurm {job}.{}", step.join(".")));
    }
    let torch = variables("TORCHELASTIC_RUN_ID").filter(|id| !id.is_empty() && id != "none")?;
    Some(format!("torchrun {torch}"))
}
