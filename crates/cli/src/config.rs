//! `webgym config show`: the resolved configuration, and where each value came from. Also reads the configuration
//! for everyone else.

use std::{path::PathBuf, process::ExitCode};

use clap::{Args, Subcommand};
use rollout::config::{self, Resolved};

#[derive(Args, Clone, Debug)]
pub(crate) struct ConfigArgs {
    /// The configuration to start from: rollout, rollout_train, rollout_test, or a file of --config-path.
    #[arg(long, default_value = config::DEFAULT_NAME, value_name = "NAME")]
    pub(crate) config_name: String,
    /// A folder with configurations of your own; they may build on the ones that ship.
    #[arg(long, value_name = "DIR")]
    pub(crate) config_path: Option<PathBuf>,
    /// key=value, +key=value or ~key, as with Hydra.
    #[arg(value_name = "OVERRIDE")]
    pub(crate) overrides: Vec<String>,
}

#[derive(Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print the resolved configuration with the origin of every value.
    Show {
        /// As JSON, without the origins.
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
