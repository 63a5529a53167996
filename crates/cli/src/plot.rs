//! `webgym plot`: draws the metrics over iterations as one image.

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
    /// Save path of a run.
    save_path: PathBuf,
    /// Image to write, .png or .svg [default: metrics.png in the save path].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Smooth the curves with an exponential moving average: the weight of each new value, such as 0.4; 1 does not smooth.
    #[arg(long, value_name = "ALPHA")]
    ema: Option<Ema>,
}

#[derive(Clone, Copy)]
enum ImageFormat {
    Png,
    Svg,
}

pub(crate) fn run(args: &PlotArgs) -> anyhow::Result<ExitCode> {
    let out = args.out.clone().unwrap_or_else(|| args.save_path.join("metrics.png"));
    let format = image_format(&out)?;
    let view = View::new(SavePath::new(&args.save_path), Vec::new());
    let problems = view.problems()?;
    for problem in &problems {
        eprintln!("{}", net::escape::escape_terminal(problem));
    }
    let charts = view.curves()?.charts(args.ema);
    let image = match format {
        ImageFormat::Png => plot::png(&charts)?,
        ImageFormat::Svg => plot::svg(&charts).into_bytes(),
    };
    std::fs::write(&out, image).with_context(|| format!("cannot write {}", out.display()))?;
    println!("Wrote the plots of {} trajectories to {}", charts.trajectories, out.display());
    if problems.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("The plots lack what could not be read (above).");
    Ok(ExitCode::FAILURE)
}

fn image_format(out: &Path) -> anyhow::Result<ImageFormat> {
    let extension = out.extension().and_then(|extension| extension.to_str()).map(str::to_ascii_lowercase);
    match extension.as_deref() {
        Some("png") => Ok(ImageFormat::Png),
        Some("svg") => Ok(ImageFormat::Svg),
        _ => anyhow::bail!("cannot plot to {}: the file name must end in .png or .svg", out.display()),
    }
}
