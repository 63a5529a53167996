//! `webgym metrics`: metrics of saved iterations, computed from disk.

use std::{path::PathBuf, process::ExitCode};

use clap::Args;
use store::{SavePath, Split, metrics};

#[derive(Args)]
pub(crate) struct MetricsArgs {
    /// The folder to which a run saved its trajectories.
    save_path: PathBuf,
    /// The split to read.
    #[arg(long, default_value = "train", value_name = "train|test")]
    split: Split,
    /// Only the last N trajectories.
    #[arg(long, value_name = "N")]
    last: Option<usize>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &MetricsArgs) -> anyhow::Result<ExitCode> {
    let save_path = SavePath::new(&args.save_path);
    let Some(report) = metrics::of_save_path(&save_path, args.split, args.last)? else {
        anyhow::bail!("there are no {} trajectories under {}", args.split, args.save_path.display());
    };
    if args.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        println!("{report}");
    }
    Ok(ExitCode::SUCCESS)
}
