//! Options for several collectors of one run: the rank of this one, and the merge by rank 0 at the end.

use std::time::Duration;

use clap::Args;
use rollout::{
    config::{Config, RankWeights},
    plan::rank_detection::{self, RankFlags},
    run::merge::{Merge, Merged},
};
use serde_json::json;
use store::{aggregate::AggregateReport, metrics};
use tokio_util::sync::CancellationToken;

use crate::report::{self, ReportFormat};

#[derive(Args, Clone, Debug, Default)]
pub(crate) struct RankArgs {
    /// The rank of this collector, from 0. Default: from the configuration, Slurm or torchrun.
    #[arg(long, value_name = "R")]
    rank: Option<usize>,
    /// The number of collectors that share the run.
    #[arg(long, value_name = "N")]
    num_ranks: Option<usize>,
    /// The share of each rank in tasks, instances and policy sessions, for example 2,1,1.
    #[arg(long, value_name = "W,W,…", value_parser = parse_weights)]
    rank_weights: Option<RankWeights>,
}

fn parse_weights(text: &str) -> Result<RankWeights, String> {
    let numbers: Result<Vec<f64>, _> = text.split(',').map(|weight| weight.trim().parse::<f64>()).collect();
    let numbers = numbers.map_err(|_| "give one number per rank, for example 2,1,1".to_owned())?;
    let usable = numbers.iter().all(|weight| weight.is_finite() && *weight > 0.0);
    if usable { Ok(RankWeights(numbers)) } else { Err("every weight must be above 0".to_owned()) }
}

impl RankArgs {
    /// A run with a single collector, regardless of launcher variables.
    pub(crate) fn single() -> Self {
        Self { num_ranks: Some(1), ..Self::default() }
    }

    /// Determines the rank, logs it and writes it into the configuration.
    pub(crate) fn apply(&self, config: &mut Config) -> anyhow::Result<()> {
        let flags =
            RankFlags { rank: self.rank, num_ranks: self.num_ranks, weights: self.rank_weights.clone() };
        let line = rank_detection::detect(config, &flags, &|name| std::env::var(name).ok());
        if let Some(line) = line.map_err(|reason| anyhow::anyhow!(reason))? {
            tracing::info!("{line}");
        }
        Ok(())
    }
}

/// Merges the files of the ranks, reports what is missing and returns the number of missing trajectories.
pub(crate) async fn merge(
    merge: Merge,
    all_done: bool,
    wait: Duration,
    stop: &CancellationToken,
    format: ReportFormat,
) -> anyhow::Result<usize> {
    let command = merge.command();
    match merge.clone().when_ready(all_done, wait, stop).await? {
        Merged::Complete(report) => {
            report_merge(&merge, &report, format, 0);
            Ok(0)
        }
        Merged::Partial(report) => {
            let missing = report.missing_indices.iter().map(|(from, to)| (to - from + 1) as usize).sum();
            report_merge(&merge, &report, format, missing);
            eprintln!(
                "Merged without {missing} trajectories{}. Nothing is lost: resume the missing ranks (--resume), then merge again \
                 with: {command} --overwrite",
                missing_ranks(&report)
            );
            Ok(missing)
        }
        Merged::Stopped => {
            eprintln!(
                "Stopped waiting for the other ranks; nothing was merged. When they have finished, run: {command}"
            );
            Ok(1)
        }
    }
}

fn missing_ranks(report: &AggregateReport) -> String {
    let ranks = [&report.missing_ranks[..], &report.unfinished_ranks[..]].concat();
    match ranks.as_slice() {
        [] => String::new(),
        [rank] => format!(" of rank {rank}"),
        ranks => format!(" of ranks {}", ranks.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")),
    }
}

fn report_merge(merge: &Merge, report: &AggregateReport, format: ReportFormat, missing: usize) {
    let store::IterationId { split, iteration, .. } = merge.id();
    let metrics = metrics::of_iteration(merge.save_path(), split, iteration).ok();
    if let Some(metrics) = &metrics {
        report::write_tensorboard(merge.save_path().root(), merge.id(), metrics);
    }
    if format != ReportFormat::Json {
        print!("{report}");
        if let Some(metrics) = &metrics {
            print!("{metrics}");
        }
    }
    if format == ReportFormat::Text {
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
