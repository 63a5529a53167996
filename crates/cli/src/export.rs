//! `webgym export` and `webgym aggregate`: convert trajectories to other formats, and merge the files of several ranks.

use std::{path::PathBuf, process::ExitCode};

use anyhow::Context;
use clap::Args;
use rollout::plan::SharedPlan;
use store::{
    SavePath, Split,
    aggregate::{AggregateOptions, aggregate},
    durable::Existing,
    export::{Advantage, ExportOptions, Format, Recency, TrainConfig, export},
};

#[derive(Args)]
pub(crate) struct ExportArgs {
    /// The folder to which a run saved its trajectories.
    save_path: PathBuf,
    /// The format: llamafactory, openai-messages, verl, jsonl, pt or parquet.
    #[arg(long, value_name = "FORMAT")]
    to: Format,
    /// The folder to write to.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// The split to read.
    #[arg(long, default_value = "train", value_name = "train|test")]
    split: Split,
    /// Only this iteration. Can be repeated. Default: all finished ones.
    #[arg(long, value_name = "N")]
    iteration: Vec<u64>,
    /// Only the latest N iterations.
    #[arg(long, value_name = "N", conflicts_with = "iteration")]
    last: Option<usize>,
    /// Compute advantages within groups: grpo, rloo or reinforce-baseline. For verl, openai-messages, jsonl and parquet.
    #[arg(long, value_name = "KIND")]
    advantage: Option<Advantage>,
    /// Only trajectories that succeeded.
    #[arg(long)]
    only_successful: bool,
    /// Omit steps whose screenshot did not change.
    #[arg(long)]
    drop_unchanged: bool,
    /// Omit trajectories with fewer steps.
    #[arg(long, default_value_t = 0, value_name = "STEPS")]
    min_steps: u64,
    /// Sample this many steps.
    #[arg(long, value_name = "N")]
    sample: Option<usize>,
    /// How strongly sampling prefers later iterations.
    #[arg(long, default_value_t = 0.0, value_name = "POWER")]
    recency_power: f64,
    /// What the recency counts: sample (the position among all steps, as in the original) or iteration.
    #[arg(long, default_value = "sample", value_name = "sample|iteration")]
    recency: Recency,
    #[command(flatten)]
    train_config: TrainConfigArgs,
    /// The share of tasks for the validation set.
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    validation: f64,
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// For parquet: include the screenshots, not only their path and hash.
    #[arg(long)]
    inline_screenshots: bool,
    /// Replace existing files.
    #[arg(long)]
    overwrite: bool,
    /// Also write what was exported to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

/// For llamafactory: the training configuration.
#[derive(Args)]
struct TrainConfigArgs {
    /// For llamafactory: also write train_config.yaml, with the original's settings.
    #[arg(long)]
    train_config: bool,
    /// A setting of train_config.yaml. Can be repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_setting, requires = "train_config")]
    train_setting: Vec<(String, serde_json::Value)>,
    /// The model to train. A folder with the state of its optimizer is continued.
    #[arg(long, value_name = "MODEL", requires = "train_config")]
    model: Option<String>,
    /// Where the trainer writes.
    #[arg(long, value_name = "DIR", requires = "train_config")]
    train_output: Option<PathBuf>,
    /// Where the trainer finds the data, if --out is renamed before it reads it.
    #[arg(long, value_name = "DIR", requires = "train_config")]
    train_data: Option<PathBuf>,
    /// A DeepSpeed configuration: zero1, zero2, zero3 or a file.
    #[arg(long, value_name = "NAME", requires = "train_config")]
    deepspeed: Option<String>,
    /// The number of devices that divide a batch.
    #[arg(long, default_value_t = 1, value_name = "N", requires = "train_config")]
    devices: u64,
}

impl TrainConfigArgs {
    fn config(&self) -> Option<TrainConfig> {
        self.train_config.then(|| TrainConfig {
            model: self.model.clone(),
            output: self.train_output.clone(),
            data: self.train_data.clone(),
            settings: self.train_setting.clone(),
            deepspeed: self.deepspeed.clone(),
            devices: self.devices,
        })
    }
}

/// Parses `key=value`. The value is JSON, or else text.
fn parse_setting(text: &str) -> Result<(String, serde_json::Value), String> {
    let (key, value) = text.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or("expected KEY=VALUE")?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
    Ok((key.to_owned(), value))
}

pub(crate) fn run_export(args: &ExportArgs) -> anyhow::Result<ExitCode> {
    let options = ExportOptions {
        iterations: (!args.iteration.is_empty()).then(|| args.iteration.clone()),
        last: args.last,
        advantage: args.advantage,
        only_successful: args.only_successful,
        min_steps: args.min_steps,
        drop_unchanged: args.drop_unchanged,
        sample: args.sample,
        recency_power: args.recency_power,
        recency: args.recency,
        train_config: args.train_config.config(),
        validation_share: args.validation,
        seed: args.seed,
        inline_screenshots: args.inline_screenshots,
        overwrite: args.overwrite,
        ..ExportOptions::new(args.to)
    };
    let report = export(&SavePath::new(&args.save_path), args.split, &args.out, &options)?;
    print!("{report}");
    if let Some(path) = &args.report {
        let written = store::durable::write_json(path, &report, Existing::Replace);
        written.with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

#[derive(Args)]
pub(crate) struct AggregateArgs {
    save_path: PathBuf,
    /// The split to read.
    #[arg(long, default_value = "train", value_name = "train|test")]
    split: Split,
    #[arg(long, value_name = "N")]
    iteration: u64,
    /// The expected number of ranks.
    #[arg(long, value_name = "N")]
    ranks: Option<u32>,
    /// Merge even if a rank is missing or still running.
    #[arg(long)]
    partial: bool,
    /// Replace an existing merged file.
    #[arg(long)]
    overwrite: bool,
}

pub(crate) fn run_aggregate(args: &AggregateArgs) -> anyhow::Result<ExitCode> {
    let save_path = SavePath::new(&args.save_path);
    // A run that is not completely merged still has its plan, which has the expected numbers.
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
