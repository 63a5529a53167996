//! `webgym loop`: runs or continues a training loop, or prints its commands.

use std::{path::PathBuf, process::ExitCode};

use anyhow::Context;
use clap::Args;
use train::{
    LoopConfig, LoopOptions, LoopOutcome, config,
    driver::{self, RankId, Stop},
};

use crate::signals::Signals;

#[derive(Args)]
pub(crate) struct LoopArgs {
    /// The configuration to start from: loop, or a file of --config-path.
    #[arg(long, default_value = config::DEFAULT_NAME, value_name = "NAME")]
    config_name: String,
    /// A folder with your own configurations, which may build on the built-in one.
    #[arg(long, value_name = "DIR")]
    config_path: Option<PathBuf>,
    /// Continue the loop of this save path in the phase in which it was interrupted.
    #[arg(long)]
    resume: bool,
    /// Print every command and start nothing.
    #[arg(long)]
    dry_run: bool,
    /// Number the iterations from N instead of 0; the Python system counts from 1.
    #[arg(long, value_name = "N")]
    first_iteration: Option<u64>,
    /// The rank of this machine, from 0. Rank 0 decides, the others follow.
    #[arg(long, default_value_t = 0, value_name = "R", requires = "num_ranks")]
    rank: usize,
    /// The number of machines that run the loop.
    #[arg(long, default_value_t = 1, value_name = "N")]
    num_ranks: usize,
    /// Overrides as in Hydra: key=value, +key=value or ~key.
    #[arg(value_name = "OVERRIDE")]
    overrides: Vec<String>,
}

impl LoopArgs {
    fn config(&self) -> anyhow::Result<LoopConfig> {
        let search = config::search_path(self.config_path.clone());
        let variable = |name: &str| std::env::var(name).ok();
        let mut config = config::load(&self.config_name, &search, &self.overrides, &variable)?.config;
        if let Some(number) = self.first_iteration {
            config.first_iteration = number;
        }
        // Programs may have another working directory.
        config.save_path = config.save_path.map(std::path::absolute).transpose()?;
        Ok(config)
    }
}

pub(crate) async fn run(args: LoopArgs) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(
        args.rank < args.num_ranks,
        "--rank {} must be below --num-ranks {}",
        args.rank,
        args.num_ranks
    );
    let config = args.config()?;
    let webgym = std::env::current_exe().context("cannot find the webgym program itself")?;
    let rank = RankId { number: args.rank, count: args.num_ranks };
    if args.dry_run {
        driver::commands(&config, &webgym, rank)?.iter().for_each(|line| println!("{line}"));
        return Ok(ExitCode::SUCCESS);
    }
    let server_key = std::env::var(&config.serve.api_key_env_var).ok().filter(|key| !key.is_empty());
    let stop = Stop::default();
    let stopping = tokio::spawn(stop_on_signals(Signals::listen()?, stop.clone()));
    let options = LoopOptions { webgym, resume: args.resume, rank, server_key, stop };
    let outcome = train::run(config, options).await;
    stopping.abort();
    match outcome? {
        LoopOutcome::Finished => Ok(ExitCode::SUCCESS),
        LoopOutcome::Stopped => {
            eprintln!("Stopped. Continue with the same command and --resume.");
            Ok(ExitCode::from(3))
        }
    }
}

/// Stops the loop softly on the first signal and at once on the second.
async fn stop_on_signals(mut signals: Signals, stop: Stop) {
    signals.next().await;
    eprintln!("Stopping: the running program is asked to finish. Press Ctrl-C again to stop at once.");
    stop.soft.cancel();
    signals.next().await;
    eprintln!("Stopping now.");
    stop.hard.cancel();
}
