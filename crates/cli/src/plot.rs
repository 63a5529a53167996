//! `webgym plot`: the curves over iterations as one picture.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context;
use clap::Args;
use store::SavePath;
use web::plot::{self, Ema};
use web::view::View;

#[derive(Args)]
pub(crate) struct PlotArgs {
    /// Where a run saved its trajectories.
    save_path: PathBuf,
    /// Where the picture goes: .png or .svg. `metrics.png` in the save path when not given.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Smooth the curves: each point keeps this share of what came before, such as 0.6.
    #[arg(long, value_name = "WEIGHT")]
    ema: Option<Ema>,
}

#[derive(Clone, Copy)]
enum Kind {
    Png,
    Svg,
}

pub(crate) fn run(args: &PlotArgs) -> anyhow::Result<ExitCode> {
    let out = args.out.clone().unwrap_or_else(|| args.save_path.join("metrics.png"));
    let kind = kind(&out)?;
    let charts = View::new(SavePath::new(&args.save_path), Vec::new()).curves()?.charts(args.ema);
    let picture = match kind {
        Kind::Png => plot::png(&charts)?,
        Kind::Svg => plot::svg(&charts).into_bytes(),
    };
    std::fs::write(&out, picture).with_context(|| format!("cannot write {}", out.display()))?;
    println!("Wrote the curves of {} trajectories to {}", charts.trajectories, out.display());
    Ok(ExitCode::SUCCESS)
}

fn kind(out: &Path) -> anyhow::Result<Kind> {
    let ending = out.extension().and_then(|ending| ending.to_str()).map(str::to_ascii_lowercase);
    match ending.as_deref() {
        Some("png") => Ok(Kind::Png),
        Some("svg") => Ok(Kind::Svg),
        _ => anyhow::bail!("{} is neither .png nor .svg", out.display()),
    }
}
