//! Several collectors of one run, as the command line sees them: which rank this is, and what rank 0 does at the end.

use std::time::Duration;

use clap::Args;
use rollout::{
    config::{Config, RankWeights},
    plan::ranks::{self, Flags},
    run::merge::{Merge, Merged},
};
use serde_json::json;
use store::{aggregate::AggregateReport, metrics};
use tokio_util::sync::CancellationToken;

use crate::report::{self, Audience};

#[derive(Args, Clone, Debug, Default)]
pub(crate) struct RankArgs {
    /// Which of several collectors this is, from 0. Otherwise from the configuration, Slurm or torchrun.
    #[arg(long, value_name = "R")]
    rank: Option<usize>,
    /// How many collectors share the run.
    #[arg(long, value_name = "N")]
    num_ranks: Option<usize>,
    /// The share of each in tasks, instances and policy sessions, such as 2,1,1.
    #[arg(long, value_name = "W,W,…", value_parser = weights)]
    rank_weights: Option<RankWeights>,
}

fn weights(text: &str) -> Result<RankWeights, String> {
    let numbers: Result<Vec<f64>, _> = text.split(',').map(|word| word.trim().parse::<f64>()).collect();
    let numbers = numbers.map_err(|_| "give one number a rank, such as 2,1,1".to_owned())?;
    let usable = numbers.iter().all(|weight| weight.is_finite() && *weight > 0.0);
    if usable { Ok(RankWeights(numbers)) } else { Err("every weight must be above 0".to_owned()) }
}

impl RankArgs {
    /// The only collector, whatever started it.
    pub(crate) fn alone() -> Self {
        Self { num_ranks: Some(1), ..Self::default() }
    }

    /// Finds out which rank this is, says so in one line, and writes it into the configuration.
    pub(crate) fn settle(&self, config: &mut Config) -> anyhow::Result<()> {
        let flags = Flags { rank: self.rank, num_ranks: self.num_ranks, weights: self.rank_weights.clone() };
        let line = ranks::settle(config, &flags, &|name| std::env::var(name).ok());
        if let Some(line) = line.map_err(|why| anyhow::anyhow!(why))? {
            tracing::info!("{line}");
        }
        Ok(())
    }
}

/// Merges what the ranks have collected and says what is missing; answers how many trajectories that are.
pub(crate) async fn merge(
    merge: Merge,
    all_done: bool,
    patience: Duration,
    stop: &CancellationToken,
    audience: Audience,
) -> anyhow::Result<usize> {
    let command = merge.command();
    match merge.clone().when_ready(all_done, patience, stop).await? {
        Merged::Whole(report) => {
            tell(&merge, &report, audience, 0);
            Ok(0)
        }
        Merged::Partial(report) => {
            let missing = report.missing_indices.iter().map(|(from, to)| (to - from + 1) as usize).sum();
            tell(&merge, &report, audience, missing);
            eprintln!(
                "Merged without {missing} trajectories{}. Nothing is lost: resume the ranks that are missing (--resume), then merge \
                 again with: {command} --overwrite",
                who(&report)
            );
            Ok(missing)
        }
        Merged::Stopped => {
            eprintln!(
                "Stopped waiting for the other ranks; nothing was merged. When they are done: {command}"
            );
            Ok(1)
        }
    }
}

fn who(report: &AggregateReport) -> String {
    let ranks = [&report.missing_ranks[..], &report.unfinished_ranks[..]].concat();
    match ranks.as_slice() {
        [] => String::new(),
        [rank] => format!(" of rank {rank}"),
        ranks => format!(" of ranks {}", ranks.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")),
    }
}

fn tell(merge: &Merge, report: &AggregateReport, audience: Audience, missing: usize) {
    let store::IterationId { split, iteration, .. } = merge.id();
    let metrics = metrics::of_iteration(merge.save_path(), split, iteration).ok();
    if let Some(metrics) = &metrics {
        report::note_for_tensorboard(merge.save_path().root(), merge.id(), metrics);
    }
    if audience != Audience::Programs {
        print!("{report}");
        metrics.iter().for_each(|metrics| print!("{metrics}"));
    }
    if audience == Audience::People {
        return;
    }
    let summary = json!({
        "event": "merged", "file": report.path, "trajectories": report.trajectories, "split": split.to_string(),
        "iteration": iteration, "missing": missing, "missing_ranks": report.missing_ranks,
        "unfinished_ranks": report.unfinished_ranks, "repeated": report.repeated_indices.len(),
        "metrics": metrics.map(|report| report.breakdown.overall),
    });
    println!("{summary}");
}
