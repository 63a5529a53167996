//! `webgym plot`: draws the metrics over iterations or trajectories as one image, or writes their values as JSON.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context;
use clap::Args;
use store::SavePath;
use web::plot::{self, ChartOptions, Ema, XAxis};
use web::view::View;

#[derive(Args)]
pub(crate) struct PlotArgs {
    /// Save path of a run.
    save_path: PathBuf,
    /// File to write: an image (.png or .svg), or the values (.json) [default: metrics.png in the save path].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Smooth the curves with an exponential moving average: the weight of each new value, such as 0.4; 1 does not smooth.
    #[arg(long, value_name = "ALPHA")]
    ema: Option<Ema>,
    /// What the x axis counts: iterations, or the trajectories of the split so far.
    #[arg(long, value_name = "iterations|trajectories", default_value = "iterations")]
    x: XAxis,
    /// Of the test split only tasks whose `distribution` is "ood" (out of distribution) or missing.
    #[arg(long)]
    ood: bool,
}

#[derive(Clone, Copy)]
enum Format {
    Png,
    Svg,
    Json,
}

pub(crate) fn run(args: &PlotArgs) -> anyhow::Result<ExitCode> {
    let out = args.out.clone().unwrap_or_else(|| args.save_path.join("metrics.png"));
    let format = format_of(&out)?;
    let view = View::new(SavePath::new(&args.save_path), Vec::new());
    let problems = view.problems()?;
    for problem in &problems {
        eprintln!("{}", net::escape::escape_terminal(problem));
    }
    let charts = view.charts(ChartOptions { ema: args.ema, x: args.x, is_ood_only: args.ood })?;
    let bytes = match format {
        Format::Png => plot::png(&charts)?,
        Format::Svg => plot::svg(&charts).into_bytes(),
        Format::Json => serde_json::to_vec_pretty(&charts)?,
    };
    std::fs::write(&out, bytes).with_context(|| format!("cannot write {}", out.display()))?;
    println!("Wrote the plots of {} trajectories to {}", charts.trajectories, out.display());
    if problems.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("The plots lack what could not be read (above).");
    Ok(ExitCode::FAILURE)
}

fn format_of(out: &Path) -> anyhow::Result<Format> {
    let extension = out.extension().and_then(|extension| extension.to_str()).map(str::to_ascii_lowercase);
    match extension.as_deref() {
        Some("png") => Ok(Format::Png),
        Some("svg") => Ok(Format::Svg),
        Some("json") => Ok(Format::Json),
        _ => anyhow::bail!("cannot plot to {}: the file name must end in .png, .svg or .json", out.display()),
    }
}
