//! `webgym bench`: benchmarks this machine and compares the results of two runs.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use ::bench::{Options, Report, Section};
use anyhow::Context;
use clap::{Args, Subcommand};

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    command: Option<BenchCommand>,
    /// Only these parts: steps, one (a single instance), load (up to 48 busy instances), leases, memory, start, many (256
    /// instances), growth, master, network (recording and replaying). Default: all, which takes about 27 minutes.
    #[arg(long, value_delimiter = ',', value_name = "PARTS")]
    parts: Vec<Section>,
    /// The number of instances that run episodes concurrently.
    #[arg(long, default_value_t = 8, value_name = "N")]
    instances: usize,
    /// The duration of each measurement after its warm-up.
    #[arg(long, default_value_t = 10.0, value_name = "SECONDS")]
    seconds: f64,
    /// The number of repetitions; the table shows median and spread.
    #[arg(long, default_value_t = 3, value_name = "N")]
    repeats: usize,
    /// The Chromium executable to use. Also read from CHROME.
    #[arg(long, value_name = "PATH")]
    chromium: Option<PathBuf>,
    /// Save the results to this file, for `webgym bench compare`.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Subcommand)]
enum BenchCommand {
    /// Compare the results of two benchmark runs.
    Compare {
        /// The file that `webgym bench --json` wrote first.
        before: PathBuf,
        /// The file that it wrote later.
        after: PathBuf,
    },
}

pub(crate) async fn run(args: &BenchArgs) -> anyhow::Result<ExitCode> {
    match &args.command {
        Some(BenchCommand::Compare { before, after }) => compare(before, after),
        None => measure(args).await,
    }
}

async fn measure(args: &BenchArgs) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(args.instances > 0 && args.repeats > 0, "--instances and --repeats must be at least 1");
    anyhow::ensure!(args.seconds >= 1.0 && args.seconds <= 600.0, "--seconds must be from 1 to 600");
    if let Some(path) = &args.json {
        // Fail now rather than after all measurements.
        let opened = std::fs::OpenOptions::new().append(true).create(true).open(path);
        opened.with_context(|| format!("cannot write {}", path.display()))?;
    }
    let options = Options {
        webgym: std::env::current_exe().context("cannot find this program")?,
        executable: browser::find_browser(args.chromium.as_deref())?,
        instances: args.instances,
        seconds: args.seconds,
        repeats: args.repeats,
        sections: if args.parts.is_empty() { Section::ALL.to_vec() } else { args.parts.clone() },
    };
    if cfg!(debug_assertions) {
        eprintln!("This is a debug build, so the results mean little. Use cargo build --release.");
    }
    let report = ::bench::run(&options, &|progress| eprintln!("bench: {progress}")).await?;
    if let Some(path) = &args.json {
        let text = serde_json::to_string_pretty(&report)?;
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    print!("{report}");
    let fact = |name: &str| report.machine[name].as_str().unwrap_or("unknown").to_owned();
    let (browser, load) = (fact("browser"), fact("load_at_start"));
    println!("\n{} cores, {browser}, load at start {load}", report.machine["cores"]);
    Ok(ExitCode::SUCCESS)
}

fn compare(before: &Path, after: &Path) -> anyhow::Result<ExitCode> {
    let (before, after) = (read(before)?, read(after)?);
    let changes = ::bench::compare(&before, &after);
    anyhow::ensure!(!changes.is_empty(), "the two files have no measurement in common");
    println!("| metric | before → after | change | |\n|---|---|---|---|");
    for change in changes {
        println!("{change}");
    }
    for note in ::bench::differences(&before, &after) {
        println!("\n{note}");
    }
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> anyhow::Result<Report> {
    let text = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Report::read(&text).map_err(|reason| anyhow::anyhow!("{} {reason}", path.display()))
}
