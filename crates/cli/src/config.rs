//! `webgym config show`: prints the resolved configuration and the origin of each value. Also loads the configuration for
//! the other commands.

use std::{path::PathBuf, process::ExitCode};

use clap::{Args, Subcommand};
use rollout::config::{self, Resolved};

#[derive(Args, Clone, Debug)]
pub(crate) struct ConfigArgs {
    /// The configuration to start from: rollout, rollout_train, rollout_test, or a file of --config-path.
    #[arg(long, default_value = config::DEFAULT_NAME, value_name = "NAME")]
    pub(crate) config_name: String,
    /// A folder with your own configurations, which may build on the built-in ones.
    #[arg(long, value_name = "DIR")]
    pub(crate) config_path: Option<PathBuf>,
    /// Overrides as in Hydra: key=value, +key=value or ~key.
    #[arg(value_name = "OVERRIDE")]
    pub(crate) overrides: Vec<String>,
}

#[derive(Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print the resolved configuration with the origin of every value.
    Show {
        /// Print JSON, without the origins.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        config: ConfigArgs,
    },
}

impl ConfigArgs {
    pub(crate) fn load(&self) -> anyhow::Result<Resolved> {
        let search = config::search_path(self.config_path.clone());
        Ok(config::load(&self.config_name, &search, &self.overrides, &|name| std::env::var(name).ok())?)
    }
}

pub(crate) fn run(command: &ConfigCommand) -> anyhow::Result<ExitCode> {
    let ConfigCommand::Show { json, config } = command;
    let resolved = config.load()?;
    if *json {
        println!("{:#}", resolved.to_json());
    } else {
        print!("{}", resolved.show());
    }
    Ok(ExitCode::SUCCESS)
}
