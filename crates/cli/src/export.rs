//! `webgym export` and `webgym aggregate`: trajectories in the shapes other tools read, and ranks made one.

use std::{path::PathBuf, process::ExitCode};

use clap::Args;
use rollout::plan::SharedPlan;
use store::{
    SavePath, Split,
    aggregate::{AggregateOptions, aggregate},
    export::{ExportOptions, Format, export},
};

#[derive(Args)]
pub(crate) struct ExportArgs {
    /// Where a run saved its trajectories.
    save_path: PathBuf,
    /// llamafactory, openai-messages, verl, jsonl, pt or parquet.
    #[arg(long, value_name = "FORMAT")]
    to: Format,
    /// The directory to write into.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    #[arg(long, default_value = "train", value_name = "train|test")]
    split: Split,
    /// Only this iteration. May be repeated; all finished ones otherwise.
    #[arg(long, value_name = "N")]
    iteration: Vec<u64>,
    #[arg(long)]
    only_successful: bool,
    /// Leave out steps whose screenshot did not change.
    #[arg(long)]
    drop_unchanged: bool,
    /// Leave out trajectories shorter than this.
    #[arg(long, default_value_t = 0, value_name = "STEPS")]
    min_steps: u64,
    /// Draw so many steps.
    #[arg(long, value_name = "N")]
    sample: Option<usize>,
    /// How strongly later iterations are preferred when drawing.
    #[arg(long, default_value_t = 0.0, value_name = "POWER")]
    recency_power: f64,
    /// Share of the tasks that goes to validation.
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    validation: f64,
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// For parquet: the screenshots themselves, not only path and hash.
    #[arg(long)]
    inline_screenshots: bool,
    /// Replace what is there.
    #[arg(long)]
    overwrite: bool,
}

pub(crate) fn run_export(args: &ExportArgs) -> anyhow::Result<ExitCode> {
    let options = ExportOptions {
        iterations: (!args.iteration.is_empty()).then(|| args.iteration.clone()),
        only_successful: args.only_successful,
        min_steps: args.min_steps,
        drop_unchanged: args.drop_unchanged,
        sample: args.sample,
        recency_power: args.recency_power,
        validation_share: args.validation,
        seed: args.seed,
        inline_screenshots: args.inline_screenshots,
        overwrite: args.overwrite,
        ..ExportOptions::new(args.to)
    };
    print!("{}", export(&SavePath::new(&args.save_path), args.split, &args.out, &options)?);
    Ok(ExitCode::SUCCESS)
}

#[derive(Args)]
pub(crate) struct AggregateArgs {
    save_path: PathBuf,
    #[arg(long, default_value = "train", value_name = "train|test")]
    split: Split,
    #[arg(long, value_name = "N")]
    iteration: u64,
    /// How many ranks there must be.
    #[arg(long, value_name = "N")]
    ranks: Option<u32>,
    /// Merge what is there even though a rank is missing or still running.
    #[arg(long)]
    partial: bool,
    /// Replace a merged file that is there already.
    #[arg(long)]
    overwrite: bool,
}

pub(crate) fn run_aggregate(args: &AggregateArgs) -> anyhow::Result<ExitCode> {
    let save_path = SavePath::new(&args.save_path);
    // A run that is not merged in full still has its plan, which knows how much there should be.
    let plan = SharedPlan::read(&save_path.plan(args.split, args.iteration))?;
    let planned = plan.as_ref().map(|plan| plan.ranks() as u32);
    let options = AggregateOptions {
        ranks: args.ranks.or(planned),
        tasks: plan.as_ref().map(|plan| plan.total() as u64),
        run_id: plan.map(|plan| plan.run_id),
        partial: args.partial,
        overwrite: args.overwrite,
    };
    print!("{}", aggregate(&save_path, args.split, args.iteration, &options)?);
    Ok(ExitCode::SUCCESS)
}
